//! What this program is started again for, as its command line says.

use std::{
    ffi::OsString,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, exit},
};

use super::{
    rlimits,
    spawn_request::{SpawnRequest, read_limits, write_limits},
};
use crate::config::Rlimits;

/// This program. The link leads to the running file even after an update has replaced it.
const PROGRAM: &str = "/proc/self/exe";

/// The first argument of a guard. Not a variable, because the servers' processes would inherit that.
const GUARD: &str = "__pegboard-run";
/// The first argument of a process that limits itself before it becomes a server.
const LIMITED: &str = "__pegboard-exec";

/// The exit code when a server could not be started, as shells use it.
const NOT_STARTED: i32 = 127;

/// What this process is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The guard of all stdio servers of this parent.
    Guard { parent: u32 },
    /// A server that is bounded by the operating system.
    Limited {
        rlimits: Rlimits,
        program: OsString,
        args: Vec<OsString>,
    },
}

impl Role {
    /// The role in the arguments of this process; none when it was started by anybody but us.
    pub(super) fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mark = args.nth(1)?;
        if mark == GUARD {
            let parent = args.next()?.to_str()?.parse().ok()?;
            Some(Self::Guard { parent })
        } else if mark == LIMITED {
            Some(Self::Limited {
                rlimits: read_limits(&args.next()?)?,
                program: args.next()?,
                args: args.collect(),
            })
        } else {
            None
        }
    }
}

/// Whether this program can be started again.
pub(super) fn is_possible() -> bool {
    Path::new(PROGRAM).exists()
}

/// The command that starts a guard for this process. Of our variables it gets only the one that its start may need.
pub(super) fn guard() -> Command {
    let mut command = again();
    command.args([GUARD, &std::process::id().to_string()]).env_clear();
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
}

/// The command that starts a server, without its variables.
pub(super) fn server(order: &SpawnRequest) -> Command {
    if order.rlimits == Rlimits::default() {
        let mut command = Command::new(&order.program);
        command.args(&order.args);
        return command;
    }
    let mut command = again();
    command
        .args([LIMITED, &write_limits(&order.rlimits)])
        .arg(&order.program)
        .args(&order.args);
    command
}

fn again() -> Command {
    let mut command = Command::new(PROGRAM);
    // Lists of processes show the program under its own name.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}

/// Limits this process and becomes the server.
pub(super) fn become_limited(limits: &Rlimits, program: &OsString, args: &[OsString]) -> ! {
    let error = match rlimits::set(None, limits) {
        Ok(()) => Command::new(program).args(args).exec(),
        Err(error) => error,
    };
    // This is written to the server's own stderr. If that fails, the exit code remains.
    let program = Path::new(program).display();
    let _ = writeln!(std::io::stderr(), "pegboard: `{program}` could not be started: {error}");
    exit(NOT_STARTED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Role> {
        Role::read(line.split(' ').map(OsString::from))
    }

    #[test]
    fn a_role_is_read_as_it_was_written() {
        let words = |command: &Command| {
            let words = command.get_args().map(OsString::from);
            std::iter::once("agent".into()).chain(words).collect::<Vec<_>>()
        };
        let parent = std::process::id();
        assert_eq!(Role::read(words(&guard()).into_iter()), Some(Role::Guard { parent }));
        let rlimits = Rlimits {
            processes: Some(7),
            ..Rlimits::default()
        };
        let order = SpawnRequest {
            grace: std::time::Duration::ZERO,
            rlimits,
            program: "/bin/sh".into(),
            args: ["-c", "a b"].map(OsString::from).to_vec(),
            env: Vec::new(),
            cwd: None,
        };
        let expected = Role::Limited {
            rlimits,
            program: "/bin/sh".into(),
            args: order.args.clone(),
        };
        assert_eq!(Role::read(words(&server(&order)).into_iter()), Some(expected));
    }

    #[test]
    fn any_other_command_line_is_no_role() {
        for line in [
            "agent",
            "agent run",
            "agent __pegboard-run",
            "agent __pegboard-run x",
            "agent __pegboard-exec",
            "agent __pegboard-exec 1,2,3 sh",
            "agent __pegboard-exec 1,2,3,x sh",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
