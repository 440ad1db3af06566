//! Whether a call may be made: what policies and people say.

use super::{Route, ToolCall, View};
use crate::outcome::Failure;

/// Returns when the call may be made, or says why it may not.
#[expect(clippy::unused_async, reason = "a person may have to be asked")]
pub(super) async fn ask(_route: &Route, _call: &ToolCall, _view: &View) -> Result<(), Failure> {
    Ok(())
}
