//! Reads the process table from `/proc`, finds descendants, and signals processes without races on reused pids.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// A process in the process table. Its pid may be reused, but never together with its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// The start time, in clock ticks since boot.
    pub(crate) start: u64,
    /// Whether it is a zombie: it has exited and is not reaped yet.
    pub(crate) is_zombie: bool,
    /// Whether it is exiting or a zombie.
    pub(crate) is_exiting: bool,
}

/// The kernel flag `PF_EXITING`.
const EXITING: u64 = 4;

impl ProcessEntry {
    /// A process that the guard reported.
    pub(super) fn new(pid: u32, start: u64) -> Self {
        Self {
            pid,
            parent: 0,
            group: pid,
            session: 0,
            start,
            is_zombie: false,
            is_exiting: false,
        }
    }

    /// The process with this id.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses a `stat` line. The command in it is in parentheses and may contain any bytes, even parentheses.
    fn parse(stat: &[u8]) -> Option<Self> {
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let pid = str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
        let rest = str::from_utf8(stat.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
        // A session outside of our pid namespace is shown as a number below one.
        let mut number = || fields.next()?.parse::<i64>().ok();
        let [parent, group, session] = [number()?, number()?, number()?].map(|id| u32::try_from(id).unwrap_or(0));
        // The ninth field of the line; the session was the sixth.
        let flags: u64 = fields.nth(2)?.parse().ok()?;
        // The 22nd.
        let start = fields.nth(12)?.parse().ok()?;
        Some(Self {
            pid,
            parent,
            group,
            session,
            start,
            is_zombie,
            is_exiting: is_zombie || flags & EXITING != 0,
        })
    }

    /// Whether both are the same process, even if its state has changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    /// Whether it has exited since it was read, or is exiting now.
    pub(crate) fn is_exiting(&self) -> bool {
        Self::find(self.pid).is_none_or(|now| !now.is_same(self) || now.is_exiting)
    }

    /// Sends it a signal, unless it has exited. Never signals another process that reuses its pid.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        // The pidfd is opened before the identity check, because it keeps referring to the same process.
        let pidfd = pidfd_open(pid, PidfdFlags::empty());
        if !Self::find(self.pid).is_some_and(|now| now.is_same(self)) {
            return;
        }
        // Fails if it has exited meanwhile.
        let _ = match pidfd {
            Ok(pidfd) => pidfd_send_signal(pidfd, signal),
            Err(_) => kill_process(pid, signal),
        };
    }

    /// Whether its environment contains this `NAME=value`; `None` in the middle of an `exec`, when the environment is empty.
    pub(crate) fn has_variable(&self, variable: &str) -> Option<bool> {
        match fs::read(format!("/proc/{}/environ", self.pid)) {
            Ok(environment) if environment.is_empty() => None,
            Ok(environment) => Some(
                environment
                    .split(|byte| *byte == 0)
                    .any(|pair| pair == variable.as_bytes()),
            ),
            Err(_) => Some(false),
        }
    }
}

/// All current processes, without zombies.
pub(crate) fn all() -> Vec<ProcessEntry> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(ProcessEntry::find)
        .filter(|entry| !entry.is_zombie)
        .collect()
}

/// The processes for which `is_root` holds, and their descendants. Parents come before their children.
pub(crate) fn with_descendants(all: &[ProcessEntry], is_root: impl Fn(&ProcessEntry) -> bool) -> Vec<ProcessEntry> {
    let roots: Vec<ProcessEntry> = all.iter().filter(|entry| is_root(entry)).copied().collect();
    if roots.is_empty() {
        return roots;
    }
    ProcessTrees::new(all).with_descendants(roots)
}

/// An index of processes by their parents.
pub(crate) struct ProcessTrees<'a>(HashMap<u32, Vec<&'a ProcessEntry>>);

impl<'a> ProcessTrees<'a> {
    pub(crate) fn new(all: &'a [ProcessEntry]) -> Self {
        let mut children: HashMap<u32, Vec<&ProcessEntry>> = HashMap::new();
        for entry in all {
            children.entry(entry.parent).or_default().push(entry);
        }
        Self(children)
    }

    /// The children of a process.
    pub(crate) fn children(&self, pid: u32) -> impl Iterator<Item = &'a ProcessEntry> {
        self.0.get(&pid).into_iter().flatten().copied()
    }

    /// These processes and their descendants. Parents come before their children.
    pub(crate) fn with_descendants(&self, roots: Vec<ProcessEntry>) -> Vec<ProcessEntry> {
        let mut pids: HashSet<u32> = roots.iter().map(|entry| entry.pid).collect();
        let mut found = roots;
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            found.extend(
                self.children(parent.pid)
                    .filter(|entry| pids.insert(entry.pid))
                    .copied(),
            );
        }
        found
    }
}

/// Signals processes in reverse order: children before their parents, so that no parent respawns a child.
pub(crate) fn signal(processes: &[ProcessEntry], signal: Signal) {
    for process in processes.iter().rev() {
        process.signal(signal);
    }
}

/// The children of a process, including zombies.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let listed = || {
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let line = fs::read_to_string(thread?.path().join("children"))?;
            children.extend(line.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        io::Result::Ok(children)
    };
    // Not every kernel has `children` files.
    listed().unwrap_or_else(|_| {
        let all = all().into_iter().filter(|entry| entry.parent == pid);
        all.map(|entry| entry.pid).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_command_is_called() {
        let line =
            b"42 (a) R 1 (b\xff) S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200 18446744073709551615";
        let entry = ProcessEntry::parse(line).unwrap();
        let expected = ProcessEntry {
            pid: 42,
            parent: 7,
            group: 42,
            session: 40,
            start: 98765,
            is_zombie: false,
            is_exiting: false,
        };
        assert_eq!(entry, expected);
        let exiting =
            ProcessEntry::parse(b"42 (x) R 7 42 40 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000").unwrap();
        assert!(exiting.is_exiting && !exiting.is_zombie);
        assert_eq!(ProcessEntry::parse(b""), None);
        assert_eq!(ProcessEntry::parse(b"42 (x) S 1"), None);
        let own = ProcessEntry::find(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn all_generations_of_descendants_are_found() {
        let process = |pid, parent| ProcessEntry {
            pid,
            parent,
            group: 1,
            session: 1,
            start: u64::from(pid),
            is_zombie: false,
            is_exiting: false,
        };
        let all = [
            process(9, 5),
            process(5, 3),
            process(3, 2),
            process(4, 2),
            process(6, 3),
        ];
        let pids = |found: Vec<ProcessEntry>| found.iter().map(|entry| entry.pid).collect::<Vec<_>>();
        assert_eq!(pids(with_descendants(&all, |entry| entry.pid == 3)), [3, 5, 6, 9]);
        assert_eq!(pids(with_descendants(&all, |entry| entry.parent == 2)), [3, 4, 5, 6, 9]);
        assert_eq!(pids(with_descendants(&all, |_| false)), [0; 0]);
        // A cycle cannot occur, but the search must terminate anyway.
        assert_eq!(
            pids(with_descendants(&[process(1, 2), process(2, 1)], |entry| entry.pid == 1)),
            [1, 2]
        );
    }

    #[test]
    fn the_children_of_a_process_are_found_whichever_thread_started_them() {
        let mut children = [0, 1].map(|_| {
            std::thread::spawn(|| Command::new("sleep").arg("60").spawn().unwrap())
                .join()
                .unwrap()
        });
        let found = super::children(std::process::id());
        for child in &mut children {
            assert!(found.contains(&child.id()), "{found:?}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_process_that_reuses_a_pid_is_not_signalled() {
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let entry = ProcessEntry::find(other.id()).unwrap();
        let stale = ProcessEntry {
            start: entry.start - 1,
            ..entry
        };
        stale.signal(Signal::KILL);
        assert_eq!(other.try_wait().unwrap(), None);
        entry.signal(Signal::KILL);
        assert!(!other.wait().unwrap().success());
    }
}
