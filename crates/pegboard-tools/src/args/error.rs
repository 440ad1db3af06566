//! Errors of reading a call's arguments.

/// Why a text cannot be the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// It is not JSON.
    #[error("the arguments are not JSON: {problem} (line {line}, column {column})")]
    NotJson {
        /// The line of the syntax error, counted from one.
        line: usize,
        /// The column in that line.
        column: usize,
        /// The parser's message, without the position.
        problem: String,
    },
    /// It is JSON, but not an object.
    #[error("the arguments must be a JSON object, such as {{\"key\": \"value\"}}")]
    NotAnObject,
    /// An argument was given twice.
    #[error("the argument `{0}` is given twice")]
    Twice(String),
    /// A pair sets an item of a list without the items before it.
    #[error("the argument `{0}` leaves out items of its list; number them 0, 1, 2 in order")]
    Gap(String),
    /// It is too long.
    #[error("the arguments have {bytes} bytes, and {limit} are allowed")]
    TooLong {
        /// The length of the text.
        bytes: usize,
        /// The longest text that is accepted.
        limit: usize,
    },
}
