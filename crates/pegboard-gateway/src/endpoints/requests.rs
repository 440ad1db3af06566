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

    /// Takes a notification of a client. Servers are told that a legacy client's roots have changed; they ask for them when they need them.
    pub(super) fn notified(&self, client: &Arc<Client>, notification: &Notification) {
        if &*notification.method != "notifications/roots/list_changed" || client.version().is_modern() {
            return;
        }
        let Ok(tools) = self.tools(client) else { return };
        for row in self.board.status().servers {
            // Fails for servers that the endpoint does not show.
            if let Err(failure) = tools.toolset.roots_changed(row.name.as_str()) {
                tracing::trace!(server = %row.name, %failure, "the server was not told of changed roots");
            }
        }
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
