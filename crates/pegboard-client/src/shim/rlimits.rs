//! Sets the resource limits (`setrlimit`) of server processes.

use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use pegboard_config::Rlimits;

/// The limit on core dumps: the memory of a server may hold secrets. A limit of zero does not stop dumps to a program such as
/// `systemd-coredump`; a limit of one byte stops both kinds.
const CORE_BYTES: u64 = 1;

/// Sets the limits of a process, by default this one. Processes that it spawns from now on inherit them.
pub(super) fn set(pid: Option<Pid>, limits: &Rlimits) -> io::Result<()> {
    for (resource, limit) in wanted_limits(limits) {
        if let Some(limit) = limit {
            prlimit(pid, resource, lower_limit(getrlimit(resource), limit))?;
        }
    }
    Ok(())
}

/// Sets the limits of a child that is not reaped yet.
pub(crate) fn set_for(pid: u32, limits: &Rlimits) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    set(Some(pid.ok_or(io::ErrorKind::NotFound)?), limits)
}

/// Sets the default limits of this process in a way that it can undo: its children start with them, and [`lift`] raises them again.
pub(super) fn set_soft_defaults() -> io::Result<()> {
    for (resource, limit) in wanted_limits(&Rlimits::DEFAULT) {
        let now = getrlimit(resource);
        if let Some(limit) = limit {
            let current = lower_limit(now, limit).current;
            setrlimit(resource, Rlimit { current, ..now })?;
        }
    }
    Ok(())
}

/// Undoes [`set_soft_defaults`] in a child, which may then set other limits.
pub(super) fn lift() -> io::Result<()> {
    for (resource, limit) in wanted_limits(&Rlimits::DEFAULT) {
        if limit.is_some() {
            let maximum = getrlimit(resource).maximum;
            let limit = Rlimit {
                current: maximum,
                maximum,
            };
            setrlimit(resource, limit)?;
        }
    }
    Ok(())
}

fn wanted_limits(limits: &Rlimits) -> [(Resource, Option<u64>); 5] {
    [
        (Resource::Core, Some(CORE_BYTES)),
        (Resource::Nofile, limits.open_files),
        (Resource::Data, limits.memory),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_size),
    ]
}

/// The wanted limit, or the current hard limit if that is lower: an unprivileged process cannot raise it.
fn lower_limit(now: Rlimit, limit: u64) -> Rlimit {
    let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
    Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    }
}
