//! Sends a `tools/call` request, and waits for its result through input rounds and tasks.

use pegboard_protocol::method;
use serde_json::{Map, Value, value::RawValue};

use super::{
    call_result::CallResult,
    fault::Fault,
    host::OnBehalf,
    input_rounds::{FinalResponse, RoundsRequest, RoundsResult},
    json_rpc::{self, Params},
    mcp_session::Session,
    pass_on::PassOn,
    patience::Patience,
    progress::{ProgressSink, ProgressSubscription},
    response::parse_result,
    task::{Task, TaskContext},
};
use crate::session::Era;
use pegboard_tools::{
    catalog::{TaskSupport, Tool},
    outcome::ForwardedResult,
};

/// A call of a tool.
#[derive(Debug)]
pub struct Call<'a> {
    /// The tool to call.
    pub tool: &'a Tool,
    /// A JSON object.
    pub arguments: &'a RawValue,
    /// The caller's fields of `_meta`.
    pub meta: &'a Map<String, Value>,
    /// The idle timeout and deadline for the result.
    pub patience: Patience,
    /// The caller, and the host that answers what the server asks meanwhile.
    pub on_behalf: OnBehalf<'a>,
    /// Receives progress notifications, if the caller wants them.
    pub progress: Option<ProgressSink>,
    /// Whether it should run as a task if the tool leaves the choice to the client.
    pub as_task: bool,
    /// How the call is passed on for a client; the default for a call of the program itself.
    pub pass_on: PassOn<'a>,
}

impl RoundsResult for CallResult {
    const MAY_BE_TASK: bool = true;

    fn fast_path(result: &[u8]) -> Option<(Self, Option<String>)> {
        Self::fast_parse(result)
    }

    fn from_raw(raw: ForwardedResult) -> Option<Self> {
        Some(Self {
            is_error: raw.is_error,
            raw: Some(Box::new(raw)),
            ..Self::default()
        })
    }
}

/// The response to a call.
#[derive(Debug)]
pub enum CallResponse {
    /// The result of the tool.
    Result(CallResult),
    /// The server runs the call as a task.
    Task(Box<Task>, TaskContext),
}

impl Session {
    /// Calls a tool and waits for its result, also if the server asks for input first or runs the call as a task. Dropping the future cancels
    /// the call.
    pub async fn call(&self, call: Call<'_>) -> Result<CallResult, Fault> {
        let (patience, on_behalf, interactions) = (call.patience, call.on_behalf, self.responder.interactions());
        // A request of the server does not say which call it belongs to: it may be this one.
        let mark_input = |mut result: CallResult| {
            result.had_input = self.responder.interactions() != interactions;
            result
        };
        let polling = match self.start_call(call).await {
            Ok(CallResponse::Result(result)) => return Ok(mark_input(result)),
            // Boxed, because it is rare and would enlarge the future of every call.
            Ok(CallResponse::Task(task, context)) => {
                Box::pin(self.tasks().await_or_cancel(*task, patience, on_behalf, context))
            }
            Err(fault) => return Err(fault),
        };
        polling.await.map(mark_input)
    }

    /// Calls a tool and waits for the response: a result or a task.
    pub async fn start_call(&self, call: Call<'_>) -> Result<CallResponse, Fault> {
        let response = self.send_call(call).await;
        response.map_err(|fault| fault.into_masked(self.masker()))
    }

    async fn send_call(&self, call: Call<'_>) -> Result<CallResponse, Fault> {
        let as_task = self.runs_as_task(&call);
        let mut request = RoundsRequest {
            method: method::TOOLS_CALL.into(),
            about: Some(&call.tool.name),
            mirrored: header_arguments(call.tool, call.arguments),
            patience: call.patience,
            on_behalf: call.on_behalf,
            in_flight: self.register(call.on_behalf),
            progress: call
                .progress
                .map(|sink| ProgressSubscription::new(self.connection.dispatcher().progress(), sink)),
            meta: json_rpc::extra_meta(call.meta),
            as_task,
            pass_on: call.pass_on,
        };
        let has_task = as_task && call.pass_on.has_param("task");
        let params = || {
            let params = Params::default()
                .with("name", &call.tool.name)
                .with("arguments", call.arguments);
            // Without a `ttl`, the server decides how long it keeps the result.
            if as_task && !has_task {
                params.with("task", &Map::new())
            } else {
                params
            }
        };
        let response = self.send_in_rounds(&mut request, params).await;
        request.complete_if(&response);
        Ok(match response? {
            FinalResponse::Result(result) => CallResponse::Result(result),
            FinalResponse::Task(task) => match Task::parse_created(&task, self.peer.era)? {
                Some(task) => {
                    let context = TaskContext {
                        progress: request.progress,
                        in_flight: request.in_flight,
                    };
                    CallResponse::Task(Box::new(task.into_masked(self.masker())), context)
                }
                None => CallResponse::Result(parse_result(&task)?),
            },
        })
    }

    /// Returns `true` if the request should ask for a task. In the newest era the server decides.
    fn runs_as_task(&self, call: &Call<'_>) -> bool {
        if self.peer.era == Era::Modern {
            return false;
        }
        // The server answers for itself if it cannot run the call as a task.
        if call.pass_on.has_param("task") {
            return true;
        }
        let is_wanted = match call.tool.task_support {
            TaskSupport::Required => true,
            TaskSupport::Optional => call.as_task,
            TaskSupport::Forbidden => false,
        };
        is_wanted && self.peer.offers_tasks()
    }
}

/// Returns the arguments that are repeated in HTTP headers. Null and missing ones are left out.
fn header_arguments(tool: &Tool, arguments: &RawValue) -> Vec<(String, String)> {
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
