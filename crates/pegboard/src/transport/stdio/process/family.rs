//! A server's process and all that came from it, found and signalled together.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use crate::shim::tree::{self, Seen};

/// Rounds of looking and killing. Each finds only what was forked during the one before.
const ROUNDS: usize = 16;
/// How long a process may take to become another program before it is looked at again.
const BECOMING: Duration = Duration::from_millis(5);

/// A server's process and all that came from it.
#[derive(Debug, Clone)]
pub(super) struct Family {
    first: Option<Seen>,
    root: Root,
    /// Who belonged to it before it was asked to end. Some can only be found while their parents live.
    known: Vec<Seen>,
}

/// What our own child is, and by what the others are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// A shim: it leads a session, adopts orphans, and ends the server with all that came from it.
    Shim,
    /// The server itself, which leads a process group. What came from it has this `NAME=value` in its environment.
    Server { mark: String },
}

/// A variable and a value that no other server has, for the root of a family without a shim. Everything that comes from it
/// inherits them, also what a daemon leaves behind, which has neither its group nor a parent in it.
pub(super) fn mark() -> (&'static str, String) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let value = format!("{}.{}.{count}", std::process::id(), now.as_nanos());
    ("PEGBOARD_FAMILY", value)
}

impl Family {
    /// The family of a child that was just started and not waited for.
    pub(super) fn of(pid: u32, root: Root) -> Self {
        Self {
            first: Seen::find(pid),
            root,
            known: Vec::new(),
        }
    }

    pub(super) fn has_shim(&self) -> bool {
        self.root == Root::Shim
    }

    /// The server's own process.
    pub(super) fn server(&self) -> Option<u32> {
        let first = self.first?.pid;
        if self.has_shim() {
            tree::oldest_child(first)
        } else {
            Some(first)
        }
    }

    /// Notes who belongs to it now. A shim needs no help with that.
    pub(super) fn remember(&mut self) {
        if !self.has_shim() {
            self.known = self.members();
        }
    }

    /// Asks it to end.
    pub(super) fn ask(&mut self) {
        if self.has_shim() {
            self.signal_first(Signal::TERM);
        } else {
            self.remember();
            signal(&self.known, Signal::TERM);
        }
    }

    /// Kills all of it, the shim included.
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
            signal(&next, Signal::KILL);
            next.clear();
        }
    }

    /// Kills it without waiting for anything. A shim is left to see to the rest.
    pub(super) fn abandon(&mut self) {
        if !self.has_shim() {
            return self.kill();
        }
        // This stops a shim that has not even started its server. The end of the server then hurries the shim.
        self.signal_first(Signal::TERM);
        let mut below = self.members();
        below.retain(|seen| !self.first.is_some_and(|first| seen.is(&first)));
        signal(&below, Signal::KILL);
    }

    fn signal_first(&self, signal: Signal) {
        if let Some(first) = &self.first {
            first.signal(signal);
        }
    }

    /// Whether the server's own process has ended, or is about to.
    pub(super) fn is_ending(&self) -> bool {
        let now = self.server().and_then(Seen::find);
        let is_there = match self.root {
            Root::Shim => now.is_some(),
            Root::Server { .. } => now.zip(self.first).is_some_and(|(now, first)| now.is(&first)),
        };
        !is_there || now.is_some_and(|now| now.is_ending)
    }

    /// Everybody who can be told to belong to it, parents before their children.
    fn members(&self) -> Vec<Seen> {
        self.look().0
    }

    /// The same, and whether there is nobody of whom that cannot be told right now.
    fn look(&self) -> (Vec<Seen>, bool) {
        let Some(first) = self.first else {
            return (Vec::new(), true);
        };
        let are_all = Cell::new(true);
        let all = tree::all();
        // Its group and session keep its number for as long as anybody is in them. If another process has the number now,
        // they are empty and not ours.
        let is_taken = all.iter().any(|seen| seen.pid == first.pid && !seen.is(&first));
        let is_ours = |number: u32| number == first.pid && !is_taken;
        let bears = |seen: &Seen, mark: &str| {
            let bears = seen.has_variable(mark);
            are_all.set(are_all.get() && bears.is_some());
            bears == Some(true)
        };
        let family = tree::families(&all, |seen| {
            seen.is(&first)
                || match &self.root {
                    Root::Shim => is_ours(seen.session),
                    Root::Server { mark } => is_ours(seen.group) || (seen.start >= first.start && bears(seen, mark)),
                }
        });
        (family, are_all.get())
    }
}

/// Children come before their parents, so that no parent replaces a child that ended.
fn signal(family: &[Seen], signal: Signal) {
    for process in family.iter().rev() {
        process.signal(signal);
    }
}
