//! Calls of tools, which is what most requests are.

use std::{collections::BTreeMap, sync::Arc};

use pegboard::{
    ToolCall, Toolset,
    catalog::Tool,
    forward::{Forwarded, ForwardedResult, Forwarding, ResultKind},
    journal::CallTimes,
    toolset::KnownTool,
};
use pegboard_protocol::{code, meta};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    client_tools::ClientTools,
    core::Core,
    era_hints,
    failures::{answer_failed_call, call_of_command_failed, request_error, strip_failure_fields},
    mirrored,
    pass_on::{server_error, unknown_outcome},
    request_state::{KeptKind, KeptText, unseal_state},
    scope::EndpointTarget,
    sign_in_offers::{Need, Offered},
};
use crate::protocol::{Answer, Exchange, Params, RawResult, Request, RpcError, TOOL_ERROR};

/// How long a tool is waited for whose server is starting.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

impl Core {
    /// Answers `tools/call`.
    pub(super) async fn call_tool(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.tools(exchange.client())?;
        let params = &request.params;
        let name = params
            .text("name")
            .ok_or_else(|| RpcError::invalid_params("`name` is missing or no string"))?;
        if let Some(headers) = &request.mirrored
            && let Some(known) = tools.toolset.known_tool(&name)
            && !known.tool.mirrored_arguments().is_empty()
        {
            mirrored::check(&known.tool, params, headers)?;
        }
        if let Some(server) = self.sign_in_tool(&tools, &name)
            && let Some(answer) = Box::pin(self.call_sign_in_tool(&tools, (&server, &name), exchange)).await
        {
            return answer;
        }
        let mut call = tool_call(&name, params)?;
        let is_modern = exchange.client().version().is_modern();
        if !is_modern && params.has_others() && params.field("task").is_some_and(|task| task.starts_with(b"{")) {
            let answer = Box::pin(self.start_task(&tools, call, params, exchange)).await;
            let server = self.scope.server().cloned().or_else(|| tools.toolset.server_of(&name));
            return Box::pin(self.or_sign_in_link(&tools, server.as_ref(), &request.method, answer, exchange)).await;
        }
        call = call.delivery(exchange.delivery());
        call.parent = exchange.parent();
        let times = self.wants_times(&mut call);
        let capabilities = tools.capabilities.convert(exchange.client());
        let mut forwarding = Forwarding::new().capabilities(capabilities.json);
        forwarding.returns_input_requests = is_modern;
        forwarding.returns_tasks = capabilities.takes_tasks;
        forwarding.answers_requests = !is_modern && capabilities.can_answer;
        if params.has_others() {
            forwarding.params = Some(self.other_params(&tools, &name, params, exchange).await?);
        }
        // The server must be told the level before the call. If the tool is unknown, the call itself says so.
        let known = match exchange.log_level() {
            Some(_) => Box::pin(find(&tools.toolset, &name)).await.ok(),
            None => None,
        };
        let server = known.as_ref().map(|known| known.tool.server.as_str());
        let _registered = capabilities
            .can_answer
            .then(|| tools.exchanges.register(&call.id, exchange));
        let id = is_modern.then(|| call.id.clone());
        // Why a legacy server could not ask the client, if that is why its call failed.
        let lacking = || id.as_ref().and_then(|id| tools.exchanges.take_lacking(id));
        let mut forwarded = self.pass_on_call(&tools, call, &forwarding, exchange, server).await;
        if let Forwarded::Failed(failure) = &forwarded
            && let Some((server_to_use, failure)) = Box::pin(self.lacks_sign_in(&tools, &name, failure)).await
        {
            let need = Need {
                server: &server_to_use,
                failure: &failure,
                question: format!("Sign in to the server `{server_to_use}`, which the call of `{name}` needs."),
            };
            match Box::pin(self.offer_sign_in(&tools, need, exchange)).await {
                Offered::Told(told) => return told.answer(&failure),
                Offered::Page(error) => return Err(error),
                Offered::Taken => {
                    let mut again = tool_call(&name, params)?.delivery(exchange.delivery());
                    again.parent = exchange.parent();
                    // Questions of the server find the client by the id.
                    if let Some(id) = &id {
                        again.id.clone_from(id);
                    }
                    forwarded = Box::pin(self.pass_on_call(&tools, again, &forwarding, exchange, server)).await;
                }
            }
        }
        if let Forwarded::Failed(failure) = &forwarded {
            exchange.note_failure(failure.kind.as_str());
        }
        match forwarded {
            Forwarded::Result(result) if result.kind() == ResultKind::Complete => match result.is_error() {
                true => lacking().map_or_else(
                    || {
                        exchange.note_failure(TOOL_ERROR);
                        let has_type = result.has_result_type();
                        let mut result = complete(result);
                        if is_modern {
                            result = era_hints::explain_result(&tools.toolset, &name, result, has_type);
                        }
                        self.answer_from_server(result)
                    },
                    Err,
                ),
                false => match times {
                    Some(times) => with_times(&result, &times),
                    None => Ok(complete(result)),
                },
            },
            Forwarded::Result(result) => {
                let answer = self.answer_unfinished(&tools, &name, &result, exchange).await?;
                self.answer_from_server(answer)
            }
            Forwarded::Error { code, message, data } => {
                let error = server_error(code, message, data);
                let explained = || match is_modern {
                    true => era_hints::explain_error(&tools.toolset, &name, error),
                    false => error,
                };
                Err(lacking().unwrap_or_else(explained))
            }
            Forwarded::Failed(failure) if matches!(self.scope, EndpointTarget::Approved(_)) => {
                call_of_command_failed(&failure)
            }
            Forwarded::Failed(failure) => answer_failed_call(&failure, || tools.toolset.is_built_in(&name)),
            _ => Err(unknown_outcome()),
        }
    }

    /// Where the call writes its times, if it is one of the user's own commands and asks for them.
    fn wants_times(&self, call: &mut ToolCall) -> Option<Arc<CallTimes>> {
        let EndpointTarget::Approved(_) = self.scope else {
            return None;
        };
        call.meta.remove(meta::pegboard::TIMES)?;
        let times = Arc::<CallTimes>::default();
        call.times = Some(times.clone());
        Some(times)
    }

    /// The result of a server that is no success. The commands of the user believe what it says of failures, so only ours may say it.
    pub(super) fn answer_from_server(&self, result: RawResult) -> Answer {
        match self.scope {
            EndpointTarget::Approved(_) => strip_failure_fields(&result),
            EndpointTarget::Board(_) | EndpointTarget::View(_) | EndpointTarget::Server(_) => Ok(result),
        }
    }

    /// The params of a call besides its name, arguments and `_meta`, with the server's own request state.
    async fn other_params(
        &self,
        tools: &ClientTools,
        name: &str,
        params: &Params,
        exchange: &Exchange,
    ) -> Result<Arc<RawValue>, RpcError> {
        let mut others: BTreeMap<String, Box<RawValue>> = params.parse()?;
        for known in ["name", "arguments", "_meta"] {
            others.remove(known);
        }
        if let Some(sealed) = params.text("requestState") {
            let tool = find(&tools.toolset, name).await?.tool;
            let state = unseal_state(exchange, &sealed, tool.server.as_str(), &tool.name)?;
            others.insert("requestState".into(), raw(&state)?);
        }
        raw(&others).map(Into::into)
    }

    /// The answer for a result that asks for input or is a task.
    async fn answer_unfinished(
        &self,
        tools: &ClientTools,
        name: &str,
        result: &ForwardedResult,
        exchange: &Exchange,
    ) -> Answer {
        let tool = find(&tools.toolset, name).await?.tool;
        match result.kind() {
            ResultKind::InputRequired => seal_state(result, &tool, exchange),
            ResultKind::Task => self.seal_task(tools, result, &tool, exchange),
            _ => Ok(RawResult::from_text(
                result.clone().into_bytes(),
                result.has_result_type(),
            )),
        }
    }
}

/// Replaces the server's request state by a sealed one.
pub(super) fn seal_state(result: &ForwardedResult, tool: &Tool, exchange: &Exchange) -> Answer {
    seal_state_of(result, tool.server.as_str(), &tool.name, exchange)
}

/// The same for a request that is no tool call; `what` is its method.
pub(super) fn seal_state_of(result: &ForwardedResult, server: &str, what: &str, exchange: &Exchange) -> Answer {
    let mut fields: BTreeMap<String, Box<RawValue>> = parse(result)?;
    let state = fields
        .get("requestState")
        .map(|state| serde_json::from_str::<String>(state.get()));
    if let Some(Ok(text)) = state {
        let kept = KeptText {
            kind: KeptKind::State,
            server: server.to_owned(),
            tool: what.to_owned(),
            text,
        };
        fields.insert("requestState".into(), raw(&kept.seal(exchange)?)?);
    }
    Ok(RawResult::from_text(to_text(&fields)?.into(), true))
}

/// The final result of a call with the times of its parts in milliseconds.
fn with_times(result: &ForwardedResult, times: &CallTimes) -> Answer {
    let mut fields: BTreeMap<String, Box<RawValue>> = parse(result)?;
    let known = fields.get("_meta").map(|meta| serde_json::from_str(meta.get()));
    let mut own: Map<String, Value> = known.and_then(Result::ok).unwrap_or_default();
    let millis = |duration: std::time::Duration| duration.as_secs_f64() * 1000.0;
    own.insert(
        meta::pegboard::TIMES.to_owned(),
        json!({"queued_ms": millis(times.queued()), "server_ms": millis(times.served())}),
    );
    fields.insert("_meta".into(), raw(&own)?);
    Ok(RawResult::from_text(to_text(&fields)?.into(), result.has_result_type()))
}

/// The final result of a call, as the server sent it.
pub(super) fn complete(result: ForwardedResult) -> RawResult {
    let has_type = result.has_result_type();
    RawResult::from_text(result.into_bytes(), has_type)
}

/// Waits for the tool that a name means.
pub(super) async fn find(toolset: &Toolset, name: &str) -> Result<KnownTool, RpcError> {
    if let Some(known) = toolset.known_tool(name) {
        return Ok(known);
    }
    let tool = toolset
        .tool(name, PATIENCE)
        .await
        .map_err(|failure| request_error(&failure))?;
    Ok(toolset.known_tool(name).unwrap_or_else(|| KnownTool::new(tool)))
}

fn tool_call(name: &str, params: &Params) -> Result<ToolCall, RpcError> {
    let mut call = ToolCall::new(name);
    if let Some(arguments) = params.field("arguments") {
        let arguments: &RawValue = read(&arguments)?;
        call = call.arguments(arguments);
    }
    if params.has_other_meta()
        && let Some(meta) = params.field("_meta")
    {
        let OwnMeta(meta) = read(&meta)?;
        call.meta = meta;
    }
    Ok(call)
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, RpcError> {
    serde_json::from_slice(text).map_err(|error| RpcError::invalid_params(format!("invalid params: {error}")))
}

pub(super) fn parse<'a, T: Deserialize<'a>>(result: &'a ForwardedResult) -> Result<T, RpcError> {
    serde_json::from_slice(result.json()).map_err(|error| {
        RpcError::new(
            code::INTERNAL_ERROR,
            format!("the server's result cannot be read: {error}"),
        )
    })
}

pub(super) fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

pub(super) fn to_text(value: &impl serde::Serialize) -> Result<Vec<u8>, RpcError> {
    serde_json::to_vec(value).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

/// The `_meta` of a request without what belongs to the connection between the client and this gateway.
struct OwnMeta(Map<String, Value>);

impl<'de> Deserialize<'de> for OwnMeta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CallFields;

        impl<'de> Visitor<'de> for CallFields {
            type Value = OwnMeta;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<OwnMeta, A::Error> {
                let mut kept = Map::new();
                while let Some(key) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
                    if is_of_connection(&key) {
                        fields.next_value::<IgnoredAny>()?;
                    } else {
                        kept.insert(key.into_owned(), fields.next_value()?);
                    }
                }
                Ok(OwnMeta(kept))
            }
        }

        deserializer.deserialize_map(CallFields)
    }
}

fn is_of_connection(key: &str) -> bool {
    matches!(
        key,
        meta::PROGRESS_TOKEN | meta::PROTOCOL_VERSION | meta::CLIENT_CAPABILITIES | meta::CLIENT_INFO | meta::LOG_LEVEL
    )
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn call_of(params: &Value) -> ToolCall {
        let params = Params::from_text(Bytes::from(params.to_string())).unwrap();
        tool_call("t", &params).unwrap()
    }

    #[test]
    fn a_call_keeps_its_arguments_and_the_clients_own_meta() {
        let meta = json!({"progressToken": 1, "io.modelcontextprotocol/clientInfo": {"name": "c"}, "x/trace": {"a": [1]}, "y": 2});
        let call = call_of(&json!({"name": "t", "arguments": {"a": 1}, "_meta": meta}));
        assert_eq!(call.arguments.as_str(), r#"{"a":1}"#);
        assert_eq!(Value::Object(call.meta), json!({"x/trace": {"a": [1]}, "y": 2}));
    }

    #[test]
    fn a_call_needs_neither_arguments_nor_meta() {
        let call = call_of(&json!({"name": "t"}));
        assert_eq!((call.arguments.as_str(), call.meta.len()), ("{}", 0));
    }
}
