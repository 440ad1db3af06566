//! Completion of prompt arguments and URI template variables.

use serde_json::{Map, Value};

use super::toolset_handle::Toolset;
use crate::{
    name::ServerName,
    outcome::{Completion, Failure},
    session::CompletionOf,
};

impl Toolset {
    /// Requests completions for an argument that begins with `value`. `context` holds the arguments that are set already.
    pub async fn complete(
        &self,
        server: &ServerName,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        context: &Map<String, Value>,
    ) -> Result<Completion, Failure> {
        let what = format!("completing `{}`", argument.escape_debug());
        self.read_request(server, "completions", &what, |live| async move {
            live.session.complete(of, argument, value, context).await
        })
        .await
    }
}
