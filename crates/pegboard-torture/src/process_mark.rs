//! [`ProcessMark`]: finds all processes that a start of the server under test has left, also those that left its process group.
//!
//! Processes inherit the variables of their parent, so that one of them tells whose they are, whatever session or parent they have meanwhile.
//! One that clears its environment is not found.

#[cfg(target_os = "linux")]
use std::fs;
use std::{
    process,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// The variable that each process of a server has.
pub(super) const VARIABLE: &str = "PEGBOARD_TORTURE";
/// How often processes that are started meanwhile are looked for.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 5;

/// The mark of one start.
#[derive(Debug)]
pub(super) struct ProcessMark(String);

/// What the marks of all starts of this run begin with, and those of no other run.
pub(super) fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", process::id(), started.as_nanos())
    })
}

impl ProcessMark {
    /// A mark that no other start has, not even one of another program.
    pub(super) fn new() -> Self {
        static STARTS: AtomicU64 = AtomicU64::new(0);
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", run()))
    }

    /// The value of the variable.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// The processes that have the mark, without those that have exited.
    #[cfg(target_os = "linux")]
    pub(super) fn processes(&self) -> Vec<u32> {
        processes(|mark| mark == self.0.as_bytes())
    }

    /// Kills the processes that have the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) {
        // A process that is about to start another may be killed too late.
        for _ in 0..ROUNDS {
            let found = self.processes();
            if found.is_empty() {
                return;
            }
            kill(&found);
        }
    }
}

/// Kills the processes of all starts of a run, and returns how many there were.
#[cfg(target_os = "linux")]
pub(super) fn kill_run(run: &str) -> usize {
    let start = format!("{run}-").into_bytes();
    let found = processes(|mark| mark.starts_with(&start));
    kill(&found);
    found.len()
}

#[cfg(target_os = "linux")]
fn kill(pids: &[u32]) {
    use rustix::process::{Pid, Signal, kill_process};
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // It may have exited by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes with a mark that `is_it` accepts, without those that have exited.
#[cfg(target_os = "linux")]
fn processes(is_it: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let variable = format!("{VARIABLE}=").into_bytes();
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        // Of other users, and of processes that have exited, nothing can be read.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|one| one.strip_prefix(variable.as_slice()).is_some_and(&is_it))
    })
    .collect()
}
