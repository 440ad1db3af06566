//! The acts of a fake server.

use std::time::Duration;

use serde_json::Value;

/// One thing the server does. A wire plays a list of them in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    /// Sends a message that is not the answer.
    Send(Value),
    /// Sends the answer.
    Answer(Value),
    /// Sends these bytes as one message, whatever they are; it stands for the answer.
    Line(Vec<u8>),
    /// Sends these bytes as one message, whatever they are; the answer may follow.
    Say(Vec<u8>),
    /// Sends these bytes without any framing.
    Bytes(Vec<u8>),
    /// Sends these bytes again and again without framing, without end when there is no count.
    Repeat {
        /// What is sent.
        bytes: Vec<u8>,
        /// How often.
        times: Option<u64>,
    },
    /// Waits.
    Wait(Duration),
    /// Sends progress notices, without end when there is no count.
    Progress {
        /// The caller's token.
        token: Value,
        /// How many.
        count: Option<u64>,
        /// The time between two.
        every: Duration,
    },
    /// Asks the client and waits for its answer, which is appended to ours.
    Ask(Value),
    /// Writes the nonce into the ledger: from here on the call counts as executed.
    Record(String),
    /// Waits until the test opens this gate.
    Gate(String),
    /// Sends a list-changed notice to everyone who listens, this many times.
    Announce {
        /// How many.
        count: u64,
        /// The time between two.
        every: Duration,
    },
    /// Keeps this stream open for the notices the client asked for.
    Listen {
        /// The id of the request.
        id: Value,
        /// The kinds of notices.
        filter: Value,
        /// How long; for ever when absent.
        limit: Option<Duration>,
    },
    /// Writes to stderr this often.
    Stderr {
        /// What is written.
        text: String,
        /// How often.
        times: u64,
    },
    /// Stops reading input.
    StopReading,
    /// Says nothing more, but keeps the stream open.
    Hang,
    /// Ends the output.
    Close,
    /// Resets the connection, as far as the wire can.
    Reset,
    /// Ends the process, or the server as far as the wire has one.
    Die(i32),
}
