//! The roles that this program plays when it re-executes itself, and their command lines.

use std::{
    ffi::OsString,
    os::{fd::RawFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

/// This program. The link refers to the running executable even after an update has replaced the file.
const PROGRAM: &str = "/proc/self/exe";

/// The first argument of a guard. Not an environment variable, because the servers would inherit that.
const GUARD: &str = "__pegboard-run";
/// The first argument of a process that restricts itself and then executes a server.
const LAUNCHER: &str = "__pegboard-exec";
/// The first argument of the first process in the namespaces of a server.
const INIT: &str = "__pegboard-init";

/// The first argument of a process that tries whether namespaces can be created.
const PROBE: &str = "__pegboard-probe";

/// The role of this process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The guard of the stdio servers of this parent.
    Guard { parent: u32 },
    /// Becomes the server of a spawn request, in this open file, with its limits and its sandbox.
    Launcher {
        request: RawFd,
        /// Its private folder for temporary files.
        scratch: Option<PathBuf>,
    },
    /// The init process of a server's namespaces, which spawns the server.
    Init { request: RawFd },
    /// Tries whether the namespaces of a server can be created.
    Probe { request: RawFd },
}

impl Role {
    /// Parses the role from the arguments. Returns `None` for an ordinary command line.
    pub(super) fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let first = args.nth(1)?;
        let number = args.next()?;
        let number = number.to_str()?;
        if first == GUARD {
            let parent = number.parse().ok()?;
            Some(Self::Guard { parent })
        } else if first == LAUNCHER {
            Some(Self::Launcher {
                request: number.parse().ok()?,
                scratch: args.next().map(PathBuf::from),
            })
        } else if first == INIT {
            let request = number.parse().ok()?;
            Some(Self::Init { request })
        } else if first == PROBE {
            let request = number.parse().ok()?;
            Some(Self::Probe { request })
        } else {
            None
        }
    }
}

/// Whether a process is a guard, by its command line.
pub(super) fn is_guard(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(GUARD.as_bytes())
}

/// Whether this program can re-execute itself.
pub(super) fn is_possible() -> bool {
    Path::new(PROGRAM).exists()
}

/// The command that starts a guard for this process. It inherits only the environment variable that the dynamic linker may need.
pub(super) fn guard_command() -> Command {
    let mut command = self_command(GUARD, &std::process::id().to_string());
    command.env_clear();
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    command
}

/// The command that starts a launcher for the spawn request in an open file, which the launcher inherits. It has the environment of the
/// guard and not that of the server, which could load code into it before it is restricted.
pub(super) fn launcher_command(request: RawFd, scratch: Option<&Path>) -> Command {
    let mut command = self_command(LAUNCHER, &request.to_string());
    command.args(scratch);
    command
}

/// The command that starts the first process in the namespaces of a server.
pub(super) fn init_command(request: RawFd) -> Command {
    self_command(INIT, &request.to_string())
}

/// The command that tries whether the namespaces of a server can be created.
pub(super) fn probe_command(request: RawFd) -> Command {
    self_command(PROBE, &request.to_string())
}

fn self_command(role: &str, argument: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    // So that process lists show the program under its own name.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.args([role, argument]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Role> {
        Role::read(line.split(' ').map(OsString::from))
    }

    #[test]
    fn a_role_is_read_as_it_was_written() {
        let read = |command: &Command| {
            let args = command.get_args().map(OsString::from);
            Role::read(std::iter::once("agent".into()).chain(args))
        };
        let parent = std::process::id();
        assert_eq!(read(&guard_command()), Some(Role::Guard { parent }));
        assert_eq!(read(&init_command(7)), Some(Role::Init { request: 7 }));
        assert_eq!(read(&probe_command(7)), Some(Role::Probe { request: 7 }));
        for scratch in [None, Some(PathBuf::from("/tmp/a b"))] {
            let command = launcher_command(7, scratch.as_deref());
            assert_eq!(read(&command), Some(Role::Launcher { request: 7, scratch }));
        }
    }

    #[test]
    fn any_other_command_line_is_no_role() {
        for line in [
            "agent",
            "agent run",
            "agent __pegboard-run",
            "agent __pegboard-run x",
            "agent __pegboard-exec",
            "agent __pegboard-exec x",
            "agent __pegboard-init",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
