//! [`MessageOrigin`]: where a message came from.

/// Which requests a message may respond to.
#[derive(Debug, Clone, Copy)]
pub(super) enum MessageOrigin {
    /// The message came on a stream that carries the responses to all requests.
    Shared,
    /// The message came in the HTTP response to this request.
    ResponseTo(u64),
}

impl MessageOrigin {
    pub(super) fn may_respond_to(self, id: u64) -> bool {
        match self {
            Self::Shared => true,
            Self::ResponseTo(request) => request == id,
        }
    }
}
