//! A server's process and all that came from it, found and signalled together.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use super::Environment;
use crate::shim::process_table::{self, ProcessEntry};

/// Rounds of looking and killing. Each finds only what was forked during the one before.
const ROUNDS: usize = 16;
/// How long a process may take to become another program before it is looked at again.
const BECOMING: Duration = Duration::from_millis(5);

/// A server's process, which leads a process group, and all that came from it.
#[derive(Debug, Clone)]
pub(super) struct ProcessTree {
    first: Option<ProcessEntry>,
    /// A `NAME=value` that all who came from it have in their environment.
    mark: String,
    /// Who belonged to it before it was asked to end. Some can only be found while their parents live.
    known: Vec<ProcessEntry>,
}

/// Adds a variable with a value that no other server has, and returns them. Everything that comes from a server inherits
/// them, also what a daemon leaves behind, which has neither its group nor a parent in it.
pub(super) fn mark(environment: &mut Environment) -> String {
    const NAME: &str = "PEGBOARD_FAMILY";
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let value = format!("{}.{}.{count}", std::process::id(), now.as_nanos());
    let mark = format!("{NAME}={value}");
    environment.insert(NAME.into(), value.into());
    mark
}

impl ProcessTree {
    /// The family of a child that was just started and not waited for.
    pub(super) fn of(pid: u32, mark: String) -> Self {
        Self {
            first: ProcessEntry::find(pid),
            mark,
            known: Vec::new(),
        }
    }

    /// Notes who belongs to it now.
    pub(super) fn remember(&mut self) {
        self.known = self.look().0;
    }

    /// Asks it to end.
    pub(super) fn ask(&mut self) {
        self.remember();
        process_table::signal(&self.known, Signal::TERM);
    }

    /// Kills all of it.
    pub(super) fn kill(&mut self) {
        let mut killed = HashSet::new();
        let mut next = std::mem::take(&mut self.known);
        for _ in 0..ROUNDS {
            let (members, are_all) = self.look();
            next.extend(members);
            next.retain(|seen| killed.insert((seen.pid, seen.start)));
            if next.is_empty() {
                if are_all {
                    return;
                }
                std::thread::sleep(BECOMING);
            }
            process_table::signal(&next, Signal::KILL);
            next.clear();
        }
    }

    /// Whether the server's own process has ended, or is about to.
    pub(super) fn is_ending(&self) -> bool {
        self.first.is_none_or(|first| first.is_ending())
    }

    /// Everybody who can be told to belong to it, parents before their children, and whether there is nobody of whom that
    /// cannot be told right now.
    fn look(&self) -> (Vec<ProcessEntry>, bool) {
        let Some(first) = self.first else {
            return (Vec::new(), true);
        };
        let are_all = Cell::new(true);
        let all = process_table::all();
        // Its group keeps its number for as long as anybody is in it. If another process has the number now, it is empty and
        // not ours.
        let is_taken = all.iter().any(|seen| seen.pid == first.pid && !seen.is(&first));
        let bears = |seen: &ProcessEntry| {
            let bears = seen.has_variable(&self.mark);
            are_all.set(are_all.get() && bears.is_some());
            bears == Some(true)
        };
        let tree = process_table::families(&all, |seen| {
            seen.is(&first) || (seen.group == first.pid && !is_taken) || (seen.start >= first.start && bears(seen))
        });
        (tree, are_all.get())
    }
}
