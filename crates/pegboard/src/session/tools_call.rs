//! One `tools/call` from the request to its result, with the rounds and the task that the server may put in between.

mod blocks;
mod plain;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    Fault, Patience, ProgressSink, Session,
    input_rounds::{Asked, InputRequests, Round, Rounds, Settled, read},
    json_rpc::{self, Params},
    progress::Steps,
    response::Response,
    task::Task,
};
use crate::{
    catalog::{TaskSupport, Tool},
    outcome::Content,
    status::Era,
};

/// One call of one tool.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a Tool,
    /// A JSON object.
    pub(crate) arguments: &'a RawValue,
    /// What goes with it in `_meta`.
    pub(crate) meta: &'a Map<String, Value>,
    pub(crate) patience: Patience,
    pub(crate) progress: Option<ProgressSink>,
    /// Whether it should run as a task where the tool leaves the choice.
    pub(crate) as_task: bool,
}

/// What a tool answered, as it came.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallResult {
    #[serde(default, deserialize_with = "blocks::read")]
    pub(crate) content: Vec<Content>,
    #[serde(default, rename = "structuredContent")]
    pub(crate) structured: Option<Value>,
    #[serde(default, rename = "isError", deserialize_with = "or_default")]
    pub(crate) is_error: bool,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Option<Map<String, Value>>,
    /// Whether a user or a model was asked something while the call ran, so that the answer may depend on what they said.
    #[serde(skip)]
    pub(crate) had_input: bool,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<InputRequests>,
    #[serde(default, rename = "requestState")]
    request_state: Option<String>,
}

impl Rounds for CallResult {
    const MAY_BE_TASK: bool = true;

    fn of(answer: &Response) -> Result<Self, Fault> {
        match Self::read_plain(answer.presumed()) {
            Some(result) => Ok(result),
            None => read(&answer.proven()?),
        }
    }

    fn result_type(&self) -> Option<&str> {
        self.result_type.as_deref()
    }

    fn take_round(&mut self) -> Round {
        Round {
            requests: self.input_requests.take().unwrap_or_default(),
            state: self.request_state.take(),
        }
    }
}

/// How far a call has come when its server has answered.
#[derive(Debug)]
pub(crate) enum Begun {
    /// To its end.
    Done(CallResult),
    /// The server works on it and is to be asked later. Meanwhile it may tell how far it is.
    Task(Box<Task>, Option<Steps>),
}

impl Session {
    /// Calls a tool and stays until its result is there. When the server asks for input first, the host gives it and the call goes on.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<CallResult, Fault> {
        let (patience, questions) = (call.patience, self.host.questions());
        // In the era with requests of servers nobody can tell which call a question belongs to: it may be this one.
        let told = |mut result: CallResult| {
            result.had_input = self.host.questions() != questions;
            result
        };
        let following = match self.begin(call).await {
            Ok(Begun::Done(result)) => return Ok(told(result)),
            // Boxed, because it is rare and every call would pay for the room.
            Ok(Begun::Task(task, steps)) => Box::pin(self.see_through(*task, patience, steps)),
            Err(fault) => return Err(fault),
        };
        following.await.map(told)
    }

    /// Calls a tool and stays until the server has answered, with the result or with a task.
    pub(crate) async fn begin(&self, call: Call<'_>) -> Result<Begun, Fault> {
        let begun = self.begun(call).await;
        begun.map_err(|fault| fault.hidden(self.masker()))
    }

    async fn begun(&self, call: Call<'_>) -> Result<Begun, Fault> {
        let as_task = self.runs_as_task(call.tool, call.as_task);
        let mut asked = Asked {
            method: "tools/call",
            about: &call.tool.name,
            mirrored: mirrored(call.tool, call.arguments),
            patience: call.patience,
            steps: call.progress.map(|sink| Steps::new(self.connection.pending(), sink)),
            meta: json_rpc::extra_meta(call.meta),
            as_task,
        };
        let params = || {
            let params = Params::default()
                .with("name", &call.tool.name)
                .with("arguments", call.arguments);
            // How long the result is kept is left to the server.
            if as_task {
                params.with("task", &Map::new())
            } else {
                params
            }
        };
        Ok(match self.rounds(&mut asked, params).await? {
            Settled::Done(result) => Begun::Done(result),
            Settled::Task(answer, steps) => match Task::created(&answer, self.facts.era)? {
                Some(task) => Begun::Task(Box::new(task.hidden(self.masker())), steps),
                None => Begun::Done(read(&answer)?),
            },
        })
    }

    /// Whether the call is to be made a task by us. In the newest era that is up to the server.
    fn runs_as_task(&self, tool: &Tool, wanted: bool) -> bool {
        let is_wanted = match tool.task_support {
            TaskSupport::Required => true,
            TaskSupport::Optional => wanted,
            TaskSupport::Forbidden => false,
        };
        is_wanted && self.facts.era == Era::Legacy && self.offers_tasks()
    }

    /// Whether the server can run calls of tools as tasks.
    pub(crate) fn offers_tasks(&self) -> bool {
        let capabilities = &self.facts.capabilities;
        let at = |path: &[&str]| {
            let first = capabilities.get(path[0]);
            path[1..].iter().try_fold(first?, |value, key| value.get(key))
        };
        match self.facts.era {
            Era::Legacy => at(&["tasks", "requests", "tools", "call"]).is_some(),
            Era::Modern => at(&["extensions", "io.modelcontextprotocol/tasks"]).is_some(),
        }
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
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
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
            assert!(read::<CallResult>(answer.as_bytes()).is_err(), "{answer}");
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
