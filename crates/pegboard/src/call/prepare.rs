//! The arguments as the tool's server gets them: read, mapped back, checked.

use super::{Route, ToolCall, View};
use crate::{args::Arguments, outcome::Failure};

/// The arguments to send, or why the call cannot be made with what was given.
pub(super) fn arguments(route: &Route, call: &ToolCall, _view: &View) -> Result<Arguments, Failure> {
    let own = route
        .definition
        .as_ref()
        .and_then(|definition| definition.reverse.apply(&call.arguments));
    Ok(own.unwrap_or_else(|| call.arguments.clone()))
}
