//! What `uninstall` leaves on this machine, and the commands that remove it.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use pegboard_hosts::{
    ServersFile,
    hosts::{Folders, find_present},
    install::{self, Change, Effect, Removal},
    shorten_path,
};
use serde_json::{Value, json};

use crate::{
    commands::context::Context,
    output::{clean, shell_word},
    settings::Settings,
};

/// Something that is left.
#[derive(Debug)]
pub(super) struct LeftOver {
    /// The command that removes or ends it.
    command: String,
    what: String,
}

impl LeftOver {
    pub(super) fn document(&self) -> Value {
        json!({"command": self.command, "what": self.what})
    }
}

/// What is left after these changes: the backups beside the changed files and, once no host uses Pegboard any more, the config and the daemon.
pub(super) async fn find(context: &Context<'_>, changes: &[Change], folders: &Folders) -> Vec<LeftOver> {
    let mut left: Vec<LeftOver> = changes.iter().filter_map(backups).collect();
    let Some(first) = changes.first().filter(|_| !left.is_empty()) else {
        return left;
    };
    if is_used(folders, &first.name) {
        return left;
    }
    let files = ServersFile::all(&context.global.configs).unwrap_or_default();
    let own: BTreeSet<&Path> = files
        .iter()
        .filter(|file| !file.is_shared() && file.path().is_file())
        .map(ServersFile::path)
        .collect();
    left.extend(own.into_iter().map(|file| LeftOver {
        command: format!("rm {}", word(file)),
        what: "the config with your servers".to_owned(),
    }));
    let settings = Settings::load(&context.global);
    if context.running_servers(&settings).await.daemon.is_some() {
        left.push(LeftOver {
            command: "pegboard daemon stop".to_owned(),
            what: "the daemon, which has the servers".to_owned(),
        });
    }
    left
}

/// The backups beside a file that was changed.
fn backups(change: &Change) -> Option<LeftOver> {
    if !matches!(change.effect, Effect::Removed | Effect::Restored) {
        return None;
    }
    let prefix = format!("{}.bak-", change.file.file_name()?.to_str()?);
    let entries = fs::read_dir(change.file.parent()?).ok()?.flatten();
    let is_backup = |name: &std::ffi::OsString| name.to_str().is_some_and(|name| name.starts_with(&prefix));
    let count = entries.map(|entry| entry.file_name()).filter(is_backup).count();
    let what = match count {
        0 => return None,
        1 => format!("a copy of the file of {} from before", change.host.title),
        count => format!("{count} copies of the file of {} from before", change.host.title),
    };
    let path = change.file.with_file_name(prefix);
    Some(LeftOver {
        command: format!("rm {}*", word(&path)),
        what,
    })
}

/// A path as a shell takes it.
fn word(path: &Path) -> String {
    let whole = path.display().to_string();
    match shell_word(&whole) {
        plain if plain == whole => shorten_path(path),
        quoted => quoted,
    }
}

/// Whether a host on this machine uses Pegboard.
fn is_used(folders: &Folders, name: &str) -> bool {
    let removal = Removal {
        name: name.to_owned(),
        is_project: false,
        restores: false,
        is_dry: true,
    };
    find_present(folders).into_iter().any(|host| {
        let changes = install::uninstall(host, &removal, folders);
        changes.is_ok_and(|(changes, _)| changes.iter().any(|change| change.effect == Effect::Removed))
    })
}

/// What is left, for people.
pub(super) fn text(left: &[LeftOver]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let mut text = "left over:\n".to_owned();
    let width = left.iter().map(|one| one.command.len()).max().unwrap_or_default();
    for one in left {
        let _ = writeln!(text, "  {:width$}  {}", clean(&one.command), clean(&one.what));
    }
    text
}
