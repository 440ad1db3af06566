//! A daemon that another command has started in the background: it leaves the terminal of that command, and its log stays short.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::OFlags;

use super::folder::user;

/// The longest log. A longer one is emptied.
const MAX_LOG: u64 = 4 * 1024 * 1024;

/// How often the length of the log is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// A process in the background, whose stderr is a log file.
#[derive(Debug)]
pub(crate) struct Detached {
    log: PathBuf,
}

impl Detached {
    /// Leaves the session of the command that started this process, so that the end of its terminal does not end it, and closes the files of
    /// that command, so that their locks are freed and their readers see an end when the command has ended.
    pub(crate) fn new(log: PathBuf) -> Self {
        if let Err(error) = close_inherited_files() {
            tracing::warn!(%error, "files of the command that started this process may stay open");
        }
        // A process that leads its group has a session of its own, or was started by a person at a terminal.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "the process stays in its session");
        }
        Self { log }
    }

    /// Empties the log whenever it is too long, until this is dropped.
    pub(crate) async fn keep_log_short(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if self.log.metadata().is_ok_and(|found| found.len() > MAX_LOG)
                && let Ok(file) = open_log(&self.log)
                && file.set_len(0).is_ok()
            {
                tracing::warn!("the log was longer than 4 MiB and was emptied");
            }
        }
    }
}

/// Closes the files beyond stderr that this process inherited. It opens its own ones close-on-exec.
#[cfg(target_os = "linux")]
fn close_inherited_files() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2 && is_inherited(*fd))
        .collect();
    for fd in open {
        // The file is open, so this cannot fail.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Other systems do not say which of the open files were inherited.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
fn close_inherited_files() -> io::Result<()> {
    Ok(())
}

/// Whether a program that this process executes would inherit the file, as this process did.
#[cfg(target_os = "linux")]
fn is_inherited(fd: i32) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0)
}

/// Opens a log for appending, without following a link. Fails unless it is a file of the user that no other user may write.
pub(super) fn open_log(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let found = file.metadata()?;
    match found.is_file() && found.uid() == user() && found.mode() & 0o022 == 0 {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is no regular file that only this user can change",
        )),
    }
}
