//! [`Diagnosis`]: what is wrong with a server, a call or a config, as data.
//!
//! It is made once, where the fault is known, from the types of the fault. Programs decide by its [`Code`]; texts for people and models are made
//! of it at the edge. No text that a server wrote has a part in it.

mod cause;
mod code;
mod place;
mod stderr_patterns;

use serde::{Deserialize, Deserializer, Serialize};

pub use cause::{Cause, ConnectFault, Step, TlsFault};
pub use code::Code;
pub use place::{Edit, Place};
pub use stderr_patterns::StderrClue;

/// What is wrong, at which step, why, where, and what mends it.
///
/// ```
/// # mod pegboard { pub use pegboard_base::diagnosis; }
/// use pegboard::diagnosis::{Cause, Code, Diagnosis, Step};
///
/// let diagnosis = Diagnosis::new(Code::ServerError, Step::Connect, Cause::HttpStatus { status: 503 });
/// assert_eq!(
///     serde_json::to_value(&diagnosis).unwrap(),
///     serde_json::json!({"code": "server-error", "step": "connect", "cause": {"kind": "http_status", "status": 503}})
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Diagnosis {
    /// The stable word for what is wrong.
    pub code: Code,
    /// The step that failed.
    pub step: Step,
    /// Why it failed.
    pub cause: Cause,
    /// The server, host or setting that it is about.
    #[serde(default, skip_serializing_if = "Place::is_empty")]
    pub place: Place,
    /// A change that mends it, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

impl Diagnosis {
    /// Creates a diagnosis without a place or an edit.
    pub fn new(code: Code, step: Step, cause: Cause) -> Self {
        Self {
            code,
            step,
            cause,
            place: Place::default(),
            edit: None,
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Sets the change that mends it.
    #[must_use]
    pub fn mended_by(mut self, edit: Edit) -> Self {
        self.edit = Some(edit);
        self
    }

    /// The texts in it that came from the config, which may contain secrets.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let edit = self.edit.as_mut().into_iter().flat_map(Edit::texts_mut);
        self.cause.texts_mut().chain(self.place.texts_mut()).chain(edit)
    }
}

/// Deserializes a diagnosis of another process. One with words that this version does not know is left out: the error that it explains is worth
/// more than the explanation.
pub fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Diagnosis>>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_diagnosis_survives_the_way_through_json() {
        let diagnosis = Diagnosis::new(
            Code::ExitsAtStart,
            Step::Spawn,
            Cause::Exit {
                code: Some(7),
                signal: None,
            },
        )
        .at(Place {
            server: Some("github".to_owned()),
            ..Place::default()
        })
        .mended_by(Edit::Rename {
            key: "servers.github.arg".to_owned(),
            to: "args".to_owned(),
        });
        let stored = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(
            stored,
            json!({
                "code": "exits-at-start", "step": "spawn", "cause": {"kind": "exit", "code": 7}, "place": {"server": "github"},
                "edit": {"kind": "rename", "key": "servers.github.arg", "to": "args"},
            })
        );
        assert_eq!(serde_json::from_value::<Diagnosis>(stored).unwrap(), diagnosis);
    }

    #[test]
    fn a_diagnosis_with_unknown_words_is_left_out() {
        #[derive(Deserialize)]
        struct Holder {
            #[serde(default, deserialize_with = "known")]
            diagnosis: Option<Box<Diagnosis>>,
        }
        let read = |value| serde_json::from_value::<Holder>(value).unwrap().diagnosis;
        let of_tomorrow = json!({"code": "asleep", "step": "connect", "cause": {"kind": "state"}});
        assert_eq!(read(json!({"diagnosis": of_tomorrow})), None);
        assert_eq!(read(json!({})), None);
        let of_today = json!({"code": "disabled", "step": "config", "cause": {"kind": "state"}});
        assert_eq!(
            read(json!({"diagnosis": of_today})).map(|known| known.code),
            Some(Code::Disabled)
        );
    }
}
