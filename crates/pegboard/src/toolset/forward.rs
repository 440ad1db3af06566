//! [`Forwarder`]: passes requests that are no tool calls on to servers, and returns their results as bytes.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pegboard_protocol::method::{self, RequestMethod};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::{sync::mpsc, time::Instant};

use super::{
    open_view::OpenView,
    resolver::LOOKUP_TIMEOUT,
    server_requests::{ServerRequests, ViewRequest},
};
use crate::{
    call::{self, Attempt, Forwarded, Forwarding, Observer, Operation},
    server::{Live, Server},
};
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_client::{
    session::{Fault, ForwardRequest, PassOn, Patience, Progress},
    transport::Sent,
};
use pegboard_tools::outcome::{Failure, ForwardedResult, Kind};

/// The longest name of a method, in bytes. It is repeated in an HTTP header.
const MAX_METHOD: usize = 256;

/// Passes requests on to the servers of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forwarder<'a> {
    open: &'a OpenView,
}

impl<'a> Forwarder<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Passes a request on, and masks its result.
    pub(super) fn pass(
        self,
        server: &'a str,
        request: PassedRequest<'a>,
    ) -> BoxFuture<'a, Result<ForwardedResult, Box<Forwarded>>> {
        Box::pin(async move {
            let requests = ServerRequests::new(self.open);
            let name = requests.parse_name(server).map_err(box_failure)?;
            check_forwarding(request.forwarding).map_err(box_failure)?;
            check_method(request.method).map_err(box_failure)?;
            check_object("the params", Some(request.params)).map_err(box_failure)?;
            self.check_task(&name, &request).map_err(box_failure)?;
            let target = requests.find_server(&name).map_err(box_failure)?;
            call::check_params(&target, request.method, request.params.get()).map_err(box_failure)?;
            let counted = self.begin(&request).await.map_err(box_failure)?;
            // Requests about tasks do not wait, because a request for a result lasts as long as the task.
            let begun = Instant::now();
            let _permit = match request.method.starts_with("tasks/") {
                true => None,
                false => Some(requests.enter_queue(&target).await.map_err(box_failure)?),
            };
            let queued = begun.elapsed();
            let observer = self.observer(&request);
            let subject = observer.as_ref().and_then(|_| request.observed_params().subject());
            let (server, mut live) = requests.connect(&name).await.map_err(box_failure)?;
            if request.may_be_asked() {
                live = server.for_questions(live, 0, Deadline::within(LOOKUP_TIMEOUT)).await;
            }
            // Completions are for the person who types; everything else may be for a model.
            if request.method != method::COMPLETION_COMPLETE && !server.config().policy.trust {
                self.open.view.rules.taint.mark(&name);
            }
            let limits = server.config_snapshot().limits;
            let patience = Patience {
                idle: limits.call_timeout,
                total: Deadline::within(limits.call_total_timeout),
            };
            let observed = Observed {
                observer: observer.as_ref(),
                server: &server,
                queued,
                subject: subject.as_deref(),
            };
            let result = match self.send(&live, &request, &counted, patience, observed).await {
                Err(fault) if request.may_repeat(&fault) => {
                    let lost = live.generation;
                    drop(live);
                    server.connections().replace(lost);
                    let deadline = Deadline::within(LOOKUP_TIMEOUT);
                    match server.ensure_live_after(lost, deadline).await {
                        Ok(mut live) => {
                            if request.may_be_asked() {
                                live = server.for_questions(live, lost, deadline).await;
                            }
                            self.send(&live, &request, &counted, patience, observed).await
                        }
                        Err(_) => Err(fault),
                    }
                }
                result => result,
            };
            let result = result.map_err(|fault| Box::new(forward_fault(&fault, &server, request.method)))?;
            let masked = call::mask_forwarded(result, &server, patience.total).await;
            let masked = masked.map_err(box_failure)?;
            self.open.view.forwarded_tasks.note(&name, &masked);
            Ok(masked)
        })
    }

    /// Counts a request within the limits of the view. The cancellation of a task is never refused.
    async fn begin(self, request: &PassedRequest<'_>) -> Result<ViewRequest, Failure> {
        let counted = match request.method {
            method::TASKS_CANCEL => ViewRequest::within_call(call::generate_id().1),
            _ => ServerRequests::new(self.open).begin().await?,
        };
        Ok(match &request.forwarding.id {
            Some(id) => counted.with_id(id),
            None => counted,
        })
    }

    async fn send(
        self,
        live: &Live,
        request: &PassedRequest<'_>,
        counted: &ViewRequest,
        patience: Patience,
        observed: Observed<'_>,
    ) -> Result<ForwardedResult, Fault> {
        let attempt = observed.begin(live, request);
        let fields: Vec<_> = attempt.iter().filter_map(Attempt::fields).flatten().collect();
        let passed = ForwardRequest {
            method: request.method,
            pass_on: PassOn {
                params: Some(request.params),
                ..request.forwarding.pass_on(true)
            },
            patience,
            on_behalf: counted.on_behalf(self.open),
            progress: request.progress.clone(),
            meta: &fields,
        };
        let result = live.session.forward(passed).await;
        if let Some(attempt) = attempt {
            attempt.finish(&result);
        }
        result
    }

    /// Decides whether the request has spans.
    fn observer<'b>(self, request: &'b PassedRequest<'_>) -> Option<Observer<'b>>
    where
        'a: 'b,
    {
        let telemetry = self.open.view.telemetry.as_ref()?;
        let carried = || call::carried(&request.observed_params().meta, telemetry.propagation());
        Some(Observer::new(telemetry, &request.forwarding.parent, carried))
    }

    /// Fails if a request is about a task of another view. Other views may share the session, and the server may not tell them apart.
    fn check_task(self, server: &ServerName, request: &PassedRequest<'_>) -> Result<(), Failure> {
        if !request.method.starts_with("tasks/") || self.open.view.forwarded_tasks.has(server, request.params) {
            return Ok(());
        }
        let message = format!("server `{server}` runs no such task that this client started");
        Err(Failure::new(Kind::NotPermitted, message))
    }
}

/// A request that is passed on.
pub(super) struct PassedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) params: &'a RawValue,
    pub(super) forwarding: &'a Forwarding,
    pub(super) progress: Option<mpsc::Sender<Progress>>,
}

/// Who is told of the requests of one forwarding, and what they have in common.
#[derive(Clone, Copy)]
struct Observed<'a> {
    observer: Option<&'a Observer<'a>>,
    server: &'a Server,
    queued: Duration,
    /// The name or URI that the request is about.
    subject: Option<&'a str>,
}

impl<'a> Observed<'a> {
    fn begin(self, live: &'a Live, request: &'a PassedRequest<'_>) -> Option<Attempt<'a>> {
        let operation = Operation {
            server: self.server,
            live,
            method: request.method,
            subject: self.subject,
            queued: self.queued,
            arguments: None,
        };
        self.observer.map(|observer| observer.begin(operation))
    }
}

/// What the spans of a request have of its params.
#[derive(Default, Deserialize)]
struct ObservedParams {
    name: Option<String>,
    uri: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

impl ObservedParams {
    fn subject(self) -> Option<String> {
        self.name.or(self.uri)
    }
}

impl PassedRequest<'_> {
    /// What the spans of the request have of its params.
    fn observed_params(&self) -> ObservedParams {
        serde_json::from_str(self.params.get()).unwrap_or_default()
    }

    /// Whether the server may send questions during the request. Those of a task belong to the session that started it.
    fn may_be_asked(&self) -> bool {
        self.forwarding.answers_requests && !self.method.starts_with("tasks/")
    }

    /// Whether the request is sent again in a new session after this fault.
    fn may_repeat(&self, fault: &Fault) -> bool {
        fault.loses_session()
            && (fault.sent != Sent::Maybe || RequestMethod::find(self.method).is_some_and(|known| known.is_repeatable))
    }
}

fn box_failure(failure: Failure) -> Box<Forwarded> {
    Box::new(Forwarded::Failed(failure))
}

/// The failure of a request: the server's error response, or why there is none.
fn forward_fault(fault: &Fault, server: &Server, method: &str) -> Forwarded {
    match call::forwarded_error(fault, server) {
        Some(error) => Forwarded::from_error(error),
        None => Forwarded::Failed(call::request_failure(server, fault, method)),
    }
}

pub(super) fn check_forwarding(forwarding: &Forwarding) -> Result<(), Failure> {
    check_object("the further params", forwarding.params.as_deref())?;
    check_object("the capabilities", forwarding.capabilities.as_deref())
}

fn check_object(what: &str, value: Option<&RawValue>) -> Result<(), Failure> {
    if value.is_none_or(|value| value.get().starts_with('{')) {
        return Ok(());
    }
    let message = format!("{what} of a request must be a JSON object");
    Err(Failure::new(Kind::InvalidArguments, message))
}

/// Fails for a text that can be no method, and for methods that concern all views of a server.
fn check_method(method: &str) -> Result<(), Failure> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if method.is_empty() || method.len() > MAX_METHOD || !method.bytes().all(is_plain) {
        let message = format!("`{}` cannot be the name of a method", method.escape_debug());
        return Err(Failure::new(Kind::InvalidArguments, message));
    }
    let instead = match method {
        method::TOOLS_CALL => "`Toolset::forward_call`",
        method::TOOLS_LIST => "`Toolset::list`",
        method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => "`Toolset::subscribe`",
        method::SUBSCRIPTIONS_LISTEN => "`Toolset::events`",
        method::LOGGING_SET_LEVEL => "`Toolset::set_log_level`",
        method::INITIALIZE | method::SERVER_DISCOVER => "`Toolset::server_info`",
        method::TASKS_LIST => "the ids of tasks that the client started",
        // A method that the protocol does not have yet could reach tools that the view hides.
        _ if method.starts_with("tools/") => "`Toolset::list` and `Toolset::forward_call`",
        _ if method.starts_with("notifications/") => "a request",
        _ => return Ok(()),
    };
    let message = format!("`{method}` cannot be passed on to a server that others use too: use {instead}");
    Err(Failure::new(Kind::NotPermitted, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_concern_other_views_or_are_none_are_refused() {
        for method in [
            "tools/call",
            "tools/list",
            "logging/setLevel",
            "initialize",
            "notifications/x",
            "tools/describe",
            "tasks/list",
        ] {
            assert_eq!(check_method(method).unwrap_err().kind, Kind::NotPermitted, "{method}");
        }
        for method in ["", "a b", "a\"b", "a\\b", "a\nb", "é", &"a".repeat(300)] {
            assert_eq!(
                check_method(method).unwrap_err().kind,
                Kind::InvalidArguments,
                "{method}"
            );
        }
        for method in ["resources/read", "tasks/get", "com.example/x.y_z-1", "ping"] {
            assert_eq!(check_method(method), Ok(()), "{method}");
        }
    }
}
