//! Passes calls and other requests on to servers, and returns their results as bytes.

use pegboard_protocol::method;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{read_only_requests::ViewRequest, routing::LOOKUP_TIMEOUT, toolset_handle::Toolset};
use crate::{
    call::{self, Forwarded, ForwardedCall, Forwarding, ToolCall},
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

/// Methods that change nothing, so that they are sent again if the session is lost.
const READING: &[&str] = &[
    method::COMPLETION_COMPLETE,
    method::PING,
    method::PROMPTS_GET,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCES_READ,
    method::RESOURCES_TEMPLATES_LIST,
    method::TASKS_GET,
    method::TASKS_RESULT,
];

impl Toolset {
    /// Calls a tool like [`Toolset::call`], and returns the result as the server sent it.
    ///
    /// Everything before and after the exchange is as for [`Toolset::call`]: routing, policy, approval, queue, retries, limits, events and
    /// counters. In a view with [`View::whole_results`](crate::View::whole_results) or
    /// [`View::configured_limits`](crate::View::configured_limits) the result is passed on as bytes unless a rule needs its parts: a setting of
    /// `result` that changes it, a cache, a check of structured results, a hook or an idempotency key. Otherwise it is parsed, processed as the
    /// view and the config say, and written again: fenced, joined and truncated in its blocks.
    ///
    /// ```
    /// use pegboard::{Toolset, ToolCall, forward::{Forwarded, Forwarding}};
    ///
    /// async fn pass_on(tools: &Toolset) -> Option<pegboard::bytes::Bytes> {
    ///     match tools.forward_call(ToolCall::new("time.now"), &Forwarding::new()).await {
    ///         Forwarded::Result(result) => Some(result.into_bytes()),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    pub async fn forward_call(&self, call: ToolCall, forwarding: &Forwarding) -> Forwarded {
        if let Err(failure) = check_forwarding(forwarding) {
            return Forwarded::Failed(failure);
        }
        let forwarded = ForwardedCall::new(forwarding);
        // Boxed, because it is rare and would enlarge the future of every call.
        let reply = if call::is_traced() {
            Box::pin(call::traced(call, |call| self.call_untraced(call, Some(&forwarded)))).await
        } else {
            self.call_untraced(call, Some(&forwarded)).await
        };
        let server = reply.server.clone();
        let answered = call::answered(forwarded, reply);
        if let (Some(result), Some(server)) = (answered.result(), server) {
            self.view.forwarded_tasks.note(&server, result);
        }
        answered
    }

    /// Passes any request but a tool call on to one server: `resources/read`, `prompts/get`, `completion/complete`, `tasks/…`, and methods of
    /// extensions.
    ///
    /// `params` is a JSON object. Of the fields of its `_meta`, those that are reserved for the protocol are replaced by ours. `progress`
    /// receives the server's progress; when it is full, updates are dropped. [`Forwarding::params`] is ignored.
    ///
    /// Requests count within [`View::rate`](crate::View::rate) and [`View::max_in_flight`](crate::View::max_in_flight), except `tasks/cancel`, and take
    /// turns with those of other views, except `tasks/…`.
    ///
    /// Refused are requests about tasks that this view did not start by [`Toolset::forward_call`] or [adopt](Toolset::adopt_task), and methods
    /// that have other ways because they concern all views of the server: `tools/…`, subscriptions, log levels and the handshake.
    pub async fn forward(
        &self,
        server: &str,
        method: &str,
        params: &RawValue,
        forwarding: &Forwarding,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Forwarded {
        let request = Passed {
            method,
            params,
            forwarding,
            progress,
        };
        // Boxed, because these requests are rare and callers hold the future beside that of a call.
        match Box::pin(self.pass_request(server, request)).await {
            Ok(result) => Forwarded::Result(result),
            Err(forwarded) => *forwarded,
        }
    }

    /// Lets this toolset ask after a task that another toolset started by [`Toolset::forward_call`], for example before the program opened this one for
    /// the same client. The program vouches that the task belongs to the principal of this toolset.
    ///
    /// Fails if the toolset has no such server.
    pub fn adopt_task(&self, server: &str, id: &str) -> Result<(), Failure> {
        let name = self.server_name(server)?;
        self.view.forwarded_tasks.add(&name, id);
        Ok(())
    }

    async fn pass_request(&self, server: &str, request: Passed<'_>) -> Result<ForwardedResult, Box<Forwarded>> {
        let name = self.server_name(server).map_err(refused)?;
        check_forwarding(request.forwarding).map_err(refused)?;
        check_method(request.method).map_err(refused)?;
        check_object("the params", Some(request.params)).map_err(refused)?;
        self.check_task(&name, &request).map_err(refused)?;
        let target = self.server(&name).map_err(refused)?;
        call::check_params(&target, request.method, request.params.get()).map_err(refused)?;
        let counted = self.begin_passing(&request).map_err(refused)?;
        // Requests about tasks do not wait, because a request for a result lasts as long as the task.
        let _permit = match request.method.starts_with("tasks/") {
            true => None,
            false => Some(self.enter_read_queue(&target).await.map_err(refused)?),
        };
        let (server, mut live) = self.ready_server(&name).await.map_err(refused)?;
        if request.may_be_asked() {
            live = server.for_questions(live, 0, Deadline::within(LOOKUP_TIMEOUT)).await;
        }
        // Completions are for the person who types; everything else may be for a model.
        if request.method != method::COMPLETION_COMPLETE && !server.config().policy.trust {
            self.view.rules.taint.mark(&name);
        }
        let limits = server.config_snapshot().limits;
        let patience = Patience {
            idle: limits.call_timeout,
            total: Deadline::within(limits.call_total_timeout),
        };
        let result = match self.send(&live, &request, &counted, patience).await {
            Err(fault) if request.may_repeat(&fault) => {
                let lost = live.generation;
                drop(live);
                server.replace(lost);
                let deadline = Deadline::within(LOOKUP_TIMEOUT);
                match server.live_after(lost, deadline).await {
                    Ok(mut live) => {
                        if request.may_be_asked() {
                            live = server.for_questions(live, lost, deadline).await;
                        }
                        self.send(&live, &request, &counted, patience).await
                    }
                    Err(_) => Err(fault),
                }
            }
            result => result,
        };
        let result = result.map_err(|fault| Box::new(failed(&fault, &server, request.method)))?;
        let masked = call::mask_forwarded(result, &server, patience.total).await;
        let masked = masked.map_err(refused)?;
        self.view.forwarded_tasks.note(&name, &masked);
        Ok(masked)
    }

    /// Counts a request within the limits of the view. The cancellation of a task is never refused.
    fn begin_passing(&self, request: &Passed<'_>) -> Result<ViewRequest, Failure> {
        let counted = match request.method {
            method::TASKS_CANCEL => ViewRequest::of_call(call::generate_id().1),
            _ => self.begin_request()?,
        };
        Ok(match &request.forwarding.id {
            Some(id) => counted.with_id(id),
            None => counted,
        })
    }

    async fn send(
        &self,
        live: &Live,
        request: &Passed<'_>,
        counted: &ViewRequest,
        patience: Patience,
    ) -> Result<ForwardedResult, Fault> {
        let passed = ForwardRequest {
            method: request.method,
            pass_on: PassOn {
                params: Some(request.params),
                ..request.forwarding.pass_on(true)
            },
            patience,
            on_behalf: counted.on_behalf(self),
            progress: request.progress.clone(),
        };
        live.session.forward(passed).await
    }

    /// Fails if a request is about a task of another view. Other views may share the session, and the server may not tell them apart.
    fn check_task(&self, server: &ServerName, request: &Passed<'_>) -> Result<(), Failure> {
        if !request.method.starts_with("tasks/") || self.view.forwarded_tasks.has(server, request.params) {
            return Ok(());
        }
        let message = format!("server `{server}` runs no such task that this client started");
        Err(Failure::new(Kind::NotPermitted, message))
    }
}

/// A request that is passed on.
struct Passed<'a> {
    method: &'a str,
    params: &'a RawValue,
    forwarding: &'a Forwarding,
    progress: Option<mpsc::Sender<Progress>>,
}

impl Passed<'_> {
    /// Whether the server may send questions during the request. Those of a task belong to the session that started it.
    fn may_be_asked(&self) -> bool {
        self.forwarding.answers_requests && !self.method.starts_with("tasks/")
    }

    /// Whether the request is sent again in a new session after this fault.
    fn may_repeat(&self, fault: &Fault) -> bool {
        fault.loses_session() && (fault.sent != Sent::Maybe || READING.contains(&self.method))
    }
}

fn refused(failure: Failure) -> Box<Forwarded> {
    Box::new(Forwarded::Failed(failure))
}

/// The failure of a request: the server's error response, or why there is none.
fn failed(fault: &Fault, server: &Server, method: &str) -> Forwarded {
    match call::forwarded_error(fault, server) {
        Some(error) => Forwarded::of_error(error),
        None => Forwarded::Failed(call::request_failure(server, fault, method)),
    }
}

fn check_forwarding(forwarding: &Forwarding) -> Result<(), Failure> {
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
