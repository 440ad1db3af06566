//! The folder in which a daemon in the background runs, and the servers to which it matters.

use std::path::{Path, PathBuf};

use pegboard::{
    Config, Env, ServerName,
    config::{ServerConfig, Source, Transport, TrustStore},
};

use crate::{
    cli::Global,
    settings::{Settings, here, set},
};

/// The folder of a daemon that is started in the background: that of the project's file, that of the last file named with `--config`, else the
/// home folder. It does not depend on which command starts it.
pub(super) fn working_folder(global: &Global, settings: &Settings) -> PathBuf {
    let is_of_this_run = global.trust || global.servers.iter().any(|server| server.contains('='));
    if is_of_this_run || settings.loaded.sources.is_empty() || settings.demo_note().is_some() {
        return here();
    }
    let file = match global.configs.last() {
        Some(config) => std::path::absolute(config).ok(),
        None => project_file(),
    };
    let folder = file.as_deref().and_then(Path::parent).map(Path::to_owned);
    let home = || set("HOME").filter(|home| home.is_dir());
    folder.or_else(home).unwrap_or_else(here)
}

/// The project's file that applies in the working folder.
pub(super) fn project_file() -> Option<PathBuf> {
    let env = Env::process();
    let sources = Source::discover(&here(), &env, &TrustStore::user(&env));
    sources.iter().find_map(Source::project_path).map(Path::to_owned)
}

/// A server that would do something else in another working folder: it sets none itself, and one of its arguments is a relative path.
pub(super) fn find_bound_to_folder(config: &Config) -> Option<&ServerName> {
    let folder = here();
    let is_bound = |server: &ServerConfig| match &server.transport {
        Transport::Stdio(command) if server.enabled && command.cwd.is_none() => {
            command.args.iter().any(|arg| is_relative_path(arg.expose(), &folder))
        }
        _ => false,
    };
    config
        .servers
        .iter()
        .find_map(|(name, server)| is_bound(server).then_some(name))
}

/// Whether an argument names a file or folder relative to `folder`.
fn is_relative_path(arg: &str, folder: &Path) -> bool {
    let value = match arg.strip_prefix('-') {
        Some(option) => option.split_once('=').map_or("", |(_, value)| value),
        None => arg,
    };
    let is_dots = |part: &str| matches!(part, "." | "..");
    let first = value.split('/').next().unwrap_or_default();
    is_dots(first) || (!value.is_empty() && !value.starts_with('/') && folder.join(value).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_depend_on_the_folder_are_known() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.py"), "").unwrap();
        for arg in [".", "..", "./x", "../x", "--root=.", "--root=../x", "server.py"] {
            assert!(is_relative_path(arg, folder.path()), "{arg}");
        }
        for arg in [
            "",
            "-y",
            "-",
            "--x",
            "/tmp",
            "@scope/server",
            ".hidden",
            "other.py",
            "https://h/x",
            "--a=b",
        ] {
            assert!(!is_relative_path(arg, folder.path()), "{arg}");
        }
    }
}
