//! A server's process and all that came from it, found and signalled together.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use crate::shim::tree::{self, Seen};

/// Rounds of looking and killing. Each finds only what was forked during the one before.
const ROUNDS: usize = 16;

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
        next.extend(self.members());
        for _ in 0..ROUNDS {
            next.retain(|seen| killed.insert((seen.pid, seen.start)));
            if next.is_empty() {
                return;
            }
            signal(&next, Signal::KILL);
            next = self.members();
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

    /// Everybody who can be told to belong to it, parents before their children.
    fn members(&self) -> Vec<Seen> {
        let Some(first) = self.first else {
            return Vec::new();
        };
        let all = tree::all();
        // Its group and session keep its number for as long as anybody is in them. If another process has the number now,
        // they are empty and not ours.
        let is_taken = all.iter().any(|seen| seen.pid == first.pid && !seen.is(&first));
        let is_ours = |number: u32| number == first.pid && !is_taken;
        tree::families(&all, |seen| {
            seen.is(&first)
                || match &self.root {
                    Root::Shim => is_ours(seen.session),
                    Root::Server { mark } => {
                        is_ours(seen.group) || (seen.start >= first.start && seen.has_variable(mark))
                    }
                }
        })
    }
}

/// Children come before their parents, so that no parent replaces a child that ended.
fn signal(family: &[Seen], signal: Signal) {
    for process in family.iter().rev() {
        process.signal(signal);
    }
}
