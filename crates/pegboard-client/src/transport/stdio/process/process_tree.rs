//! Process trees on Linux: a server's process and its descendants, found in `/proc` and signalled together.

use std::{
    cell::Cell,
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;

use crate::{
    shim::process_table::{self, ProcessEntry},
    transport::stdio::environment::Environment,
};

/// The most rounds of scanning and killing. Each round finds the processes that were forked during the one before.
const MAX_ROUNDS: usize = 16;
/// How long a process in the middle of `exec` is given before it is inspected again.
const EXEC_DELAY: Duration = Duration::from_millis(5);

/// A server's process, which leads a process group, and its descendants.
#[derive(Debug, Clone)]
pub(super) struct ProcessTree {
    root: Option<ProcessEntry>,
    /// The environment variable, as `NAME=value`, that all descendants inherit.
    tag: String,
    /// The members before SIGTERM was sent. Some can be found only while their parents live.
    known: Vec<ProcessEntry>,
}

/// Adds a variable with a unique value to the environment, and returns it as `NAME=value`. All descendants of the server inherit it, even
/// daemons, which leave its process group and its parents.
pub(super) fn tag(environment: &mut Environment) -> String {
    const NAME: &str = "PEGBOARD_FAMILY";
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let value = format!("{}.{}.{count}", std::process::id(), now.as_nanos());
    let tag = format!("{NAME}={value}");
    environment.insert(NAME.into(), value.into());
    tag
}

impl ProcessTree {
    /// The tree of a child that was just spawned and not reaped yet.
    pub(super) fn new(pid: u32, tag: String) -> Self {
        Self {
            root: ProcessEntry::find(pid),
            tag,
            known: Vec::new(),
        }
    }

    /// Records the current members.
    pub(super) fn remember(&mut self) {
        self.known = self.members().0;
    }

    /// Sends SIGTERM to all members.
    pub(super) fn terminate(&mut self) {
        self.remember();
        process_table::signal(&self.known, Signal::TERM);
    }

    /// Kills all members.
    pub(super) fn kill(&mut self) {
        let mut killed = HashSet::new();
        let mut next = std::mem::take(&mut self.known);
        for _ in 0..MAX_ROUNDS {
            let (members, is_complete) = self.members();
            next.extend(members);
            next.retain(|member| killed.insert((member.pid, member.start)));
            if next.is_empty() {
                if is_complete {
                    return;
                }
                std::thread::sleep(EXEC_DELAY);
            }
            process_table::signal(&next, Signal::KILL);
            next.clear();
        }
    }

    /// Whether the server's own process has exited or is exiting.
    pub(super) fn is_exiting(&self) -> bool {
        self.root.is_none_or(|root| root.is_exiting())
    }

    /// The ids of the members.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.members().0.iter().map(|member| member.pid).collect()
    }

    /// The members, parents before their children, and whether the list is complete: membership of a process in the middle of `exec` is
    /// unknown.
    fn members(&self) -> (Vec<ProcessEntry>, bool) {
        let Some(root) = self.root else {
            return (Vec::new(), true);
        };
        let is_complete = Cell::new(true);
        let all = process_table::all();
        // A group id is not reused while the group has members. If another process has it as its pid, our group is empty.
        let is_reused = all.iter().any(|entry| entry.pid == root.pid && !entry.is_same(&root));
        let is_tagged = |entry: &ProcessEntry| {
            let is_tagged = entry.has_variable(&self.tag);
            is_complete.set(is_complete.get() && is_tagged.is_some());
            is_tagged == Some(true)
        };
        let tree = process_table::with_descendants(&all, |entry| {
            entry.is_same(&root)
                || (entry.group == root.pid && !is_reused)
                || (entry.start >= root.start && is_tagged(entry))
        });
        (tree, is_complete.get())
    }
}
