//! Faults that need a process: leaked children, ignored signals, a life beyond the parent's. Also helpers for tests
//! about processes.

use std::{
    fs::OpenOptions,
    io::{self, Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, getppid, kill_process};

use crate::{
    fault::{Child, Fault},
    script::Script,
};

/// The longest life of a fake process, whatever its script says.
const LIFETIME: Duration = Duration::from_secs(300);

/// The process ids in a file that [`Fault::SpawnsChildren`] wrote; empty if the file does not exist yet.
#[must_use]
pub fn read_pids(path: impl AsRef<Path>) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Returns `true` if this process runs. A zombie does not.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The state follows the command name, which is in parentheses and may contain any character.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Kills this process, if it still runs.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have exited already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Starts the watchdog thread, which ends this process after five minutes, and with its parent.
pub(crate) fn watch(script: &Script) {
    let outlives = script.has(|fault| matches!(fault, Fault::OutlivesParent));
    let parent = getppid();
    thread::spawn(move || {
        let tick = Duration::from_millis(250);
        for _ in 0..LIFETIME.as_millis() / tick.as_millis() {
            thread::sleep(tick);
            if !outlives && getppid() != parent {
                break;
            }
        }
        std::process::exit(0);
    });
}

/// Applies the faults of a starting process. `Some` is the code to exit with.
pub(crate) fn start(script: &Script) -> io::Result<Option<i32>> {
    for rule in &script.faults {
        match &rule.fault {
            Fault::SpawnsChildren { how, count, pid_file } => {
                for _ in 0..*count {
                    note(pid_file, spawn(*how, Stdio::null())?)?;
                }
            }
            Fault::ForksAndExits { pid_file, keeps_stdout } => {
                let stdout = if *keeps_stdout { Stdio::inherit() } else { Stdio::null() };
                note(pid_file, spawn(Child::Setsid, stdout)?)?;
                return Ok(Some(0));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Installs a SIGTERM handler that does nothing, in place of the default action.
pub(crate) fn ignore_term() -> io::Result<()> {
    let mut signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move { while signals.recv().await.is_some() {} });
    Ok(())
}

fn spawn(how: Child, stdout: Stdio) -> io::Result<u32> {
    let (program, args): (_, &[&str]) = match how {
        Child::SameGroup => ("sleep", &["300"]),
        Child::Setsid => ("setsid", &["sleep", "300"]),
        Child::DoubleFork => (
            "setsid",
            &["sh", "-c", "sleep 300 >/dev/null 2>&1 </dev/null & echo $!"],
        ),
    };
    let stdout = if how == Child::DoubleFork {
        Stdio::piped()
    } else {
        stdout
    };
    let mut command = Command::new(program);
    let mut child = command
        .args(args)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut output) = child.stdout.take() else {
        return Ok(child.id());
    };
    let mut pid = String::new();
    output.read_to_string(&mut pid)?;
    child.wait()?;
    pid.trim().parse().map_err(io::Error::other)
}

fn note(path: &Path, pid: u32) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(format!("{pid}\n").as_bytes())
}
