//! What a seed says: the server, the calls, what becomes of each connection, and what happens to the whole network meanwhile.

use std::time::Duration;

use pegboard_testkit::Era;

use crate::support::chance::Chance;

/// The most bytes that pass before a connection is cut: several messages, with the headers around them.
const FAR: u64 = 6_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Http1,
    /// With TLS, because the client agrees on HTTP/2 only there.
    Http2,
}

/// Everything that a seed decides.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) wire: Wire,
    pub(crate) era: Era,
    /// Whether answers come as event streams.
    pub(crate) streams: bool,
    /// Whether callers are turned away for a moment after failures.
    pub(crate) breaker: bool,
    pub(crate) calls: Vec<Call>,
    /// What happens to the whole network, each so long after what came before.
    pub(crate) events: Vec<(Duration, Event)>,
    pub(crate) faults: Faults,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) after: Duration,
    /// Whether the tool only reads, so that the call may be made again.
    pub(crate) reads: bool,
    /// How long the server works on it.
    pub(crate) work: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// No byte passes and no connection is made until the network is whole again; nothing is lost.
    Partition,
    /// Connections are refused.
    Refuse,
    /// Bytes pass again, and connections are made.
    Open,
    /// All connections are reset.
    ResetAll,
    /// The server starts anew and knows no session.
    Restart,
    /// The server forgets its sessions.
    Forget,
}

impl Script {
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::of(seed);
        let wire = if chance.percent(50) { Wire::Http1 } else { Wire::Http2 };
        let era = if chance.percent(50) { Era::Legacy } else { Era::Modern };
        let calls = 4 + chance.below(9);
        let events = chance.below(5);
        Self {
            wire,
            era,
            streams: chance.percent(40),
            breaker: chance.percent(30),
            calls: (0..calls).map(|_| Call::random(&mut chance)).collect(),
            events: (0..events)
                .map(|_| (chance.up_to_ms(250), Event::random(&mut chance)))
                .collect(),
            faults: Faults::random(&mut chance),
        }
    }
}

impl Call {
    fn random(chance: &mut Chance) -> Self {
        Self {
            after: chance.up_to_ms(400),
            reads: chance.percent(30),
            work: chance.up_to_ms(30),
        }
    }
}

impl Event {
    fn random(chance: &mut Chance) -> Self {
        match chance.below(8) {
            0 | 1 => Self::Partition,
            2 => Self::Refuse,
            3 | 4 => Self::Open,
            5 => Self::ResetAll,
            6 => Self::Restart,
            _ => Self::Forget,
        }
    }
}

/// How likely each connection is to fail, and in which way.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    seed: u64,
    /// Of a hundred connections.
    faulty: u64,
    /// Of a hundred connections.
    slow: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64, faulty: u64, slow: u64) -> Self {
        Self { seed, faulty, slow }
    }

    fn random(chance: &mut Chance) -> Self {
        let faulty = [0, 30, 60, 90][chance.below(4) as usize];
        let slow = chance.below(60);
        Self::new(chance.next(), faulty, slow)
    }

    /// What becomes of the connection with this number. It does not depend on when the connection is made.
    pub(crate) fn of_connection(&self, number: u64) -> Plan {
        let mut chance = Chance::of(self.seed ^ number.wrapping_mul(0xA24B_AED4_963E_E407));
        let is_slow = chance.percent(self.slow);
        Plan {
            wait: if is_slow { chance.up_to_ms(60) } else { Duration::ZERO },
            chunk: if is_slow {
                1 + chance.below(400) as usize
            } else {
                16 << 10
            },
            delay_ms: if is_slow { chance.below(4) } else { 0 },
            fate: if chance.percent(self.faulty) {
                Fate::random(&mut chance)
            } else {
                Fate::Whole
            },
        }
    }
}

/// What becomes of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// How long it takes until the connection passes bytes: connections overtake each other.
    pub(crate) wait: Duration,
    /// The most bytes that pass at once.
    pub(crate) chunk: usize,
    /// The longest delay of each of these parts.
    pub(crate) delay_ms: u64,
    pub(crate) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    /// It is accepted and reset.
    Rejected,
    /// It is accepted, and no byte of it arrives anywhere.
    BlackHole,
    /// It is cut after so many bytes in one direction.
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
    /// What follows in this direction is swallowed; the other direction works.
    HalfOpen,
}

impl Fate {
    fn random(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0 => Self::Rejected,
            1 => Self::BlackHole,
            _ => Self::Cut {
                direction: if chance.percent(50) {
                    Direction::Up
                } else {
                    Direction::Down
                },
                after: chance.below(FAR),
                how: [How::Reset, How::Reset, How::End, How::HalfOpen][chance.below(4) as usize],
            },
        }
    }
}
