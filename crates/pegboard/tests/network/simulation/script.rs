//! The script of a seed: the server, the calls, the plan of each connection, and the events of the whole network.

use std::time::Duration;

use pegboard_testkit::Era;

use crate::support::rng::Rng;

/// The largest number of bytes before a connection is cut: several messages, with their headers.
const FAR: u64 = 6_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Http1,
    /// With TLS, because the client negotiates HTTP/2 only there.
    Http2,
}

/// Everything that a seed determines.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) wire: Wire,
    pub(crate) era: Era,
    /// Whether responses are event streams.
    pub(crate) streams: bool,
    /// Whether the circuit breaker is on.
    pub(crate) breaker: bool,
    pub(crate) calls: Vec<Call>,
    /// The events of the whole network, each with the delay after the previous one.
    pub(crate) events: Vec<(Duration, Event)>,
    pub(crate) faults: Faults,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) after: Duration,
    /// Whether the tool is read-only, so that the call may be retried.
    pub(crate) reads: bool,
    /// How long the server works on it.
    pub(crate) work: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// No byte passes and no connection opens until the network is whole again; nothing is lost.
    Partition,
    /// Connections are refused.
    Refuse,
    /// Bytes pass again, and connections open.
    Open,
    /// All connections are reset.
    ResetAll,
    /// The server restarts without its sessions.
    Restart,
    /// The server forgets its sessions.
    Forget,
}

impl Script {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::of(seed);
        let wire = if rng.percent(50) { Wire::Http1 } else { Wire::Http2 };
        let era = if rng.percent(50) { Era::Legacy } else { Era::Modern };
        let calls = 4 + rng.below(9);
        let events = rng.below(5);
        Self {
            wire,
            era,
            streams: rng.percent(40),
            breaker: rng.percent(30),
            calls: (0..calls).map(|_| Call::random(&mut rng)).collect(),
            events: (0..events)
                .map(|_| (rng.up_to_ms(250), Event::random(&mut rng)))
                .collect(),
            faults: Faults::random(&mut rng),
        }
    }
}

impl Call {
    fn random(rng: &mut Rng) -> Self {
        Self {
            after: rng.up_to_ms(400),
            reads: rng.percent(30),
            work: rng.up_to_ms(30),
        }
    }
}

impl Event {
    fn random(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0 | 1 => Self::Partition,
            2 => Self::Refuse,
            3 | 4 => Self::Open,
            5 => Self::ResetAll,
            6 => Self::Restart,
            _ => Self::Forget,
        }
    }
}

/// How likely each connection is to fail, and how.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    seed: u64,
    /// In percent of the connections.
    faulty: u64,
    /// In percent of the connections.
    slow: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64, faulty: u64, slow: u64) -> Self {
        Self { seed, faulty, slow }
    }

    fn random(rng: &mut Rng) -> Self {
        let faulty = [0, 30, 60, 90][rng.below(4) as usize];
        let slow = rng.below(60);
        Self::new(rng.next(), faulty, slow)
    }

    /// The plan of the connection with this number. It does not depend on when the connection opens.
    pub(crate) fn of_connection(&self, number: u64) -> Plan {
        let mut rng = Rng::of(self.seed ^ number.wrapping_mul(0xA24B_AED4_963E_E407));
        let is_slow = rng.percent(self.slow);
        Plan {
            wait: if is_slow { rng.up_to_ms(60) } else { Duration::ZERO },
            chunk: if is_slow { 1 + rng.below(400) as usize } else { 16 << 10 },
            delay_ms: if is_slow { rng.below(4) } else { 0 },
            fate: if rng.percent(self.faulty) {
                Fate::random(&mut rng)
            } else {
                Fate::Whole
            },
        }
    }
}

/// The plan of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The delay until the connection passes bytes: connections overtake each other.
    pub(crate) wait: Duration,
    /// The largest number of bytes that pass at once.
    pub(crate) chunk: usize,
    /// The longest delay of each chunk.
    pub(crate) delay_ms: u64,
    pub(crate) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    /// It is accepted and reset.
    Rejected,
    /// It is accepted, and all its bytes are dropped.
    BlackHole,
    /// It is cut after a number of bytes in one direction.
    Cut {
        direction: Direction,
        after: u64,
        how: How,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Both sides read a reset.
    Reset,
    /// Both sides read an orderly end.
    End,
    /// Further bytes in this direction are dropped; the other direction works.
    HalfOpen,
}

impl Fate {
    fn random(rng: &mut Rng) -> Self {
        match rng.below(10) {
            0 => Self::Rejected,
            1 => Self::BlackHole,
            _ => Self::Cut {
                direction: if rng.percent(50) {
                    Direction::Up
                } else {
                    Direction::Down
                },
                after: rng.below(FAR),
                how: [How::Reset, How::Reset, How::End, How::HalfOpen][rng.below(4) as usize],
            },
        }
    }
}
