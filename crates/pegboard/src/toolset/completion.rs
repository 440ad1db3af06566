//! Completion of prompt arguments and URI template variables.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::{open_view::OpenView, server_requests::ServerRequests};
use crate::call::check_text;
use pegboard_client::session::CompletionOf;
use pegboard_tools::outcome::{Completion, Failure};

/// Requests completions for an argument that begins with `value`. `context` holds the arguments that are set already.
pub(super) fn complete<'a>(
    open: &'a OpenView,
    server: &'a str,
    of: &'a CompletionOf,
    argument: &'a str,
    value: &'a str,
    context: &'a Map<String, Value>,
) -> BoxFuture<'a, Result<Completion, Failure>> {
    Box::pin(async move {
        let requests = ServerRequests::new(open);
        let server = &requests.parse_name(server)?;
        let what = format!("completing `{}`", argument.escape_debug());
        if let Ok(target) = requests.find_server(server) {
            let mut texts = context.values().filter_map(Value::as_str).chain([value]);
            texts.try_for_each(|text| check_text(&target, argument, text))?;
        }
        let request = requests.begin().await?;
        let on_behalf = request.on_behalf(open);
        requests
            .read(server, "completions", &what, |live| async move {
                live.session.complete(of, argument, value, context, on_behalf).await
            })
            .await
    })
}
