//! Passes requests on to servers, with their progress and logs on the way back.

use std::pin::pin;

use futures_util::FutureExt;
use pegboard::{
    ToolCall,
    forward::{Forwarded, Forwarding},
    watch::{LogMessage, Progress, ServerEvent, ServerEvents},
};
use pegboard_protocol::code;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::mpsc;

use super::{client_tools::ClientTools, core::Core, failures::request_error};
use crate::protocol::{Answer, Exchange, LogLevel, RawResult, RpcError};

/// How many reports of progress wait for the client. Further ones are dropped until it has read some.
const PROGRESS: usize = 64;

impl Core {
    /// Passes a tool call on. `server` is the server whose logs the client gets meanwhile, if it wants any.
    pub(super) async fn pass_on_call(
        &self,
        tools: &ClientTools,
        mut call: ToolCall,
        forwarding: &Forwarding,
        exchange: &Exchange,
        server: Option<&str>,
    ) -> Forwarded {
        if !exchange.wants_progress() && !wants_logs(exchange) {
            return tools.toolset.forward_call(call, forwarding).await;
        }
        let (progress, receiver) = mpsc::channel(PROGRESS);
        call.progress = Some(progress);
        let logs = Self::logs(tools, exchange, server, &call.id).await;
        Box::pin(relay(
            exchange,
            receiver,
            logs,
            tools.toolset.forward_call(call, forwarding),
        ))
        .await
    }

    /// Passes any other request on to a server.
    pub(super) async fn pass_on_request(
        &self,
        tools: &ClientTools,
        server: &str,
        method: &str,
        params: &RawValue,
        exchange: &Exchange,
    ) -> Forwarded {
        let capabilities = tools.capabilities.convert(exchange.client());
        let id = tools.exchanges.request_id();
        let mut forwarding = Forwarding::new().capabilities(capabilities.json).id(&*id);
        forwarding.parent = exchange.parent();
        if exchange.client().version().is_modern() {
            forwarding = forwarding.returns_input_requests();
        } else if capabilities.can_answer {
            forwarding = forwarding.answers_requests();
        }
        let _registered = capabilities.can_answer.then(|| tools.exchanges.register(&id, exchange));
        let (progress, receiver) = mpsc::channel(PROGRESS);
        let progress = exchange.wants_progress().then_some(progress);
        let logs = Self::logs(tools, exchange, Some(server), &id).await;
        let work = tools.toolset.forward(server, method, params, &forwarding, progress);
        let forwarded = Box::pin(relay(exchange, receiver, logs, work)).await;
        match &forwarded {
            Forwarded::Error { .. } => match tools.exchanges.take_lacking(&id) {
                Some(RpcError {
                    code, message, data, ..
                }) => Forwarded::Error { code, message, data },
                None => forwarded,
            },
            _ => forwarded,
        }
    }

    /// The logs of a server that a client gets with its request: those that belong to it, and for a modern client, which has no other stream for
    /// them, those that may belong to it.
    async fn logs(tools: &ClientTools, exchange: &Exchange, server: Option<&str>, call: &str) -> Option<Logs> {
        let (level, server) = (exchange.log_level()?, server?);
        tools.wanted_levels.want(&tools.toolset, server, level).await;
        Some(Logs {
            events: tools.toolset.events(server).ok()?,
            call: call.to_owned(),
            takes_others: exchange.client().version().is_modern(),
        })
    }
}

/// The logs for one request.
struct Logs {
    events: ServerEvents,
    /// The id of the call, or of the other request.
    call: String,
    /// Whether the client gets messages that belong to no request.
    takes_others: bool,
}

impl Logs {
    /// The next message for the request. Never completes once the server is removed.
    async fn next(&mut self) -> LogMessage {
        loop {
            let Some(event) = self.events.next().await else {
                return std::future::pending().await;
            };
            if let ServerEvent::Log(message) = &*event
                && message
                    .call
                    .as_ref()
                    .map_or(self.takes_others, |call| *call == self.call)
            {
                return message.clone();
            }
        }
    }
}

fn wants_logs(exchange: &Exchange) -> bool {
    exchange.log_level().is_some()
}

/// Does the work, and sends the client what comes meanwhile.
async fn relay(
    exchange: &Exchange,
    mut progress: mpsc::Receiver<Progress>,
    mut logs: Option<Logs>,
    work: impl Future<Output = Forwarded>,
) -> Forwarded {
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            Some(report) = progress.recv() => exchange.progress(progress_fields(report)).await,
            message = next_log(&mut logs) => send_log(exchange, &message).await,
            done = &mut work => break done,
        }
    };
    // What came before the response goes before it.
    while let Ok(report) = progress.try_recv() {
        exchange.progress(progress_fields(report)).await;
    }
    while let Some(message) = next_log(&mut logs).now_or_never() {
        send_log(exchange, &message).await;
    }
    done
}

async fn next_log(logs: &mut Option<Logs>) -> LogMessage {
    match logs {
        Some(logs) => logs.next().await,
        None => std::future::pending().await,
    }
}

async fn send_log(exchange: &Exchange, message: &LogMessage) {
    if let Some((level, params)) = log_params(message) {
        exchange.log(level, params).await;
    }
}

/// The level of a log message, and its params.
pub(super) fn log_params(message: &LogMessage) -> Option<(LogLevel, Map<String, Value>)> {
    let level = message.level;
    let mut params = Map::new();
    params.insert("level".into(), level.as_str().into());
    if let Some(logger) = &message.logger {
        params.insert("logger".into(), logger.as_str().into());
    }
    params.insert("data".into(), message.data.clone());
    Some((level, params))
}

fn progress_fields(report: Progress) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("progress".into(), number(report.progress));
    if let Some(total) = report.total {
        fields.insert("total".into(), number(total));
    }
    if let Some(message) = report.message {
        fields.insert("message".into(), message.into());
    }
    fields
}

/// A whole number is written without a fraction, as servers write it.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value {
        whole.into()
    } else {
        value.into()
    }
}

/// The answer to a request that is no tool call.
pub(super) fn request_answer(forwarded: Forwarded) -> Answer {
    match forwarded {
        Forwarded::Result(result) => {
            let has_type = result.has_result_type();
            Ok(RawResult::from_text(result.into_bytes(), has_type))
        }
        Forwarded::Error { code, message, data } => Err(server_error(code, message, data)),
        Forwarded::Failed(failure) => Err(request_error(&failure)),
        _ => Err(unknown_outcome()),
    }
}

/// A server's error, unchanged.
pub(super) fn server_error(code: i64, message: String, data: Option<Value>) -> RpcError {
    RpcError {
        code,
        message,
        data,
        is_passed_on: true,
    }
}

pub(super) fn unknown_outcome() -> RpcError {
    RpcError::new(
        code::INTERNAL_ERROR,
        "the outcome of the request is of a kind that this gateway does not know",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_written_as_servers_write_it() {
        for (value, text) in [(1.0, "1"), (0.5, "0.5"), (-3.0, "-3"), (1e300, "1e+300")] {
            assert_eq!(number(value).to_string(), text);
        }
    }
}
