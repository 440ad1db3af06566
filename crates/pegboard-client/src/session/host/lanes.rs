//! [`Lanes`]: the questions of a server by who answers them, so that a client that does not answer holds up no other.

use std::{collections::VecDeque, sync::Arc};

use pegboard_protocol::method;

use super::call_owner::CallOwner;
use crate::session::{calls_in_flight::Attribution, server_requests::ServerRequest};

/// How many questions one host is asked at once.
const AT_ONCE: usize = 16;
/// How many questions a host is asked at once that passes them on to a client, which may leave each of its calls waiting for an answer.
const PASSED_ON_AT_ONCE: usize = 64;
/// How many more questions to the same host may wait.
const WAITING: usize = 64;
/// The most questions of one server.
const MAX_HELD: usize = 1024;

/// The questions of one server that are asked or wait for that.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    last_number: u64,
    held: usize,
}

/// The questions that are answered in the same place.
#[derive(Debug)]
struct Lane {
    number: u64,
    of: LaneOf,
    at_once: usize,
    asked: usize,
    waiting: VecDeque<ServerRequest>,
}

#[derive(Debug)]
enum LaneOf {
    /// The host of the connection.
    Connection,
    /// The tasks that the server has started here and waits for. Their number is bounded.
    Tasks,
    /// The host and the principal of a view.
    Audience(Arc<CallOwner>),
}

impl LaneOf {
    fn new(request: &ServerRequest) -> Self {
        match &request.attribution {
            _ if request.method == method::TASKS_RESULT => Self::Tasks,
            Attribution::Call(owner) if owner.is_private() => Self::Audience(owner.clone()),
            _ => Self::Connection,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Connection, Self::Connection) | (Self::Tasks, Self::Tasks) => true,
            (Self::Audience(one), Self::Audience(other)) => one.has_audience_of(other),
            _ => false,
        }
    }

    fn at_once(&self) -> usize {
        match self {
            Self::Tasks => PASSED_ON_AT_ONCE,
            Self::Audience(owner) if owner.host().is_some_and(|host| host.takes_requests) => PASSED_ON_AT_ONCE,
            Self::Connection | Self::Audience(_) => AT_ONCE,
        }
    }
}

impl Lanes {
    /// Adds a question. Returns it if there are too many.
    pub(super) fn add(&mut self, request: ServerRequest) -> Option<ServerRequest> {
        if self.held >= MAX_HELD {
            return Some(request);
        }
        let of = LaneOf::new(&request);
        let index = match self.lanes.iter().position(|lane| lane.of.is(&of)) {
            Some(index) => index,
            None => {
                self.last_number += 1;
                self.lanes.push(Lane {
                    number: self.last_number,
                    at_once: of.at_once(),
                    of,
                    asked: 0,
                    waiting: VecDeque::new(),
                });
                self.lanes.len() - 1
            }
        };
        let lane = &mut self.lanes[index];
        if lane.waiting.len() >= WAITING {
            return Some(request);
        }
        lane.waiting.push_back(request);
        self.held += 1;
        None
    }

    /// Takes a question whose turn it is, and the number of its lane.
    pub(super) fn next(&mut self) -> Option<(u64, ServerRequest)> {
        self.lanes.iter_mut().find_map(|lane| {
            let request = (lane.asked < lane.at_once).then(|| lane.waiting.pop_front())??;
            lane.asked += 1;
            Some((lane.number, request))
        })
    }

    /// Notes that a question of a lane was answered or dropped.
    pub(super) fn note_answer(&mut self, number: u64) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.number == number) {
            lane.asked -= 1;
            self.held -= 1;
        }
        self.lanes.retain(|lane| lane.asked > 0 || !lane.waiting.is_empty());
    }
}
