//! [`ForwardedResult`]: the result of a request as bytes.

use std::fmt;

use bytes::Bytes;

/// The `result` of a response: a JSON object as the server wrote it, except that secrets are masked and, unless the server is trusted,
/// invisible characters are removed.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedResult {
    /// The JSON object.
    #[doc(hidden)]
    pub json: Bytes,
    /// What the result is, by its `resultType`.
    #[doc(hidden)]
    pub kind: ResultKind,
    /// Whether the object has a `resultType`. Without one it is complete.
    #[doc(hidden)]
    pub has_result_type: bool,
    /// Whether the result has `isError` set: the tool reports a failure.
    #[doc(hidden)]
    pub is_error: bool,
    /// The size of the payload in bytes.
    #[doc(hidden)]
    pub payload: usize,
}

/// What a result is, by its `resultType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultKind {
    /// The final result of the request.
    #[default]
    Complete,
    /// A request for input. The same request is sent again with the input in `inputResponses` and the `requestState` of this result.
    InputRequired,
    /// A task that the server runs in the background.
    Task,
    /// A result of another type, which an extension of the protocol defines.
    Other,
}

impl ForwardedResult {
    /// The JSON object. It may have line breaks between its tokens.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the JSON object. A long one is a part of the server's message, and holds the message's share of the board's memory budget until
    /// it is dropped.
    pub fn into_bytes(self) -> Bytes {
        self.json
    }

    /// What the result is.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Whether the object has the field `resultType`, as servers of the newest era write it.
    pub fn has_result_type(&self) -> bool {
        self.has_result_type
    }

    /// Whether it is the result of a tool that failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Creates a final result from the text of an object.
    #[doc(hidden)]
    pub fn from_json(json: String, is_error: bool) -> Self {
        Self {
            payload: json.len(),
            json: json.into(),
            kind: ResultKind::Complete,
            has_result_type: false,
            is_error,
        }
    }
}

impl fmt::Debug for ForwardedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedResult")
            .field("bytes", &self.json.len())
            .field("kind", &self.kind)
            .field("has_result_type", &self.has_result_type)
            .field("is_error", &self.is_error)
            .finish()
    }
}
