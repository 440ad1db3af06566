//! [`Advice`]: what a model should do after a call that was refused or lost.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Deserializer};

use pegboard_base::label::{label, serde_as_text};

macro_rules! advice {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal $text:literal,)+) => {
        /// What a model should do after a call that was refused or lost. People are told the [hint](super::Failure::hint) instead.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Advice {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Advice {
            /// The word in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The sentence, in which `{wait}` stands for the seconds until the next call.
            fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }

        label!(Advice, "advice", [$($name),+]);
    };
}

advice! {
    /// The tool is unavailable.
    Leave = "leave" "Go on without it.",
    /// No tool is available any more.
    LeaveTools = "leave_tools" "Go on without tools.",
    /// The same call would fail again.
    Useless = "useless" "Calling again does not help. Go on without it.",
    /// Nothing helps before a person has acted.
    Person = "person" "A person must act first.",
    /// Nothing helps before a person has acted, and nobody is asked to.
    LeaveToPerson = "leave_to_person" "A person must act first. Go on without it.",
    /// The cause will be over soon.
    Soon = "soon" "Call again in a moment.",
    /// The cause may be over later.
    Later = "later" "Call again later, or go on without it.",
    /// The cause is over after the time in [`Failure::retry_after`](super::Failure::retry_after).
    Wait = "wait" "Call again in {wait} s, or go on without it.",
    /// The cause is over when another call has ended.
    AfterAnother = "after_another" "Call again when one of them has ended, or go on without it.",
    /// The user may decide otherwise.
    AskUser = "ask_user" "Go on without it, or ask the user.",
    /// The user has decided, and may be asked why.
    Stop = "stop" "Do not repeat it. Go on without it, or ask the user.",
}

serde_as_text!(Advice);

impl Advice {
    /// Appends the advice to a message, on its own line if the message has several.
    pub(super) fn append_to(self, message: &str, wait: Option<Duration>) -> String {
        let message = message.trim_end().trim_end_matches('.');
        let separator = if message.contains('\n') { "\n" } else { ". " };
        let sentence = match self {
            Self::Wait => {
                let seconds = wait.unwrap_or_default().as_secs_f64().ceil().max(1.0);
                Cow::Owned(self.sentence().replace("{wait}", &seconds.to_string()))
            }
            _ => Cow::Borrowed(self.sentence()),
        };
        format!("{message}{separator}{sentence}")
    }
}

/// Deserializes the advice of another process. A word that this version does not know is left out.
pub(super) fn deserialize_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Advice>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.and_then(|word| word.parse().ok()))
}
