//! Boards for the commands, and the folders of this user that they use.

use std::path::{Path, PathBuf};

use pegboard::{Config, Pegboard, config::Start};

/// A board for a command that uses some of the servers. Even required servers are started only when needed.
pub(crate) fn board(mut config: Config) -> pegboard::Builder {
    for server in config.servers.values_mut() {
        server.required = false;
    }
    whole_board(config)
}

/// A board for a command that contacts every server. It remembers across runs which protocol era each server speaks.
pub(crate) fn whole_board(config: Config) -> pegboard::Builder {
    // Its result is on stdout.
    lasting_board(with_lazy_start(config)).keeps_stdout()
}

/// The config of a command, which connects what it uses, also servers that wait to be connected.
pub(crate) fn with_lazy_start(mut config: Config) -> Config {
    for server in config.servers.values_mut() {
        server.start = Start::Lazy;
    }
    config
}

/// A board for a program that keeps running: servers start as their config says.
fn lasting_board(config: Config) -> pegboard::Builder {
    let mut builder = Pegboard::builder(config);
    if let Some(folder) = cache_folder() {
        builder = builder.era_memory(folder.join("eras.json"));
    }
    builder = with_tokens(builder);
    match pins_folder() {
        Some(folder) => builder.pins(folder),
        None => builder,
    }
}

/// A board that serves clients. It lists servers that are slow or down as an earlier run has seen them.
pub(crate) fn serving_board(config: Config) -> pegboard::Builder {
    let builder = lasting_board(config);
    match catalogs_folder() {
        Some(folder) => builder.catalog_store(folder),
        None => builder,
    }
}

/// The folder of the catalogues that earlier runs have seen.
pub(crate) fn catalogs_folder() -> Option<PathBuf> {
    Some(cache_folder()?.join("catalogs"))
}

/// Gives a board the user's sign-ins.
pub(crate) fn with_tokens(builder: pegboard::Builder) -> pegboard::Builder {
    let Some(folder) = state("tokens") else {
        return builder;
    };
    let builder = builder.token_store(folder);
    match key_file() {
        Some(path) => builder.token_key_file(path),
        None if uses_keyring() => builder.keyring(),
        None => builder,
    }
}

/// The file with the key of encrypted files, where the user names one.
pub(super) fn key_file() -> Option<PathBuf> {
    let path = std::env::var_os("PEGBOARD_TOKEN_KEY_FILE").filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// Whether the keyring is used where there is one: for the key of the tokens of sign-ins, and for the user's secrets.
pub(super) fn uses_keyring() -> bool {
    std::env::var_os("PEGBOARD_KEYRING").is_none_or(|value| value != "off")
}

/// The folder of the pinned definitions. It is state and not cache: without it, changed definitions would count as new.
pub(crate) fn pins_folder() -> Option<PathBuf> {
    state("pins")
}

/// The file with the key that seals the sessions of clients.
pub(crate) fn gateway_key_file() -> Option<PathBuf> {
    state("gateway.key")
}

/// The folder of the results of `pegboard torture`.
pub(crate) fn torture_folder() -> Option<PathBuf> {
    state("torture")
}

/// A folder of the user's state.
pub(super) fn state(name: &str) -> Option<PathBuf> {
    let folder = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else {
        set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))
    };
    Some(folder?.join("pegboard").join(name))
}

/// The user's folder of state.
#[cfg(unix)]
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(folder.join("pegboard"))
}

/// A folder that an environment variable names. A relative path would be one in the current project.
pub(crate) fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// A text with `~` for the home folder in its paths.
pub(crate) fn in_short(text: &str) -> String {
    let home = set("HOME").filter(|home| home.parent().is_some());
    match home.as_deref().and_then(Path::to_str) {
        Some(home) => text.replace(&format!("{}/", home.trim_end_matches('/')), "~/"),
        None => text.to_owned(),
    }
}

fn cache_folder() -> Option<PathBuf> {
    let folder = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else {
        set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))
    };
    Some(folder?.join("pegboard"))
}
