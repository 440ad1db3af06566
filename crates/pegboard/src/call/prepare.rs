//! The arguments as the tool's server gets them: read, mapped back, checked.

use super::{Route, ToolCall, View};
use crate::{args::Arguments, outcome::Failure};

/// The arguments to send, or why the call cannot be made with what was given.
pub(super) fn arguments(_route: &Route, call: &ToolCall, _view: &View) -> Result<Arguments, Failure> {
    Ok(call.arguments.clone())
}
