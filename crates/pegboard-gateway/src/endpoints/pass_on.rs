//! Passes requests on to servers, with their progress and logs on the way back.

use std::{pin::pin, sync::Arc};

use futures_util::FutureExt;
use pegboard::{
    ToolCall,
    forward::{Forwarded, Forwarding},
    watch::{LogMessage, Progress, ServerEvent, ServerEvents},
};
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::mpsc;

use super::{client_tools::ClientTools, core::Core, failures::request_failed};
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
        let logs = self.logs(tools, exchange, server).await;
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
        let capabilities = tools.capabilities.of(exchange.client());
        let id = tools.exchanges.request_id();
        let mut forwarding = Forwarding::new().capabilities(capabilities.json).id(&*id);
        if exchange.client().version().is_modern() {
            forwarding = forwarding.returns_input_requests();
        }
        let _registered = capabilities.can_answer.then(|| tools.exchanges.register(&id, exchange));
        let (progress, receiver) = mpsc::channel(PROGRESS);
        let progress = exchange.wants_progress().then_some(progress);
        let logs = self.logs(tools, exchange, Some(server)).await;
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

    /// The logs of a server for a client that gets them with its request. Legacy clients get them on their general stream.
    async fn logs(&self, tools: &ClientTools, exchange: &Exchange, server: Option<&str>) -> Option<ServerEvents> {
        let (level, server) = (exchange.log_level()?, server?);
        self.want_logs(&tools.toolset, server, level).await;
        let is_modern = exchange.client().version().is_modern();
        if !is_modern || !self.may_read_logs(exchange.client().principal(), server) {
            return None;
        }
        tools.toolset.events(server).ok()
    }
}

fn wants_logs(exchange: &Exchange) -> bool {
    exchange.log_level().is_some()
}

/// Does the work, and sends the client what comes meanwhile.
async fn relay(
    exchange: &Exchange,
    mut progress: mpsc::Receiver<Progress>,
    mut logs: Option<ServerEvents>,
    work: impl Future<Output = Forwarded>,
) -> Forwarded {
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            Some(report) = progress.recv() => exchange.progress(progress_fields(report)).await,
            Some(event) = next_event(&mut logs) => send_log(exchange, &event).await,
            done = &mut work => break done,
        }
    };
    // What came before the response goes before it.
    while let Ok(report) = progress.try_recv() {
        exchange.progress(progress_fields(report)).await;
    }
    while let Some(Some(event)) = next_event(&mut logs).now_or_never() {
        send_log(exchange, &event).await;
    }
    done
}

async fn next_event(logs: &mut Option<ServerEvents>) -> Option<Arc<ServerEvent>> {
    logs.as_mut()?.next().await
}

async fn send_log(exchange: &Exchange, event: &ServerEvent) {
    if let ServerEvent::Log(message) = event
        && let Some((level, params)) = log_params(message)
    {
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
        Forwarded::Failed(failure) => Err(request_failed(&failure)),
        _ => Err(unknown_outcome()),
    }
}

/// A server's error, unchanged.
pub(super) fn server_error(code: i64, message: String, data: Option<Value>) -> RpcError {
    let error = RpcError::new(code, message);
    match data {
        Some(data) => error.data(data),
        None => error,
    }
}

pub(super) fn unknown_outcome() -> RpcError {
    RpcError::new(
        RpcError::INTERNAL,
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
