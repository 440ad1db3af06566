//! Processes as `/proc` shows them: who started whom, and a way to signal one that can hit no other.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// A process that was seen. Its id may be given away again; id and start together never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// In clock ticks since the machine started.
    pub(crate) start: u64,
    /// It has ended, and its parent has not asked how yet.
    pub(crate) ended: bool,
    /// It is about to: the system takes its things away.
    pub(crate) is_ending: bool,
}

/// The flag of a process that the system takes apart.
const EXITING: u64 = 4;

impl ProcessEntry {
    /// A process that was seen by its guard.
    pub(super) fn new(pid: u32, start: u64) -> Self {
        Self {
            pid,
            parent: 0,
            group: pid,
            session: 0,
            start,
            ended: false,
            is_ending: false,
        }
    }

    /// The process with this id.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads a `stat` line. The command in it stands in parentheses and may hold any bytes, also parentheses.
    fn parse(stat: &[u8]) -> Option<Self> {
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let pid = str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
        let rest = str::from_utf8(stat.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X" | "x");
        // A session outside of our view is shown as a number below one.
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
            ended,
            is_ending: ended || flags & EXITING != 0,
        })
    }

    /// Whether it is the same process, whatever became of it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    /// Whether it has ended since it was seen, or is about to.
    pub(crate) fn is_ending(&self) -> bool {
        Self::find(self.pid).is_none_or(|now| !now.is(self) || now.is_ending)
    }

    /// Sends it a signal, unless it has ended. No other process is hit, even if one has got its id.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        // The handle first, the question who it is second: a handle stays with its process.
        let handle = pidfd_open(pid, PidfdFlags::empty());
        if !Self::find(self.pid).is_some_and(|now| now.is(self)) {
            return;
        }
        // It may end at any moment, and then there is nothing to do.
        let _ = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            Err(_) => kill_process(pid, signal),
        };
    }

    /// Whether its environment holds this `NAME=value`. While another program takes its place, nobody can tell.
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

/// All processes of this moment. Those that have ended are left out: they start nothing and need nothing.
pub(crate) fn all() -> Vec<ProcessEntry> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(ProcessEntry::find)
        .filter(|seen| !seen.ended)
        .collect()
}

/// The processes of which `is_root` holds, and all below them. Parents come before their children.
pub(crate) fn families(all: &[ProcessEntry], is_root: impl Fn(&ProcessEntry) -> bool) -> Vec<ProcessEntry> {
    let roots: Vec<ProcessEntry> = all.iter().filter(|seen| is_root(seen)).copied().collect();
    if roots.is_empty() {
        return roots;
    }
    ProcessTrees::new(all).families(roots)
}

/// Processes by their parents.
pub(crate) struct ProcessTrees<'a>(HashMap<u32, Vec<&'a ProcessEntry>>);

impl<'a> ProcessTrees<'a> {
    pub(crate) fn new(all: &'a [ProcessEntry]) -> Self {
        let mut children: HashMap<u32, Vec<&ProcessEntry>> = HashMap::new();
        for seen in all {
            children.entry(seen.parent).or_default().push(seen);
        }
        Self(children)
    }

    /// The children of a process.
    pub(crate) fn children(&self, pid: u32) -> impl Iterator<Item = &'a ProcessEntry> {
        self.0.get(&pid).into_iter().flatten().copied()
    }

    /// These processes and all below them. Parents come before their children.
    pub(crate) fn families(&self, roots: Vec<ProcessEntry>) -> Vec<ProcessEntry> {
        let mut pids: HashSet<u32> = roots.iter().map(|seen| seen.pid).collect();
        let mut found = roots;
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            found.extend(self.children(parent.pid).filter(|seen| pids.insert(seen.pid)).copied());
        }
        found
    }
}

/// Signals processes in the opposite order: children before their parents, so that no parent replaces a child that ended.
pub(crate) fn signal(family: &[ProcessEntry], signal: Signal) {
    for process in family.iter().rev() {
        process.signal(signal);
    }
}

/// The children of a process, also those that have ended.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let listed = || {
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let line = fs::read_to_string(thread?.path().join("children"))?;
            children.extend(line.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        io::Result::Ok(children)
    };
    // Not every system lists them.
    listed().unwrap_or_else(|_| {
        let all = all().into_iter().filter(|seen| seen.parent == pid);
        all.map(|seen| seen.pid).collect()
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
        let seen = ProcessEntry::parse(line).unwrap();
        let expected = ProcessEntry {
            pid: 42,
            parent: 7,
            group: 42,
            session: 40,
            start: 98765,
            ended: false,
            is_ending: false,
        };
        assert_eq!(seen, expected);
        let ending = ProcessEntry::parse(b"42 (x) R 7 42 40 0 -1 4194564 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000").unwrap();
        assert!(ending.is_ending && !ending.ended);
        assert_eq!(ProcessEntry::parse(b""), None);
        assert_eq!(ProcessEntry::parse(b"42 (x) S 1"), None);
        let own = ProcessEntry::find(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn a_family_is_found_through_all_generations() {
        let process = |pid, parent| ProcessEntry {
            pid,
            parent,
            group: 1,
            session: 1,
            start: u64::from(pid),
            ended: false,
            is_ending: false,
        };
        let all = [
            process(9, 5),
            process(5, 3),
            process(3, 2),
            process(4, 2),
            process(6, 3),
        ];
        let pids = |found: Vec<ProcessEntry>| found.iter().map(|seen| seen.pid).collect::<Vec<_>>();
        assert_eq!(pids(families(&all, |seen| seen.pid == 3)), [3, 5, 6, 9]);
        assert_eq!(pids(families(&all, |seen| seen.parent == 2)), [3, 4, 5, 6, 9]);
        assert_eq!(pids(families(&all, |_| false)), [0; 0]);
        // Nonsense, but it must end.
        assert_eq!(
            pids(families(&[process(1, 2), process(2, 1)], |seen| seen.pid == 1)),
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
    fn a_process_that_got_the_id_of_another_is_not_signalled() {
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        let seen = ProcessEntry::find(stranger.id()).unwrap();
        let earlier = ProcessEntry {
            start: seen.start - 1,
            ..seen
        };
        earlier.signal(Signal::KILL);
        assert_eq!(stranger.try_wait().unwrap(), None);
        seen.signal(Signal::KILL);
        assert!(!stranger.wait().unwrap().success());
    }
}
