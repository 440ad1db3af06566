//! [`EarlyEnd`]: why the gateway ends a request before it is done, and the error that says so.

use pegboard_protocol::{RpcError, code};
use serde_json::json;

/// After how many seconds a request may be sent again that a stopping server has not carried out.
const RETRY_LATER: u32 = 1;

/// Why the gateway ends a request before it is done, or does not start it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EarlyEnd {
    /// The server stops.
    Stopping = 2,
    /// The token that the connection was opened with has expired. Requests that were started go on.
    TokenExpired,
    /// The token was removed, or has other rights.
    TokenWithdrawn,
    /// The session was deleted or evicted, or the connection has ended.
    SessionEnded,
    /// The stream of the request broke, and the client did not come back in time.
    StreamLost,
    /// The response was not fetched in time and is no longer kept.
    ResponseDropped,
    /// The client did not read other responses in time, so that there was no room for this one.
    Unread,
}

impl EarlyEnd {
    const ALL: [Self; 7] = [
        Self::Stopping,
        Self::TokenExpired,
        Self::TokenWithdrawn,
        Self::SessionEnded,
        Self::StreamLost,
        Self::ResponseDropped,
        Self::Unread,
    ];

    /// The reason with this number.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|end| *end as u8 == number)
    }

    /// The error of a request that ends early. Only one that has not run invites the client to send it again, and only if that can help.
    pub(crate) fn error(self, may_have_executed: bool) -> RpcError {
        let (reason, cause) = self.texts();
        let message = if may_have_executed {
            format!("{cause}; the request may have taken effect, so check that before you send it again")
        } else {
            format!("{cause}; the request was not started and has had no effect")
        };
        let mut data = json!({"may_have_executed": may_have_executed, "reason": reason});
        if self == Self::Stopping && !may_have_executed {
            data["retry_after"] = RETRY_LATER.into();
        }
        RpcError::new(code::STOPPING, message).data(data)
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Stopping => ("stopping", "the server stops"),
            Self::TokenExpired => ("token_expired", "the token has expired"),
            Self::TokenWithdrawn => ("token_withdrawn", "the token is no longer valid"),
            Self::SessionEnded => ("session_ended", "the session has ended"),
            Self::StreamLost => (
                "stream_lost",
                "the stream of the request broke, and the client did not come back in time",
            ),
            Self::ResponseDropped => ("response_dropped", "the response is no longer kept"),
            Self::Unread => (
                "unread",
                "the response was dropped, because the client did not read the responses before it in time",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_has_not_run_may_be_sent_again() {
        for end in EarlyEnd::ALL {
            assert_eq!(EarlyEnd::from_number(end as u8), Some(end));
            for may_have_executed in [false, true] {
                let error = end.error(may_have_executed);
                let data = error.data.unwrap();
                assert_eq!(
                    (error.code, &data["may_have_executed"]),
                    (code::STOPPING, &may_have_executed.into())
                );
                let is_invited = end == EarlyEnd::Stopping && !may_have_executed;
                assert_eq!(data.get("retry_after").is_some(), is_invited, "{end:?}");
            }
        }
    }
}
