//! Hints: what a person can do about an error.

/// An error that may suggest a remedy.
pub trait Hint {
    /// One lower-case sentence that says what a person can do, if anything.
    fn hint(&self) -> Option<String>;
}
