//! The arguments as the tool's server gets them: read, mapped back, checked.

use super::{Route, ToolCall, View, handles};
use crate::{args::Arguments, outcome::Failure};

/// The arguments to send, or why the call cannot be made with what was given.
pub(super) async fn arguments(_route: &Route, call: &ToolCall, view: &View) -> Result<Arguments, Failure> {
    let arguments = call.arguments.clone();
    let arguments = handles::fill(arguments, &view.outputs.spill).await?;
    Ok(arguments)
}
