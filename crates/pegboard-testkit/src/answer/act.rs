//! The acts of a fake server: what it sends, waits for and does.

use std::time::Duration;

use serde_json::Value;

use crate::script::{Effect, LogLine, Question};

/// One step of the server's behaviour. A transport plays a list of them in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// Sends a message that is not the response.
    Send(Value),
    /// Sends the response.
    Answer(Value),
    /// Sends these bytes as one message in place of the response.
    Line(Vec<u8>),
    /// Sends these bytes as one message; the response may follow.
    Say(Vec<u8>),
    /// Sends these bytes without any framing.
    Bytes(Vec<u8>),
    /// Sends these bytes repeatedly without framing; endlessly without `times`.
    Repeat {
        /// The bytes.
        bytes: Vec<u8>,
        /// How often.
        times: Option<u64>,
    },
    /// Waits.
    Wait(Duration),
    /// Sends progress notifications; endlessly without `count`.
    Progress {
        /// The caller's token.
        token: Value,
        /// How many.
        count: Option<u64>,
        /// The time between two.
        every: Duration,
    },
    /// Sends a request to the client and waits for its response, which is appended to the result.
    Ask(Value),
    /// Sends questions to the client together and waits for their answers, which are appended to the result.
    Questions(Vec<Question>),
    /// Sends a log message, unless the client set a higher level (legacy era).
    Log(LogLine),
    /// Sets the client's log level (legacy era).
    SetLevel(String),
    /// Subscribes the client to a resource, or ends its subscription (legacy era).
    Subscribe {
        /// The resource.
        uri: String,
        /// Whether the subscription begins.
        on: bool,
    },
    /// Changes the server and notifies its clients.
    Apply(Effect),
    /// Writes the nonce to the ledger: from here on the call counts as executed.
    Record(String),
    /// Waits until the test opens this gate.
    Gate(String),
    /// Sends `notifications/tools/list_changed` to all subscribers, this many times.
    Announce {
        /// How many.
        count: u64,
        /// The time between two.
        every: Duration,
    },
    /// Keeps this stream open for the notifications that the client subscribed to.
    Listen {
        /// The id of the request.
        id: Value,
        /// The kinds of notifications.
        filter: Value,
        /// How long; endlessly if absent.
        limit: Option<Duration>,
    },
    /// Writes to stderr repeatedly.
    Stderr {
        /// The text.
        text: String,
        /// How often.
        times: u64,
    },
    /// Stops reading input.
    StopReading,
    /// Sends nothing more, but keeps the stream open.
    Hang,
    /// Ends the output.
    Close,
    /// Resets the connection, as far as the transport can.
    Reset,
    /// Ends the process with this code; in the test's process, the connection or the server.
    Die(i32),
}
