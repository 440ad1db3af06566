//! The file that all wrappers of a folder share: how a tool is called, and the one `ToolError`.

use super::Language;

impl Language {
    /// The file that wrappers of this language import, beside them: its name and its source. A program needs none.
    pub(crate) fn shared(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Ts => Some(("pegboard_calls.ts", include_str!("shared/pegboard_calls.ts"))),
            Self::Python => Some(("pegboard_calls.py", include_str!("shared/pegboard_calls.py"))),
            Self::Rust => Some(("pegboard_calls.rs", include_str!("shared/pegboard_calls.rs"))),
            Self::Cli => None,
        }
    }
}
