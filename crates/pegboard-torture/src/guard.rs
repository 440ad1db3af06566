//! [`Guard`]: a process that kills the servers under test once `torture` is gone, also if it was killed or its terminal was closed.
//!
//! The guard is this program, re-executed with a private first argument. The other end of its stdin is open in `torture` only, so the system
//! closes it when `torture` exits in whatever way. Until then `torture` writes to it which process groups it has started and ended.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use pegboard_base::sync::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::process_mark;

/// The first argument of a guard. The second is the mark of the run.
const ROLE: &str = "__pegboard-torture-guard";
/// This program. The link refers to the running executable even after an update has replaced the file.
const PROGRAM: &str = "/proc/self/exe";
/// How often processes of the servers are looked for.
const ROUNDS: usize = 50;
/// How long the guard waits before it looks again: a process may have been forked and not have its variables yet.
const PAUSE: Duration = Duration::from_millis(50);

/// A running guard. Dropping it ends it; the servers are gone by then.
#[derive(Debug)]
pub(super) struct Guard {
    process: Mutex<Child>,
}

impl Guard {
    /// Starts the guard of this run. Its process group is its own, so that it gets neither Ctrl-C nor the hangup of the terminal.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new(PROGRAM);
        // So that process lists show the program under its own name.
        if let Some(name) = std::env::args_os().next() {
            command.arg0(name);
        }
        command
            .args([ROLE, process_mark::run()])
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // The dynamic linker may need it.
        if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        let process = Mutex::new(command.spawn()?);
        Ok(Self { process })
    }

    /// Notes a process group that was started.
    pub(super) fn started(&self, group: u32) {
        self.tell('+', group);
    }

    /// Notes a process group that was killed.
    pub(super) fn ended(&self, group: u32) {
        self.tell('-', group);
    }

    fn tell(&self, what: char, group: u32) {
        let mut process = self.process.lock();
        if let Some(stdin) = &mut process.stdin {
            // The servers run without a guard if it was killed.
            let _ = writeln!(stdin, "{what}{group}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        // Both fail only if it has exited already.
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Returns `false` if this process was not started as a guard. Else waits until the run of the cases is gone and kills what it has left. A
/// program that runs cases over stdio calls this first in `main`, and exits if it returns `true`.
pub fn is_guard() -> bool {
    let mut args = std::env::args_os().skip(1);
    let (Some(role), Some(run)) = (args.next(), args.next()) else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    // Otherwise process lists show it as `exe`.
    let _ = std::fs::write("/proc/self/comm", "pegboard-run");
    let groups = groups_at_the_end(io::stdin().lines().map_while(Result::ok));
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // It may have exited by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let mut is_quiet = false;
    for _ in 0..ROUNDS {
        let was_quiet = is_quiet;
        is_quiet = process_mark::kill_run(&run.to_string_lossy()) == 0;
        if is_quiet && was_quiet {
            break;
        }
        thread::sleep(PAUSE);
    }
    true
}

/// The process groups that were started and not ended.
fn groups_at_the_end(lines: impl Iterator<Item = String>) -> BTreeSet<i32> {
    let mut groups = BTreeSet::new();
    for line in lines {
        let group = |digits: &str| digits.parse::<i32>().ok().filter(|group| *group > 1);
        if let Some(group) = line.strip_prefix('+').and_then(group) {
            groups.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(group) {
            groups.remove(&group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_were_ended_are_left_alone_and_so_is_everything_that_is_no_group() {
        let lines = ["+20", "+30", "-20", "+1", "+0", "+-1", "+", "x", ""].map(str::to_owned);
        assert_eq!(groups_at_the_end(lines.into_iter()), BTreeSet::from([30]));
    }
}
