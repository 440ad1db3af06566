//! The roles that this program plays when it re-executes itself, and their command lines.

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

/// This program. The link refers to the running executable even after an update has replaced the file.
const PROGRAM: &str = "/proc/self/exe";

/// The first argument of a guard. Not an environment variable, because the servers would inherit that.
const GUARD: &str = "__pegboard-run";
/// The first argument of a process that sets its resource limits and then executes a server.
const LIMITED: &str = "__pegboard-exec";

/// The exit code if a server could not be executed, as in shells.
const NOT_STARTED: i32 = 127;

/// The role of this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The guard of the stdio servers of this parent.
    Guard { parent: u32 },
    /// A server with resource limits.
    Limited {
        rlimits: Rlimits,
        program: OsString,
        args: Vec<OsString>,
    },
}

impl Role {
    /// Parses the role from the arguments. Returns `None` for an ordinary command line.
    pub(super) fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let first = args.nth(1)?;
        if first == GUARD {
            let parent = args.next()?.to_str()?.parse().ok()?;
            Some(Self::Guard { parent })
        } else if first == LIMITED {
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

/// Whether this program can re-execute itself.
pub(super) fn is_possible() -> bool {
    Path::new(PROGRAM).exists()
}

/// The command that starts a guard for this process. It inherits only the environment variable that the dynamic linker may need.
pub(super) fn guard_command() -> Command {
    let mut command = self_command();
    command.args([GUARD, &std::process::id().to_string()]).env_clear();
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
}

/// The command that starts a server, without its environment.
pub(super) fn server_command(request: &SpawnRequest) -> Command {
    if request.rlimits == Rlimits::default() {
        let mut command = Command::new(&request.program);
        command.args(&request.args);
        return command;
    }
    let mut command = self_command();
    command
        .args([LIMITED, &write_limits(&request.rlimits)])
        .arg(&request.program)
        .args(&request.args);
    command
}

fn self_command() -> Command {
    let mut command = Command::new(PROGRAM);
    // So that process lists show the program under its own name.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}

/// Sets the resource limits of this process and executes the server.
pub(super) fn exec_limited(limits: &Rlimits, program: &OsString, args: &[OsString]) -> ! {
    let error = match rlimits::set(None, limits) {
        Ok(()) => Command::new(program).args(args).exec(),
        Err(error) => error,
    };
    // Written to the server's own stderr. If that fails, the exit code still shows the failure.
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
        let args = |command: &Command| {
            let args = command.get_args().map(OsString::from);
            std::iter::once("agent".into()).chain(args).collect::<Vec<_>>()
        };
        let parent = std::process::id();
        assert_eq!(
            Role::read(args(&guard_command()).into_iter()),
            Some(Role::Guard { parent })
        );
        let rlimits = Rlimits {
            processes: Some(7),
            ..Rlimits::default()
        };
        let request = SpawnRequest {
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
            args: request.args.clone(),
        };
        assert_eq!(Role::read(args(&server_command(&request)).into_iter()), Some(expected));
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
