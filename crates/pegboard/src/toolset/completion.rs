//! Completion of prompt arguments and URI template variables.

use serde_json::{Map, Value};

use super::toolset_handle::Toolset;
use crate::call::check_text;
use pegboard_client::session::CompletionOf;
use pegboard_tools::outcome::{Completion, Failure};

impl Toolset {
    /// Requests completions for an argument that begins with `value`. `context` holds the arguments that are set already.
    pub async fn complete(
        &self,
        server: impl AsRef<str>,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        context: &Map<String, Value>,
    ) -> Result<Completion, Failure> {
        let server = &self.server_name(server.as_ref())?;
        let what = format!("completing `{}`", argument.escape_debug());
        if let Ok(target) = self.server(server) {
            let mut texts = context.values().filter_map(Value::as_str).chain([value]);
            texts.try_for_each(|text| check_text(&target, argument, text))?;
        }
        let request = self.begin_request()?;
        let on_behalf = request.on_behalf(self);
        self.read_request(server, "completions", &what, |live| async move {
            live.session.complete(of, argument, value, context, on_behalf).await
        })
        .await
    }
}
