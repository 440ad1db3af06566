//! Finds the config files of a working directory: the system's, the user's, and the project's.

use std::path::{Path, PathBuf};

use super::{expand::Env, project_file::canonicalize};

/// The default names of config files, the preferred one first.
const FILE_NAMES: [&str; 5] = [
    "pegboard.toml",
    "pegboard.yaml",
    "pegboard.yml",
    "pegboard.json",
    ".mcp.json",
];

/// The directory of the system's config file. On Windows every user may create files in the corresponding one, so there is none.
#[cfg(not(windows))]
const SYSTEM: Option<&str> = Some("/etc/pegboard");
#[cfg(windows)]
const SYSTEM: Option<&str> = None;

/// The config files that apply in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigFiles {
    /// The files of the system and of the user, the stronger one last.
    pub(super) own: Vec<PathBuf>,
    /// The project's file.
    pub(super) project: Option<PathBuf>,
}

/// Finds the config files that apply in `folder`.
pub(super) fn find(folder: &Path, env: &Env<'_>) -> ConfigFiles {
    find_with(folder, SYSTEM.map(Path::new), env)
}

fn find_with(folder: &Path, system: Option<&Path>, env: &Env<'_>) -> ConfigFiles {
    let user = user_folder(env);
    let own: Vec<PathBuf> = [system.map(Path::to_owned), user]
        .into_iter()
        .flatten()
        .filter_map(|folder| file_in(&folder))
        .collect();
    let is_own = |path: &Path| own.iter().any(|own| canonicalize(own) == canonicalize(path));
    let project = project_folders(folder, env).iter().find_map(|folder| file_in(folder));
    ConfigFiles {
        project: project.filter(|path| !is_own(path)),
        own,
    }
}

fn file_in(folder: &Path) -> Option<PathBuf> {
    FILE_NAMES
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())
}

/// The user's config directory. A relative path is not used: it would be one in the project.
fn user_folder(env: &Env<'_>) -> Option<PathBuf> {
    let folder = |name| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = match cfg!(windows) {
        true => folder("APPDATA"),
        false => folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config"))),
    };
    folder.map(|folder| folder.join("pegboard"))
}

/// `folder` and its ancestors that belong to the same project.
fn project_folders(folder: &Path, env: &Env<'_>) -> Vec<PathBuf> {
    let home = env.get("HOME").or_else(|| env.get("USERPROFILE")).map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let start = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut folders = vec![folder.to_owned()];
    for (inner, outer) in start.ancestors().zip(start.ancestors().skip(1)) {
        if inner.join(".git").exists() || home.as_deref() == Some(inner) || is_open_to_all(outer) {
            break;
        }
        folders.push(outer.to_owned());
    }
    folders
}

/// Whether every user may create files in a directory.
#[cfg(unix)]
fn is_open_to_all(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    // A directory whose permissions cannot be read is not trusted.
    folder
        .metadata()
        .map_or(true, |meta| meta.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn touch(path: &Path) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        path.to_owned()
    }

    #[test]
    fn the_files_of_system_user_and_project_apply_together() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let system = touch(&root.join("etc/pegboard.toml"));
        let user = touch(&root.join("home/config/pegboard/pegboard.yaml"));
        let project = touch(&root.join("repo/.mcp.json"));
        let config = root.join("home/config").display().to_string();
        let env = Env::from_pairs([("XDG_CONFIG_HOME", config.clone()), ("APPDATA", config)]);
        let system_folder = root.join("etc");
        let found = |folder: &str| find_with(&root.join(folder), Some(&system_folder), &env);
        let own = vec![system, user];
        let expected = ConfigFiles {
            own: own.clone(),
            project: Some(project),
        };
        assert_eq!(found("repo"), expected);
        // The user's file is not a project file, even where it is.
        let at_home = ConfigFiles { own, project: None };
        assert_eq!(found("home/config/pegboard"), at_home);
    }

    #[test]
    fn a_relative_config_folder_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        touch(&folder.path().join("config/pegboard/pegboard.toml"));
        for name in ["XDG_CONFIG_HOME", "HOME", "APPDATA"] {
            assert_eq!(user_folder(&Env::from_pairs([(name, "config")])), None, "{name}");
        }
    }
}
