//! Tells native tools who calls them, in an entry of the request's `_meta` that callers cannot set.

use serde_json::{Map, Value, json};

use super::{route::resolved::Route, view::View};
use pegboard_client::native::CALLER_META;
use pegboard_tools::catalog::ToolKind;
use pegboard_tools::tool_call::ToolCall;

/// Adds the caller to the `_meta` of a call of a native tool. An entry of that name that comes from elsewhere is removed.
pub(super) fn with_caller(
    mut meta: Map<String, Value>,
    view: &View,
    route: &Route,
    call: &ToolCall,
) -> Map<String, Value> {
    meta.remove(CALLER_META);
    if route.kind == ToolKind::Native {
        let caller = json!({
            "call": call.id,
            "view": view.name.as_deref(),
            "principal": view.principal.as_ref().map(AsRef::<str>::as_ref),
        });
        meta.insert(CALLER_META.to_owned(), caller);
    }
    meta
}
