//! One `tools/call` from the request to its result, with the rounds that the server may ask for in between.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Fault, Patience, ProgressSink, Request, Session, frame::Params};
use crate::{catalog::Tool, outcome::Content};

/// How often a server may ask for more before it must answer.
const MAX_ROUNDS: usize = 10;
/// The most that a server may ask us to carry back.
const MAX_STATE: usize = 64 << 10;

/// One call of one tool.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a Tool,
    /// A JSON object.
    pub(crate) arguments: &'a RawValue,
    pub(crate) patience: Patience,
    pub(crate) progress: Option<ProgressSink>,
}

/// What a tool answered, as it came.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallResult {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) content: Vec<Content>,
    #[serde(default, rename = "structuredContent")]
    pub(crate) structured: Option<Value>,
    #[serde(default, rename = "isError", deserialize_with = "or_default")]
    pub(crate) is_error: bool,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Option<Map<String, Value>>,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<Map<String, Value>>,
    #[serde(default, rename = "requestState")]
    request_state: Option<String>,
}

impl CallResult {
    fn read(answer: &[u8]) -> Result<Self, Fault> {
        // A list would be taken for the fields in order.
        if answer.first() != Some(&b'{') {
            return Err(Fault::unreadable("the result is no object"));
        }
        serde_json::from_slice(answer).map_err(|error| Fault::unreadable(error.to_string()))
    }
}

impl Session {
    /// Calls a tool. When the server asks for input first, the host gives it and the call goes on.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<CallResult, Fault> {
        let result = self.rounds(call).await;
        result.map_err(|fault| fault.hidden(self.line.desk().veil()))
    }

    async fn rounds(&self, call: Call<'_>) -> Result<CallResult, Fault> {
        let mut round = Params::default();
        for _ in 0..=MAX_ROUNDS {
            let params = Params::default()
                .with("name", &call.tool.name)
                .with("arguments", call.arguments)
                .and(&round);
            let mut request = Request::new("tools/call", params).about(&call.tool.name);
            request.mirrored = mirrored(call.tool, call.arguments);
            let answer = self.line.request(request, call.patience, call.progress.clone()).await?;
            let mut result = CallResult::read(&answer)?;
            match result.result_type.as_deref() {
                None | Some("complete") => return Ok(result),
                Some("input_required") => round = self.next_round(&mut result).await?,
                Some(other) => {
                    let text = format!("its resultType is `{}`", other.escape_debug());
                    return Err(Fault::unreadable(text));
                }
            }
        }
        Err(Fault::unreadable(format!(
            "the server still wants input after {MAX_ROUNDS} rounds"
        )))
    }

    /// What the next request carries besides the call itself: the answers, and the server's state as it gave it.
    async fn next_round(&self, result: &mut CallResult) -> Result<Params, Fault> {
        let state = result.request_state.take();
        if let Some(state) = &state
            && state.len() > MAX_STATE
        {
            let text = format!(
                "the server wants {} bytes of state carried back, and {MAX_STATE} are allowed",
                state.len()
            );
            return Err(Fault::unreadable(text));
        }
        let mut answers = Map::new();
        for (key, mut request) in result.input_requests.take().unwrap_or_default() {
            let method = request
                .get("method")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let params = request.get_mut("params").map(Value::take).unwrap_or_default();
            match self.host.answer(&method, params).await {
                Ok(answer) => answers.insert(key, answer),
                Err((_, problem)) => {
                    let text = format!("the server asked for `{}` in between: {problem}", method.escape_debug());
                    return Err(Fault::unreadable(text));
                }
            };
        }
        if answers.is_empty() && state.is_none() {
            return Err(Fault::unreadable("the server wants input and does not say what"));
        }
        let mut params = Params::default();
        if !answers.is_empty() {
            params = params.with("inputResponses", &answers);
        }
        Ok(params.with_some("requestState", state.as_deref()))
    }
}

/// The arguments that HTTP repeats in headers, as text. Null and missing ones are left out.
fn mirrored(tool: &Tool, arguments: &RawValue) -> Vec<(String, String)> {
    if tool.mirrored.is_empty() {
        return Vec::new();
    }
    let arguments: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let text_at = |path: &[String]| {
        let value = path.iter().try_fold(&arguments, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    };
    let headers = tool.mirrored.iter();
    headers
        .filter_map(|(path, header)| Some((header.clone(), text_at(path)?)))
        .collect()
}

/// Null counts as absent.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_no_object_cannot_be_used() {
        for answer in ["[]", r#"[[],null,true]"#, "null", r#""done""#] {
            assert!(CallResult::read(answer.as_bytes()).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_result_may_lack_everything_and_a_strange_block_costs_only_itself() {
        let result: CallResult = serde_json::from_str("{}").unwrap();
        assert!(result.content.is_empty() && !result.is_error);
        let result: CallResult =
            serde_json::from_str(r#"{"content":[{"type":"text","text":"a"},{"type":"new"},5],"isError":null}"#)
                .unwrap();
        assert_eq!(result.content.len(), 3);
    }
}
