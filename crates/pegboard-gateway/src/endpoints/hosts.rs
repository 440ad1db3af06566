//! The hosts that answer what servers ask: [`ClientHost`] asks the client whose call it is, [`GatewayHost`] offers that to servers.

use std::{pin::Pin, sync::Arc};

use pegboard::{
    Host,
    host::{ElicitAnswer, Elicitation, HostContext, SamplingLimits},
};
use serde_json::{Map, Value, json};

use super::open_exchanges::OpenExchanges;
use crate::protocol::RpcError;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The host of a board behind a gateway. It offers to servers what clients may be able to answer, and answers nothing itself: each question
/// goes to the client whose call it belongs to.
///
/// A handshake with a server declares what this host offers, because it is made before any client is known.
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
}

/// Asks the client whose call a question belongs to.
#[derive(Debug)]
pub(super) struct ClientHost {
    exchanges: Arc<OpenExchanges>,
}

impl ClientHost {
    pub(super) fn new(exchanges: Arc<OpenExchanges>) -> Self {
        Self { exchanges }
    }

    async fn ask(&self, context: HostContext<'_>, method: &str, params: Value) -> Result<Value, RpcError> {
        let call = context.caller.map_or("", |caller| caller.call);
        let Some(exchange) = self.exchanges.find(call) else {
            let message = "the call that this question belongs to is not known, so no client was asked";
            return Err(RpcError::new(RpcError::INTERNAL, message));
        };
        if let Some(id) = params.get("elicitationId").and_then(Value::as_str) {
            self.exchanges.note_elicitation(id);
        }
        exchange.ask(method, params).await
    }

    async fn elicited(&self, context: HostContext<'_>, request: Elicitation) -> ElicitAnswer {
        let answer = self
            .ask(context, "elicitation/create", elicitation_params(request))
            .await;
        match answer {
            Ok(mut answer) => match answer["action"].as_str() {
                Some("accept") => ElicitAnswer::Accept(content(answer["content"].take())),
                Some("cancel") => ElicitAnswer::Cancel,
                _ => ElicitAnswer::Decline,
            },
            Err(error) => {
                tracing::debug!(server = %context.server, %error.message, "a client was not asked");
                ElicitAnswer::Decline
            }
        }
    }
}

impl Host for ClientHost {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(&'a self, context: HostContext<'a>, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
        Box::pin(self.elicited(context, request))
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

    /// The client limits what its model does.
    fn sampling_limits(&self) -> SamplingLimits {
        let mut limits = SamplingLimits::default();
        (limits.tokens, limits.per_minute) = (u64::MAX, usize::MAX);
        limits
    }

    fn sample<'a>(&'a self, context: HostContext<'a>, params: Value) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let answer = self.ask(context, "sampling/createMessage", params).await;
            answer.map_err(|error| error.message)
        })
    }
}

fn elicitation_params(request: Elicitation) -> Value {
    match request.url {
        Some(url) => {
            let mut params = json!({"mode": "url", "message": request.message, "url": url});
            if let Some(id) = request.id {
                params["elicitationId"] = id.into();
            }
            params
        }
        None => json!({"message": request.message, "requestedSchema": request.schema}),
    }
}

fn content(content: Value) -> Map<String, Value> {
    match content {
        Value::Object(content) => content,
        _ => Map::new(),
    }
}
