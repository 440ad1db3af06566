//! What is wrong today: each entry names cells that do not end as they must, and what is seen instead.

use crate::case::Cell;

/// Cells that are wrong, until the fault behind them is mended. An entry that is no longer true fails the test.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// The wires and eras by letter, as in a case.
    pub(crate) wires: &'static str,
    pub(crate) eras: &'static str,
    /// What is seen.
    pub(crate) seen: &'static str,
    /// What is behind it.
    pub(crate) why: &'static str,
}

impl Known {
    pub(crate) fn covers(&self, cell: &Cell) -> bool {
        self.id == cell.case.id && cell.is_among(self.wires, self.eras)
    }
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "F015",
        wires: "2",
        eras: "",
        seen: "refused unavailable, ran 0; [\"certificate\"] is not told; 0 requests",
        why: "over HTTP/2 the alert of the server is not recognised: no hint names `tls.client_cert`, and the server is dialled again and again",
    },
    Known {
        id: "F046",
        wires: "W",
        eras: "",
        seen: "lost transport, may have run, ran 1; then ok, ran 1",
        why: "a message over the limit ends the WebSocket, and every call on it as cut off; none is told that a limit was passed",
    },
    Known {
        id: "F048c",
        wires: "W",
        eras: "",
        seen: "lost internal, may have run, ran 1; then ok, ran 1",
        why: "a byte order mark is skipped on every wire but WebSocket",
    },
    Known {
        id: "X50",
        wires: "H2",
        eras: "l",
        seen: "all ok: false; 0 unsure",
        why: "the budget of repetitions also counts calls that the server turned away for an old session, so that some callers see the session end",
    },
];
