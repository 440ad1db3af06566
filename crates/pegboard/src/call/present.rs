//! What a caller is given of a result: the blocks as they came, or what the policies make of them.

use crate::{
    outcome::{Answer, Outcome},
    session::CallResult,
};

/// The outcome of a call that was answered.
pub(super) fn present(result: CallResult) -> Outcome {
    let answer = Answer {
        content: result.content,
        structured: result.structured,
        meta: result.meta,
        executed: true,
    };
    if result.is_error {
        Outcome::ToolFailed(answer)
    } else {
        Outcome::Done(answer)
    }
}
