//! Creates the namespaces of a strict sandbox: processes, mounts, IPC and network of its own, without the home directory and the sockets of
//! others.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd as _, unix::fs::symlink},
    path::{Path, PathBuf},
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    process::{chdir, getgid, getuid},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
        remove_capability_from_bounding_set, set_capabilities,
    },
};

use super::{links::links_on, plan::SandboxPlan};
use pegboard_config::SandboxNetwork;

/// Folders with the files and sockets of other programs. The server sees empty ones.
const MASKED: &[&str] = &["/run", "/dev/shm", "/var/tmp", SandboxPlan::STRICT_SCRATCH];

/// Creates namespaces for the processes that this process spawns from now on. The next one is the first process in them.
///
/// If it fails, this process may be in a user namespace that it can do nothing in.
pub(in crate::shim) fn enter(plan: &SandboxPlan) -> Result<(), String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut flags =
        CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNS;
    if plan.network == SandboxNetwork::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(|error| match error {
        nix::Error::EINVAL => "they cannot be created, perhaps because threads were started before `shim()`".to_owned(),
        error => format!("they cannot be created: {error}"),
    })?;
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        fs::write(file, text).map_err(|error| format!("the user cannot be mapped: {error}"))?;
    }
    keep_capabilities().map_err(|error| format!("capabilities cannot be kept: {error}"))
}

/// Lets the init process, which is executed, have the capabilities for [`set_up`].
fn keep_capabilities() -> rustix::io::Result<()> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    let sets = CapabilitySets {
        inheritable: needed,
        ..capabilities(None)?
    };
    set_capabilities(None, sets)?;
    for capability in needed.iter() {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Gives up all capabilities, also for programs that are executed as root.
pub(in crate::shim) fn drop_capabilities() -> rustix::io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        // Fails for those that this kernel does not know.
        let _ = remove_capability_from_bounding_set(capability);
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets)
}

/// Sets up the mounts of the namespaces, as their first process.
pub(in crate::shim) fn set_up(plan: &SandboxPlan) -> Result<(), String> {
    let cwd = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    mask(plan).map_err(|error| format!("mounts cannot be changed: {error}"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let proc = Some("proc");
    mount(proc, "/proc", proc, flags, None::<&str>).map_err(|error| format!("`/proc` cannot be mounted: {error}"))?;
    // It may be below a folder that was masked and mounted again.
    chdir(&cwd).map_err(|error| format!("the working directory cannot be entered: {error}"))
}

/// Mounts empty folders over those of others, and mounts what the plan allows in them again. Symbolic links that lead there are
/// created again.
fn mask(plan: &SandboxPlan) -> std::io::Result<()> {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    let allowed = plan.paths();
    let masked = folders_to_mask(plan.home.as_deref(), &allowed);
    let links: Vec<_> = plan.named_paths().flat_map(|path| links_on(path)).collect();
    let mut kept: Vec<(PathBuf, File)> = Vec::new();
    for path in keep_outermost(allowed) {
        if masked.iter().any(|mask| path.starts_with(mask)) {
            let file = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            kept.push((path, File::from(file)));
        }
    }
    for folder in masked.iter().filter(|folder| folder.is_dir()) {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        let tmpfs = Some("tmpfs");
        mount(tmpfs, folder, tmpfs, flags, Some("mode=0700,size=256m"))?;
    }
    for (path, file) in kept {
        // A folder that is nested in two masks was mounted again with the outer one.
        if file.metadata()?.is_dir() {
            fs::create_dir_all(&path)?;
        } else {
            path.parent().map(fs::create_dir_all).transpose()?;
            File::create(&path)?;
        }
        let source = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(source.as_str()), &path, None::<&str>, flags, None::<&str>)?;
    }
    for (link, target) in links {
        if masked.iter().any(|mask| link.starts_with(mask)) && link.symlink_metadata().is_err() {
            link.parent().map(fs::create_dir_all).transpose()?;
            symlink(target, link)?;
        }
    }
    Ok(())
}

/// The folders to mask, outer ones first. One that the plan allows as a whole is not masked.
fn folders_to_mask(home: Option<&Path>, allowed: &[PathBuf]) -> Vec<PathBuf> {
    let folders = MASKED.iter().map(PathBuf::from).chain(home.map(PathBuf::from));
    let folders = folders.filter(|folder| folder.parent().is_some());
    let mut folders: Vec<PathBuf> = folders
        .filter(|folder| !allowed.iter().any(|path| folder.starts_with(path)))
        .collect();
    folders.sort_by_key(|folder| folder.components().count());
    folders
}

/// The paths without those that are below another one.
fn keep_outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by_key(|path| path.components().count());
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn folders_of_others_are_masked_unless_they_are_allowed() {
        let home = Some(Path::new("/home/me"));
        let all = folders_to_mask(home, &paths(&["/usr", "/home/me/project"]));
        assert_eq!(all, paths(&["/run", "/tmp", "/dev/shm", "/var/tmp", "/home/me"]));
        let some = folders_to_mask(home, &paths(&["/tmp", "/home/me", "/run/user/1000"]));
        assert_eq!(some, paths(&["/run", "/dev/shm", "/var/tmp"]));
        assert_eq!(folders_to_mask(Some(Path::new("/")), &[]).len(), MASKED.len());
    }

    #[test]
    fn a_folder_in_a_folder_that_is_kept_is_not_kept_twice() {
        let kept = keep_outermost(paths(&["/tmp/a/b", "/tmp/a", "/tmp/ab", "/tmp/a"]));
        assert_eq!(kept, paths(&["/tmp/a", "/tmp/ab"]));
    }
}
