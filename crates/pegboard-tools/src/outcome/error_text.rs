//! The text of an error from the program's own code, with its causes.

use std::error::Error;

/// The longest text in bytes that is kept.
const MAX_TEXT: usize = 4 << 10;
/// The most causes that are named.
const MAX_CAUSES: usize = 16;

/// Writes an error and its causes, such as `cannot open the store: permission denied`. A cause that the error already quotes is left out.
pub fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()).take(MAX_CAUSES) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        if text.len() > MAX_TEXT {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}
