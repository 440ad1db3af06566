//! [`Core`]: what all endpoints of a board have in common.

use std::sync::Arc;

use bytes::Bytes;
use pegboard::{Pegboard, ToolCall};
use pegboard_protocol::{code, method};

use super::{
    client_tools::{ClientTools, LegacyClient},
    own_tasks::OwnTasks,
    scope::EndpointTarget,
    shared_tools::SharedTools,
    task_inputs::TaskInputs,
};
use crate::{
    protocol::{Answer, Client, Exchange, RawResult, Request, RpcError},
    sign_in::SignInLinks,
};

/// An endpoint's part of the board, and the toolsets of its clients.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) board: Pegboard,
    pub(super) scope: EndpointTarget,
    /// The links to the pages on which people sign in.
    pub(super) links: SignInLinks,
    shared: SharedTools,
    /// The tasks that clients have started here.
    pub(super) tasks: OwnTasks,
    /// What legacy servers ask about tasks of modern clients.
    pub(super) task_inputs: TaskInputs,
}

impl Core {
    pub(super) fn new(board: Pegboard, scope: EndpointTarget, links: SignInLinks) -> Self {
        Self {
            board,
            scope,
            links,
            shared: SharedTools::default(),
            tasks: OwnTasks::default(),
            task_inputs: TaskInputs::default(),
        }
    }

    /// The toolset for the requests of a client.
    ///
    /// Fails if the endpoint is that of a server that was removed: a client that is still connected must not read of an empty board.
    pub(super) fn tools(&self, client: &Arc<Client>) -> Result<Arc<ClientTools>, RpcError> {
        if let Some(name) = self.scope.server()
            && !self.board.has_server(name.as_str())
        {
            let message = format!("server `{name}` was removed; connect to another one");
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        if client.version().is_modern() {
            self.shared.get(&self.board, &self.scope, client)
        } else {
            self.legacy_client(client).tools(&self.board, &self.scope, client)
        }
    }

    /// Writes a tool call that the client's token does not allow to the audit log.
    pub(super) fn audit_refusal(&self, client: &Arc<Client>, request: &Request, why: &str) {
        if &*request.method == method::TOOLS_CALL
            && let Some(name) = request.params.text("name")
            && let Ok(tools) = self.tools(client)
        {
            tools.toolset.refuse_call(&ToolCall::new(&*name), why);
        }
    }

    /// What is kept for a legacy client.
    pub(super) fn legacy_client(&self, client: &Arc<Client>) -> Arc<LegacyClient> {
        client.state(LegacyClient::default)
    }

    /// Notes that the client takes over the result, so that the time that it needs to read it costs no other client of the server anything.
    pub(super) fn hand_over(&self, answer: Answer) -> Answer {
        if let Ok(result) = &answer {
            self.board.hand_over(result.json());
        }
        answer
    }

    /// Answers a legacy client's request to subscribe, whose stream of updates is open, or to unsubscribe.
    pub(super) async fn confirm_subscription(&self, request: &Request, exchange: &Exchange) -> Answer {
        if &*request.method == method::RESOURCES_SUBSCRIBE {
            let uri = request.params.text("uri").unwrap_or_default();
            self.legacy_client(exchange.client())
                .confirmations
                .wait_for_confirmation(&uri)
                .await?;
        }
        Ok(RawResult::from_text(Bytes::from_static(b"{}"), false))
    }
}
