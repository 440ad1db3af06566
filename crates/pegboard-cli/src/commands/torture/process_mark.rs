//! [`ProcessMark`]: finds all processes that a start of the server under test has left, also those that left its process group.
//!
//! Processes inherit the variables of their parent, so that one of them tells whose they are, whatever session or parent they have meanwhile.
//! One that clears its environment is not found.

#[cfg(target_os = "linux")]
use std::fs;
use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
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

impl ProcessMark {
    /// A mark that no other start has, not even one of another program.
    pub(super) fn new() -> Self {
        static STARTS: AtomicU64 = AtomicU64::new(0);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}-{}", process::id(), started.as_nanos()))
    }

    /// The value of the variable.
    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// The processes that have the mark, without those that have exited.
    #[cfg(target_os = "linux")]
    pub(super) fn processes(&self) -> Vec<u32> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let variable = format!("{VARIABLE}={}", self.0).into_bytes();
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            // Of other users, and of processes that have exited, nothing can be read.
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == variable)
        })
        .collect()
    }

    /// Kills the processes that have the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        // A process that is about to start another may be killed too late.
        for _ in 0..ROUNDS {
            let found = self.processes();
            if found.is_empty() {
                return;
            }
            for pid in found
                .into_iter()
                .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
            {
                // It may have exited by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}
