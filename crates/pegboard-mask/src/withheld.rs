//! The replacement of a text that could not be masked.

/// Replaces a text that could not be masked. The wording does not invite the model to retry.
pub(super) const WITHHELD: &str = "[REDACTED: data masking failure — the text could not be safely processed]";
/// The name under which withheld texts are counted.
pub(super) const WITHHELD_NAME: &str = "withheld";

/// A text could not be masked, so it must be withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;
