//! What a person can do about an error.

/// An error that may know a way out.
pub trait Hint {
    /// One sentence in lower case that tells a person what to do, when there is something to do.
    fn hint(&self) -> Option<String>;
}
