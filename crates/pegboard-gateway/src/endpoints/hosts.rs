//! The hosts that answer what servers ask: [`ClientHost`] asks the client whose call it is, [`GatewayHost`] offers that to servers.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use pegboard::{
    Host,
    host::{HostContext, SamplingLimits},
};
use pegboard_protocol::code;
use serde_json::Value;

use super::{
    open_exchanges::{OpenExchanges, QuestionRoute},
    related_tasks::replace_related,
};
use crate::protocol::{RpcError, check_capability};

/// The result of a request, or the code and the message of an error.
type Asked<'a> = Pin<Box<dyn Future<Output = Result<Value, (i64, String)>> + Send + 'a>>;

/// The host of a board behind a gateway. It offers to servers what clients may be able to answer, and answers nothing itself: each question
/// goes to the client whose call it belongs to.
///
/// The handshake with a server declares what this host offers, because it is made before any client is known.
///
/// ```no_run
/// use pegboard::{Config, Pegboard};
/// use pegboard_gateway::GatewayHost;
///
/// # fn open(config: Config) {
/// let board = Pegboard::builder(config).host(GatewayHost).open();
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayHost;

impl Host for GatewayHost {
    fn takes_requests(&self) -> bool {
        true
    }

    fn offers_elicitation(&self) -> bool {
        true
    }

    fn offers_sampling(&self) -> bool {
        true
    }

    fn offers_sampling_tools(&self) -> bool {
        true
    }

    fn offers_sampling_context(&self) -> bool {
        true
    }

    fn offers_roots(&self) -> bool {
        true
    }
}

/// Asks the client whose call a question belongs to. It offers everything, because a principal's connections declare what its first view
/// offers; modern servers are told each client's own capabilities.
#[derive(Debug)]
pub(super) struct ClientHost {
    exchanges: Arc<OpenExchanges>,
}

impl ClientHost {
    pub(super) fn new(exchanges: Arc<OpenExchanges>) -> Self {
        Self { exchanges }
    }

    /// Asks the client. The client knows the task that a question is about by another id than the server.
    async fn ask(&self, context: HostContext<'_>, method: &str, mut params: Value) -> Result<Value, (i64, String)> {
        let ids = &self.exchanges.task_ids;
        let task = replace_related(&mut params, |theirs| ids.id_of(context.server.as_str(), theirs));
        let mut answer = self.ask_client(context, method, params).await?;
        replace_related(&mut answer, |_| task);
        Ok(answer)
    }

    async fn ask_client(&self, context: HostContext<'_>, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let call = context.caller.map_or("", |caller| caller.call);
        if let Some(task) = self.exchanges.find_task(call) {
            let asked = task.ask(context.request, method, params).await;
            return asked.map_err(|error| self.translate_error(call, error));
        }
        let (call, exchange) = match self.exchanges.route_question(call, context.candidates) {
            QuestionRoute::Exchange(call, exchange) => (call, exchange),
            QuestionRoute::None(call) => return Err(self.unattended_error(&call, method, &params)),
        };
        if let Some(id) = params.get("elicitationId").and_then(Value::as_str) {
            self.exchanges.note_elicitation(id);
        }
        let asked = exchange.ask_named(context.request, method, params).await;
        asked.map_err(|error| self.translate_error(&call, error))
    }

    /// The error for a question to a call without an exchange. The exchanges of clients that answer no questions are not kept.
    fn unattended_error(&self, call: &str, method: &str, params: &Value) -> (i64, String) {
        match check_capability(&Bytes::from_static(b"{}"), method, params) {
            Err(lacking) if !call.is_empty() => self.translate_error(call, lacking),
            _ => {
                let message = "no call of a client that this question could belong to is open, so no client was asked";
                (code::INTERNAL_ERROR, message.to_owned())
            }
        }
    }

    /// What the server is told. If its client lacks a capability, it is as if that did not know the method.
    fn translate_error(&self, call: &str, error: RpcError) -> (i64, String) {
        if error.code != code::MISSING_CAPABILITY {
            return (error.code, error.message);
        }
        let message = error.message.clone();
        self.exchanges.note_lacking(call, error);
        (code::METHOD_NOT_FOUND, message)
    }
}

impl Host for ClientHost {
    fn takes_requests(&self) -> bool {
        GatewayHost.takes_requests()
    }

    fn offers_elicitation(&self) -> bool {
        GatewayHost.offers_elicitation()
    }

    fn offers_sampling(&self) -> bool {
        GatewayHost.offers_sampling()
    }

    fn offers_sampling_tools(&self) -> bool {
        GatewayHost.offers_sampling_tools()
    }

    fn offers_sampling_context(&self) -> bool {
        GatewayHost.offers_sampling_context()
    }

    fn offers_roots(&self) -> bool {
        GatewayHost.offers_roots()
    }

    /// The client limits what its model does.
    fn sampling_limits(&self) -> SamplingLimits {
        let mut limits = SamplingLimits::default();
        (limits.tokens, limits.per_minute) = (u64::MAX, usize::MAX);
        limits
    }

    fn request<'a>(&'a self, context: HostContext<'a>, method: &'a str, params: Value) -> Asked<'a> {
        Box::pin(self.ask(context, method, params))
    }
}
