//! Requests that are no tool calls, for one server.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use pegboard::forward::{Forwarded, ResultKind};
use serde_json::value::RawValue;

use super::{
    core::Core,
    pass_on::request_answer,
    request_state::unseal_state,
    tool_call::{raw, seal_state_of},
};
use crate::protocol::{Answer, Client, Exchange, Notification, Params, RpcError};

impl Core {
    /// Passes a request on to a server, with params as the client wrote them. Its request state, if it needs input, is sealed.
    pub(super) async fn any_request(&self, server: &str, method: &str, params: &Params, exchange: &Exchange) -> Answer {
        let params = own_state(params, server, method, exchange)?;
        self.send_request(server, method, &params, exchange).await
    }

    /// Passes a request on to a server. `params` have the server's own state.
    pub(super) async fn send_request(
        &self,
        server: &str,
        method: &str,
        params: &RawValue,
        exchange: &Exchange,
    ) -> Answer {
        let tools = self.tools(exchange.client())?;
        match self.pass_on_request(&tools, server, method, params, exchange).await {
            Forwarded::Result(result) if result.kind() == ResultKind::InputRequired => {
                seal_state_of(&result, server, method, exchange)
            }
            forwarded => request_answer(forwarded),
        }
    }

    /// Takes a notification of a client.
    pub(super) fn notified(&self, client: &Arc<Client>, notification: &Notification) {
        let _ = (client, notification);
    }
}

/// The params of a request with the server's own request state.
fn own_state<'a>(
    params: &'a Params,
    server: &str,
    method: &str,
    exchange: &Exchange,
) -> Result<Cow<'a, RawValue>, RpcError> {
    let Some(sealed) = params.text("requestState") else {
        return params.parse::<&RawValue>().map(Cow::Borrowed);
    };
    let state = unseal_state(exchange, &sealed, server, method)?;
    let mut fields: BTreeMap<String, Box<RawValue>> = params.parse()?;
    fields.insert("requestState".into(), raw(&state)?);
    raw(&fields).map(Cow::Owned)
}
