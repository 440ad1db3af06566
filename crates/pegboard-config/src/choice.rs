//! Settings that are one of a few words, and the values of these words.

use std::str::FromStr;

use super::{
    field::{Word, find_word},
    from_setting::FromSetting,
    lifecycle::{Probe, RetryClass},
    oauth::{Dpop, SigningAlg},
    policy::{Approval, Check, Images, Join, OnCrossing, OutputCheck, Pins, Reading, Scan, Structured, Taint, TooLong},
    preset::Preset,
    sandbox::SandboxLevel,
    serve::{JwtAlgorithm, TokenScope},
    server::Start,
    setting::Setting,
    transport::EnvPolicy,
};
use pegboard_base::label::{UnknownWord, label_text, serde_as_text};
use pegboard_mask::MaskStyle;

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

/// `Type: default Variant "word", then "word" (other spellings) = Variant` for each. With `label "what"` before it, each variant has one word,
/// and the type is written and read as these words everywhere.
macro_rules! choice {
    (label $what:literal $type:ty: default $default:ident $default_word:literal; $( $word:literal $( ($($spelling:literal),+) )? = $variant:ident, )+) => {
        choice! { $type: default $default $default_word; $( $word $( ($($spelling),+) )? = $variant, )+ }

        impl $type {
            /// The word in config files and JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        choice! { text $what $type }
    };
    (text $what:literal $type:ty) => {
        label_text!($type);
        serde_as_text!($type);

        /// Accepts every spelling that config files may use.
        impl FromStr for $type {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                let found = find_word(Self::WORDS, word).and_then(Self::of_word);
                let known = || Self::WORDS.iter().map(|word| word.name);
                found.ok_or_else(|| UnknownWord::new($what, word, known()))
            }
        }
    };
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
    /// OAuth with the grant `client_credentials`.
    ClientCredentials,
}

/// A grant type of OAuth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantKind {
    AuthorizationCode,
    ClientCredentials,
    TokenExchange,
    JwtBearer,
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
            Self::ClientCredentials => "client_credentials",
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

choice! { label "environment policy" EnvPolicy: default Allowlist "allowlist";
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
    "client_credentials" ("oauth_client_credentials", "oauth2_client_credentials") = ClientCredentials,
}

choice! { GrantKind: default AuthorizationCode "authorization_code";
    "authorization_code" = AuthorizationCode,
    "client_credentials" = ClientCredentials,
    "token_exchange" ("urn:ietf:params:oauth:grant-type:token-exchange") = TokenExchange,
    "jwt_bearer" ("urn:ietf:params:oauth:grant-type:jwt-bearer") = JwtBearer,
}

choice! { Dpop: default Auto "auto";
    "auto" = Auto,
    "required" = Required,
    "off" = Off,
}

choice! { SigningAlg: default Rs256 "RS256";
    "RS256" = Rs256,
    "ES256" = Es256,
    "EdDSA" = EdDsa,
}

choice! { label "start mode" Start: default Eager "eager";
    "eager" ("background", "auto") = Eager,
    "lazy" = Lazy,
    "explicit" ("manual") = Explicit,
}

choice! { label "scope" TokenScope: default Read "read";
    "read" = Read,
    "call" = Call,
    "admin" = Admin,
}

choice! { label "algorithm" JwtAlgorithm: default Rs256 "RS256";
    "RS256" = Rs256,
    "RS384" = Rs384,
    "RS512" = Rs512,
    "PS256" = Ps256,
    "PS384" = Ps384,
    "PS512" = Ps512,
    "ES256" = Es256,
    "ES384" = Es384,
    "EdDSA" ("ed25519") = EdDsa,
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

impl Probe {
    /// The word in config files and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ListTools => "list_tools",
            Self::Never => "none",
        }
    }
}

choice! { text "health probe" Probe }
choice! { text "level of a sandbox" SandboxLevel }
choice! { text "preset" Preset }

choice! { label "way to read arguments" Reading: default Json "json";
    "json" ("strict") = Json,
    "repair" = Repair,
    "cascade" = Cascade,
    "guided" ("schema") = Guided,
}

choice! { label "check of arguments" Check: default Coerce "coerce";
    "off" ("none") = Off,
    "required" = Required,
    "relaxed" = Relaxed,
    "coerce" = Coerce,
    "strict" = Strict,
}

choice! { label "check of output" OutputCheck: default Warn "warn";
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

choice! { label "approval mode" Approval: default Auto "auto";
    "auto" ("approve") = Auto,
    "writes" = Writes,
    "always" ("prompt") = Always,
    "never" = Never,
}

choice! { label "policy for secrets of other servers" OnCrossing: default Block "block";
    "warn" = Warn,
    "mask" = Mask,
    "block" ("refuse") = Block,
    "allow" ("off") = Allow,
}

choice! { label "pin mode" Pins: default Warn "warn";
    "off" = Off,
    "warn" = Warn,
    "block" = Block,
    "approve" ("ask") = Approve,
}

choice! { label "scan mode" Scan: default Warn "warn";
    "off" = Off,
    "warn" = Warn,
    "block" = Block,
}

choice! { label "taint mode" Taint: default Off "off";
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

choice! { label "preference for structured content" Structured: default ContentFirst "content_first";
    "content_first" = ContentFirst,
    "structured_first" = StructuredFirst,
    "both_dedup" = BothDedup,
    "content_only" = ContentOnly,
    "structured_only" = StructuredOnly,
}

choice! { label "mode for long results" TooLong: default Spill "spill";
    "head" ("cut", "truncate") = Head,
    "head_tail" = HeadTail,
    "spill" ("handle") = Spill,
    "summarise" ("summarize") = Summarise,
    "error" = Error,
}

choice! { label "separator of blocks" Join: default Newline "newline";
    "newline" ("lines") = Newline,
    "empty_line" = EmptyLine,
    "nothing" ("none") = Nothing,
    "first" ("first_block") = First,
}

choice! { label "mode for images" Images: default Keep "keep";
    "keep" = Keep,
    "spill" = Spill,
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};

    use serde::{Serialize, de::DeserializeOwned};

    use super::*;

    /// Every word of the config is read as a value that is written as one of the words, and JSON has the same words.
    fn check<T>()
    where
        T: Choice + Copy + PartialEq + Debug + Display + FromStr<Err = UnknownWord> + Serialize + DeserializeOwned,
    {
        for word in T::WORDS {
            let value = T::of_word(word.name).unwrap();
            let written = value.to_string();
            assert!(T::WORDS.iter().any(|word| word.name == written), "{written}");
            assert_eq!(written.parse(), Ok(value));
            assert_eq!(serde_json::json!(value), written);
            assert_eq!(serde_json::from_value::<T>(written.into()).unwrap(), value);
            for spelling in word.spellings {
                assert_eq!(spelling.parse(), Ok(value), "{spelling}");
            }
        }
        let unknown = "no such word".parse::<T>().unwrap_err().to_string();
        assert!(
            unknown.contains("`no such word` is no ") && unknown.contains(T::DEFAULT_WORD),
            "{unknown}"
        );
        assert_eq!(T::DEFAULT.to_string(), T::DEFAULT_WORD);
    }

    #[test]
    fn a_setting_of_words_is_written_and_read_as_in_the_config() {
        check::<EnvPolicy>();
        check::<Start>();
        check::<Probe>();
        check::<Reading>();
        check::<Check>();
        check::<OutputCheck>();
        check::<Approval>();
        check::<OnCrossing>();
        check::<Pins>();
        check::<Scan>();
        check::<Taint>();
        check::<MaskStyle>();
        check::<Structured>();
        check::<TooLong>();
        check::<Join>();
        check::<Images>();
        check::<SandboxLevel>();
        check::<Preset>();
    }
}
