//! Bounds that the operating system sets for a server's processes.

use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::config::Rlimits;

/// Sets the bounds for a process, or for this one. What it starts from now on inherits them.
pub(super) fn set(pid: Option<Pid>, limits: &Rlimits) -> io::Result<()> {
    let wanted = [
        // The memory of a server may hold secrets, and a core file is for everybody to find.
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

/// Sets the bounds for a child that was not waited for.
pub(crate) fn set_for(pid: u32, limits: &Rlimits) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    set(Some(pid.ok_or(io::ErrorKind::NotFound)?), limits)
}

/// A bound can be lowered by anybody and raised by nobody.
fn lowered(now: Rlimit, limit: u64) -> Rlimit {
    let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
    Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    }
}
