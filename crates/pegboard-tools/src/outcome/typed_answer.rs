//! Reads answers as types of the program.

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Value};

use super::{Answer, CallError, Content, Outcome, Reply, call_error::UnreadableAnswer};

/// The only field of structured content in which SDKs wrap what is not an object.
const WRAPPED: &str = "result";

impl Reply {
    /// The answer of a call that succeeded, otherwise an error.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
    /// # use pegboard::{Reply, ToolCall};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reply = Reply::done(&ToolCall::new("time.now"), "noon");
    /// let answer = reply.into_result()?;
    /// assert_eq!(answer.text(), "noon");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_result(self) -> Result<Answer, CallError> {
        match self.outcome {
            Outcome::Done(answer) => Ok(answer),
            Outcome::ToolFailed(_) => Err(CallError::ToolFailed(Box::new(self))),
            Outcome::Refused(_) => Err(CallError::Refused(Box::new(self))),
            Outcome::Lost(_) => Err(CallError::Lost(Box::new(self))),
        }
    }

    /// The answer of a call that succeeded as a type of the program: the structured content, otherwise the text as JSON, otherwise the text
    /// itself if the type is a text. Structured content of the only field `result` is also read as what that field holds.
    ///
    /// An answer without text is `()` or `None`. One that was shortened is an error:
    /// [`View::whole_results`](https://docs.rs/pegboard/latest/pegboard/struct.View.html#method.whole_results) turns that off. Use
    /// [`Reply::into_result`] if the content does not matter.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let read = match &self.outcome {
            // What is structured is whole, or left out.
            Outcome::Done(answer) if self.truncated && answer.structured.is_none() => {
                Err(Error::custom("only a part of it is here"))
            }
            Outcome::Done(answer) => read(answer),
            Outcome::ToolFailed(_) => return Err(CallError::ToolFailed(Box::new(self))),
            Outcome::Refused(_) => return Err(CallError::Refused(Box::new(self))),
            Outcome::Lost(_) => return Err(CallError::Lost(Box::new(self))),
        };
        read.map_err(|error| {
            let problem = error.to_string();
            CallError::Unreadable(Box::new(UnreadableAnswer { reply: self, problem }))
        })
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    if let Some(structured) = &answer.structured {
        return T::deserialize(structured).or_else(|error| {
            let wrapped = structured.as_object().filter(|fields| fields.len() == 1);
            let wrapped = wrapped.and_then(|fields| fields.get(WRAPPED));
            wrapped.and_then(|value| T::deserialize(value).ok()).ok_or(error)
        });
    }
    let texts: Vec<&str> = answer.content.iter().filter_map(as_text).collect();
    let text = match texts.as_slice() {
        [text] => (*text).to_owned(),
        texts => texts.join("\n"),
    };
    if text.trim().is_empty()
        && let Ok(nothing) = T::deserialize(Value::Null)
    {
        return Ok(nothing);
    }
    serde_json::from_str(&text).or_else(|error| T::deserialize(Value::String(text)).map_err(|_| error))
}

fn as_text(block: &Content) -> Option<&str> {
    match block {
        Content::Text { text, .. } => Some(text),
        _ => None,
    }
}

impl From<Reply> for Result<Answer, CallError> {
    fn from(reply: Reply) -> Self {
        reply.into_result()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, error::Error as _};

    use serde_json::json;

    use super::*;
    use crate::{
        ToolCall,
        outcome::{Failure, Kind},
    };

    fn done(answer: impl Into<Answer>) -> Reply {
        Reply::done(&ToolCall::new("s.t"), answer)
    }

    #[test]
    fn an_answer_is_read_as_the_type_that_is_asked_for() {
        let stars = BTreeMap::from([("stars".to_owned(), 7)]);
        assert_eq!(done(Answer::json(json!({"stars": 7}))).json(), Ok(stars.clone()));
        assert_eq!(done(r#"{"stars": 7}"#).json(), Ok(stars));
        assert_eq!(done("7").json(), Ok(7));
        assert_eq!(done("noon").json(), Ok("noon".to_owned()));
        assert_eq!(done("7").json(), Ok("7".to_owned()));
        assert_eq!(done(Answer::json(json!({"result": [1, 2]}))).json(), Ok(vec![1, 2]));
        assert_eq!(
            done(Answer::json(json!({"result": 1}))).json(),
            Ok(json!({"result": 1}))
        );
    }

    #[test]
    fn an_answer_that_does_not_fit_says_why() {
        let error = done(Answer::json(json!({"stars": "many"})))
            .json::<BTreeMap<String, u64>>()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"the answer of `s.t` cannot be read: invalid type: string "many", expected u64"#
        );
        assert_eq!((error.kind(), error.may_have_executed()), (Kind::Ok, true));
    }

    #[test]
    fn a_part_of_an_answer_is_not_taken_for_the_answer() {
        let cut = || Reply {
            truncated: true,
            ..done("a long te")
        };
        let problem = "the answer of `s.t` cannot be read: only a part of it is here";
        assert_eq!(cut().json::<String>().unwrap_err().to_string(), problem);
        assert_eq!(cut().json::<Value>().unwrap_err().to_string(), problem);
        let structured = Reply {
            truncated: true,
            ..done(Answer::json(json!({"n": 1})))
        };
        assert_eq!(structured.json(), Ok(json!({"n": 1})), "what is structured is whole");
    }

    #[test]
    fn an_answer_without_text_is_nothing() {
        assert_eq!(done("").json(), Ok(()));
        assert_eq!(done(" \n").json(), Ok(None::<u8>));
        assert_eq!(done("").json(), Ok(String::new()));
    }

    #[test]
    fn what_is_no_answer_is_an_error_with_its_reply() {
        let call = ToolCall::new("s.t");
        let failed = Reply::failed(&call, "no such file").into_result().unwrap_err();
        assert_eq!(failed.to_string(), "`s.t` has failed: no such file");
        let refused = Failure::new(Kind::Unavailable, "`s` is down").caused_by(&std::io::Error::other("refused"));
        let error = Reply::to(&call, Outcome::Refused(refused)).json::<u8>().unwrap_err();
        assert_eq!(
            (error.to_string(), error.source().unwrap().to_string()),
            ("`s` is down".into(), "refused".into())
        );
        let lost = Reply::lost(&call, Kind::Timeout, "late").into_result().unwrap_err();
        assert!(matches!(&lost, CallError::Lost(_)) && lost.may_have_executed());
        assert_eq!(lost.into_reply().id, call.id);
        assert!(size_of::<CallError>() <= 16);
    }
}
