//! Requests that are no tool calls, for one server.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use pegboard::{
    ServerName,
    forward::{Forwarded, ResultKind},
};
use pegboard_protocol::{
    code,
    method::{self, notification},
};
use serde_json::{Value, json, value::RawValue};

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
        let params = own_params(params, server, method, None, exchange)?;
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
            forwarded => {
                let answer = request_answer(forwarded).map_err(|error| match method {
                    method::RESOURCES_READ if exchange.client().version().is_modern() => {
                        modern_not_found(error, params)
                    }
                    _ => error,
                });
                let server = ServerName::parse(server).ok();
                Box::pin(self.or_sign_in_link(&tools, server.as_ref(), method, answer, exchange)).await
            }
        }
    }

    /// Takes a notification of a client. Servers are told that a legacy client's roots have changed; they ask for them when they need them.
    pub(super) fn handle_notification(&self, client: &Arc<Client>, notification: &Notification) {
        if &*notification.method != notification::ROOTS_LIST_CHANGED || client.version().is_modern() {
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

/// The params of a request as its server reads them: with its own request state, and its own value of one field.
pub(super) fn own_params<'a>(
    params: &'a Params,
    server: &str,
    method: &str,
    field: Option<(&str, Value)>,
    exchange: &Exchange,
) -> Result<Cow<'a, RawValue>, RpcError> {
    let sealed = params.text("requestState");
    if sealed.is_none() && field.is_none() {
        return params.parse::<&RawValue>().map(Cow::Borrowed);
    }
    let mut fields: BTreeMap<String, Box<RawValue>> = params.parse()?;
    if let Some(sealed) = sealed {
        let state = unseal_state(exchange, &sealed, server, method)?;
        fields.insert("requestState".into(), raw(&state)?);
    }
    if let Some((key, value)) = field {
        fields.insert(key.to_owned(), raw(&value)?);
    }
    raw(&fields).map(Cow::Owned)
}

/// A legacy server has a code of its own for a resource that does not exist.
fn modern_not_found(mut error: RpcError, params: &RawValue) -> RpcError {
    if error.code != code::RESOURCE_NOT_FOUND {
        return error;
    }
    error.code = code::INVALID_PARAMS;
    if error.data.is_none() {
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        error.data = Some(json!({ "uri": params["uri"] }));
    }
    error
}
