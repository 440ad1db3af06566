//! Sets the resource limits (`setrlimit`) of server processes.

use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::config::Rlimits;

/// Sets the limits of a process, by default this one. Processes that it spawns from now on inherit them.
pub(super) fn set(pid: Option<Pid>, limits: &Rlimits) -> io::Result<()> {
    let wanted = [
        // No core dumps: the memory of a server may hold secrets.
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.open_files),
        (Resource::Data, limits.data_bytes),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_bytes),
    ];
    for (resource, limit) in wanted {
        if let Some(limit) = limit {
            prlimit(pid, resource, lowered(getrlimit(resource), limit))?;
        }
    }
    Ok(())
}

/// Sets the limits of a child that is not reaped yet.
pub(crate) fn set_for(pid: u32, limits: &Rlimits) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    set(Some(pid.ok_or(io::ErrorKind::NotFound)?), limits)
}

/// The wanted limit, or the current hard limit if that is lower: an unprivileged process cannot raise it.
fn lowered(now: Rlimit, limit: u64) -> Rlimit {
    let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
    Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    }
}
