//! Attempts on other processes, and on what a process inherits.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, getrlimit, test_kill_process};

use super::{Attempt, EscapeTargets, outcome, when};

/// How many processes a fork bomb of a test starts.
const FORKS: usize = 100;

pub(super) fn attempt(targets: &EscapeTargets, note: &mut dyn FnMut(&'static str, Attempt)) {
    note("signal_program", signal(targets.program));
    note("signal_guard", signal(targets.guard));
    note("signal_sibling", signal(targets.sibling));
    note("gain_privileges", gain_privileges());
    note("dump_core", dump_core());
    note("inherit_secrets", inherit(&["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"]));
    note(
        "inherit_loaded_code",
        inherit(&[
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
        ]),
    );
    note("allocate_three_gigabytes", allocate());
    note("start_daemon", start_daemon());
    note("fork_a_hundred_times", fork());
}

/// Asks whether a signal could be sent.
fn signal(pid: u32) -> Attempt {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no pid")?;
    test_kill_process(pid).map_err(|error| error.to_string())
}

fn gain_privileges() -> Attempt {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    when(!status.contains("NoNewPrivs:\t1"), "NoNewPrivs: 1")
}

/// The kernel writes no core below a page, and none to a program with a limit of one.
fn dump_core() -> Attempt {
    let limit = getrlimit(Resource::Core).current;
    when(limit.is_none_or(|limit| limit > 1), format!("{limit:?} bytes"))
}

fn inherit(names: &[&str]) -> Attempt {
    let found = names.iter().find(|name| std::env::var_os(name).is_some());
    when(found.is_some(), "not set")
}

/// In a child, which may be killed.
fn allocate() -> Attempt {
    let mut command = Command::new("perl");
    let status = command
        .args(["-e", "my $x = 'a' x (3 << 30);"])
        .stderr(Stdio::null())
        .status();
    let status = status.map_err(|error| error.to_string())?;
    when(status.success(), status.to_string())
}

/// The daemon names the working directory, by which a test finds it.
fn start_daemon() -> Attempt {
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    let mut command = Command::new("setsid");
    command
        .args([
            "sh",
            "-c",
            "sh -c 'sleep 300; true' \"$0\" >/dev/null 2>&1 </dev/null &",
        ])
        .arg(folder);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| error.to_string())?;
    when(status.success(), status.to_string())
}

fn fork() -> Attempt {
    let sleep = || {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn()
    };
    let mut children: Vec<Child> = Vec::new();
    let mut result = Ok(());
    for _ in 0..FORKS {
        match sleep() {
            Ok(child) => children.push(child),
            Err(error) => result = outcome::<()>(Err(error)),
        }
    }
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    result
}
