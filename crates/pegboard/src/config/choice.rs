//! Settings that are one of a few words, and the values of these words.

use super::{
    field::Word,
    from_setting::FromSetting,
    lifecycle::{Probe, RetryClass},
    policy::{Approval, Check, Images, Join, OnCrossing, OutputCheck, Pins, Reading, Scan, Structured, Taint, TooLong},
    preset::Preset,
    sandbox::SandboxLevel,
    server::Start,
    setting::Setting,
    transport::EnvPolicy,
};
use crate::mask::MaskStyle;

/// A type whose values are words in config files.
pub(super) trait Choice: Sized + 'static {
    /// The words and their other spellings.
    const WORDS: &'static [Word];
    /// The default value, and its word.
    const DEFAULT: Self;
    const DEFAULT_WORD: &'static str;

    /// The value of a word of `WORDS`.
    fn of_word(word: &str) -> Option<Self>;
}

/// `Type: default Variant "word", then "word" (other spellings) = Variant` for each.
macro_rules! choice {
    ($type:ty: default $default:ident $default_word:literal; $( $word:literal $( ($($spelling:literal),+) )? = $variant:ident, )+) => {
        impl Choice for $type {
            const WORDS: &'static [Word] = &[ $( Word { name: $word, spellings: &[ $( $($spelling),+ )? ] }, )+ ];
            const DEFAULT: Self = Self::$default;
            const DEFAULT_WORD: &'static str = $default_word;

            fn of_word(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl FromSetting for $type {
            fn from_setting(setting: &Setting) -> Option<Self> {
                match setting {
                    Setting::Word(word) => Self::of_word(word),
                    _ => None,
                }
            }
        }
    };
}

/// The transport of a server, as named in the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Http,
    Sse,
    WebSocket,
    /// A URL whose transport is detected.
    Remote,
}

/// A kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthKind {
    None,
    Bearer,
    Basic,
    ApiKey,
    OAuth,
}

impl TransportKind {
    /// Its word in config files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Remote => "remote",
        }
    }
}

impl AuthKind {
    /// Its word in config files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bearer => "bearer",
            Self::Basic => "basic",
            Self::ApiKey => "api_key",
            Self::OAuth => "oauth",
        }
    }
}

/// What is listed from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    Tools,
    Resources,
    Prompts,
}

choice! { TransportKind: default Remote "remote";
    "stdio" ("local") = Stdio,
    "http" ("streamable_http", "streamablehttp", "streamable") = Http,
    "sse" ("http+sse", "http_sse") = Sse,
    "websocket" ("ws", "web_socket") = WebSocket,
    "remote" ("auto") = Remote,
}

choice! { EnvPolicy: default Allowlist "allowlist";
    "allowlist" ("allow_list") = Allowlist,
    "inherit" = Inherit,
    "explicit" ("none") = Explicit,
}

choice! { SandboxLevel: default Off "off";
    "off" ("none") = Off,
    "basic" ("landlock") = Basic,
    "strict" = Strict,
}

choice! { AuthKind: default None "none";
    "none" = None,
    "bearer" = Bearer,
    "basic" = Basic,
    "api_key" ("apikey") = ApiKey,
    "oauth" ("oauth2") = OAuth,
}

choice! { Start: default Eager "eager";
    "eager" ("background", "auto") = Eager,
    "lazy" = Lazy,
    "explicit" ("manual") = Explicit,
}

choice! { Capability: default Tools "tools";
    "tools" = Tools,
    "resources" = Resources,
    "prompts" = Prompts,
}

// `ping` and `discover` are requests of one era each; a server is sent the one of its own era.
choice! { Probe: default Auto "auto";
    "auto" = Auto,
    "ping" = Auto,
    "list_tools" ("list") = ListTools,
    "discover" = Auto,
    "none" ("off") = Never,
}

choice! { Reading: default Json "json";
    "json" ("strict") = Json,
    "repair" = Repair,
    "cascade" = Cascade,
    "guided" ("schema") = Guided,
}

choice! { Check: default Coerce "coerce";
    "off" ("none") = Off,
    "required" = Required,
    "relaxed" = Relaxed,
    "coerce" = Coerce,
    "strict" = Strict,
}

choice! { OutputCheck: default Warn "warn";
    "off" = Off,
    "warn" = Warn,
    "error" = Error,
}

choice! { Preset: default Pegboard "pegboard";
    "pegboard" = Pegboard,
    "tarsy" = Tarsy,
    "ai-agent" = AiAgent,
    "antwort" = Antwort,
    "goat" = Goat,
    "minion" = Minion,
}

choice! { Approval: default Auto "auto";
    "auto" ("approve") = Auto,
    "writes" = Writes,
    "always" ("prompt") = Always,
    "never" = Never,
}

choice! { OnCrossing: default Block "block";
    "warn" = Warn,
    "mask" = Mask,
    "block" ("refuse") = Block,
    "allow" ("off") = Allow,
}

choice! { Pins: default Warn "warn";
    "off" = Off,
    "warn" = Warn,
    "block" = Block,
    "approve" ("ask") = Approve,
}

choice! { Scan: default Warn "warn";
    "off" = Off,
    "warn" = Warn,
    "block" = Block,
}

choice! { Taint: default Off "off";
    "off" = Off,
    "ask" = Ask,
    "block" = Block,
}

choice! { RetryClass: default Never "never";
    "never" = Never,
    "safe" = Safe,
    "idempotent" = Idempotent,
}

choice! { MaskStyle: default Value "value";
    "value" = Value,
    "whole" ("full") = Whole,
}

choice! { Structured: default ContentFirst "content_first";
    "content_first" = ContentFirst,
    "structured_first" = StructuredFirst,
    "both_dedup" = BothDedup,
    "content_only" = ContentOnly,
    "structured_only" = StructuredOnly,
}

choice! { TooLong: default Spill "spill";
    "head" ("cut", "truncate") = Head,
    "head_tail" = HeadTail,
    "spill" ("handle") = Spill,
    "summarise" ("summarize") = Summarise,
    "error" = Error,
}

choice! { Join: default Newline "newline";
    "newline" ("lines") = Newline,
    "empty_line" = EmptyLine,
    "nothing" ("none") = Nothing,
    "first" ("first_block") = First,
}

choice! { Images: default Keep "keep";
    "keep" = Keep,
    "spill" = Spill,
}
