//! Settings that are one of a few words, and the values of these words.

use super::field::{Word, find_word};
use pegboard_base::label::UnknownWord;
use pegboard_mask::MaskStyle;

/// A type whose values are words in config files.
pub(super) trait Choice: Sized + 'static {
    /// The words and their other spellings.
    const WORDS: &'static [Word];

    /// The value of a word of `WORDS`.
    fn from_word(word: &str) -> Option<Self>;
}

/// A choice with a default.
pub(super) trait DefaultChoice: Choice {
    /// The default value.
    const DEFAULT: Self;
    /// Its word.
    const DEFAULT_WORD: &'static str;
}

/// Declares an enum with the words of its values, `Variant = "word" | "other spelling"`.
///
/// ```text
/// words! {
///     /// What happens when a definition changes.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Pins as "pin mode" default Warn {
///         /// Nothing.
///         Off = "off",
///         /// It is reported.
///         Warn = "warn" | "report",
///     }
/// }
/// ```
///
/// With `as "what"` the type is written and read as these words in texts and JSON too. Both `as` and `default` may be left out.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $type:ident $(as $what:literal)? $(default $default:ident)? {
            $( $(#[$of_variant:meta])* $variant:ident = $word:literal $(| $spelling:literal)*, )+
        }
    ) => {
        $(#[$meta])*
        $vis enum $type {
            $( $(#[$of_variant])* $variant, )+
        }

        $crate::choice::words! { @choice $type { $( $word $(| $spelling)* = $variant, )+ } }
        $(
            impl Default for $type {
                fn default() -> Self {
                    Self::$default
                }
            }

            impl $crate::choice::DefaultChoice for $type {
                const DEFAULT: Self = Self::$default;
                const DEFAULT_WORD: &'static str = <Self as $crate::choice::Choice>::WORDS[Self::$default as usize].name;
            }
        )?
        $(
            impl $type {
                /// The word in config files and JSON.
                $vis fn as_str(self) -> &'static str {
                    // The words have the order of the variants.
                    <Self as $crate::choice::Choice>::WORDS[self as usize].name
                }
            }

            $crate::choice::words! { @text $type $what }
        )?
    };
    // The words of a type that is declared elsewhere. Several words may mean the same value.
    ( @choice $type:ident { $( $word:literal $(| $spelling:literal)* = $variant:ident, )+ } ) => {
        impl $crate::choice::Choice for $type {
            const WORDS: &'static [$crate::field::Word] = &[ $( $crate::field::Word { name: $word, spellings: &[ $($spelling),* ] }, )+ ];

            fn from_word(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl $crate::from_setting::FromSetting for $type {
            fn from_setting(setting: &$crate::setting::Setting) -> Option<Self> {
                match setting {
                    $crate::setting::Setting::Word(word) => $crate::choice::Choice::from_word(word),
                    _ => None,
                }
            }
        }
    };
    ( @text $type:ident $what:literal ) => {
        pegboard_base::label::label_text!($type);
        pegboard_base::label::serde_as_text!($type);

        /// Accepts every spelling that config files may use.
        impl std::str::FromStr for $type {
            type Err = pegboard_base::label::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::choice::parse_word(word, $what)
            }
        }
    };
}

pub(super) use words;

/// Parses any spelling of a word. `what` is what the words are, for the error.
pub(super) fn parse_word<T: Choice>(word: &str, what: &'static str) -> Result<T, UnknownWord> {
    let found = find_word(T::WORDS, word).and_then(T::from_word);
    let known = || T::WORDS.iter().map(|word| word.name);
    found.ok_or_else(|| UnknownWord::new(what, word, known()))
}

words! {
    /// The transport of a server, as named in the config.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum TransportKind as "transport" {
        Stdio = "stdio" | "local",
        Http = "http" | "streamable_http" | "streamablehttp" | "streamable",
        Sse = "sse" | "http+sse" | "http_sse",
        WebSocket = "websocket" | "ws" | "web_socket",
        /// A URL whose transport is detected.
        Remote = "remote" | "auto",
    }
}

words! {
    /// A kind of credentials.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum AuthKind as "kind of credentials" {
        None = "none",
        Bearer = "bearer",
        Basic = "basic",
        ApiKey = "api_key" | "apikey",
        OAuth = "oauth" | "oauth2",
        /// OAuth with the grant `client_credentials`.
        ClientCredentials = "client_credentials" | "oauth_client_credentials" | "oauth2_client_credentials",
    }
}

words! {
    /// A grant type of OAuth.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum GrantKind {
        AuthorizationCode = "authorization_code",
        ClientCredentials = "client_credentials",
        TokenExchange = "token_exchange" | "urn:ietf:params:oauth:grant-type:token-exchange",
        JwtBearer = "jwt_bearer" | "urn:ietf:params:oauth:grant-type:jwt-bearer",
    }
}

words! {
    /// What is listed from a server.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Capability {
        Tools = "tools",
        Resources = "resources",
        Prompts = "prompts",
    }
}

words! { @choice MaskStyle { "value" = Value, "whole" | "full" = Whole, } }

impl DefaultChoice for MaskStyle {
    const DEFAULT: Self = Self::Value;
    const DEFAULT_WORD: &'static str = "value";
}

#[cfg(test)]
mod tests {
    use std::{
        fmt::{Debug, Display},
        str::FromStr,
    };

    use serde::{Serialize, de::DeserializeOwned};

    use super::*;
    use crate::{
        lifecycle::Probe,
        oauth::Dpop,
        policy::{
            Approval, Check, Images, Join, OnCrossing, OutputCheck, Pins, Reading, Scan, Structured, Taint, TooLong,
        },
        preset::Preset,
        sandbox::SandboxLevel,
        server::Start,
        transport::EnvPolicy,
    };

    /// Every word of the config is read as a value that is written as one of the words, and JSON has the same words.
    fn check<T>()
    where
        T: DefaultChoice
            + Copy
            + PartialEq
            + Debug
            + Display
            + FromStr<Err = UnknownWord>
            + Serialize
            + DeserializeOwned,
    {
        for word in T::WORDS {
            let value = T::from_word(word.name).unwrap();
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
        check::<Dpop>();
    }
}
