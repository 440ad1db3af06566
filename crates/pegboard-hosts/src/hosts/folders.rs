//! The folders in which hosts keep their config files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// An operating system, as far as folders are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    Mac,
    Windows,
}

/// The variables that move config files.
const VARIABLES: &[&str] = &[
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CLINE_DATA_DIR",
    "CLINE_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "CODEX_HOME",
    "CONTINUE_GLOBAL_DIR",
    "COPILOT_HOME",
    "FLATPAK_XDG_CONFIG_HOME",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "KIRO_HOME",
    "LOCALAPPDATA",
    "MCPORTER_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
];

/// The user's folders, the working folder, and the variables that move config files.
#[derive(Debug, Clone)]
pub struct Folders {
    pub(crate) system: System,
    pub(crate) home: PathBuf,
    /// The working folder. `import --project` and `install --project` read and write below it.
    pub here: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Folders {
    /// The folders of this process; `None` if it has no home folder.
    pub fn for_process(here: PathBuf) -> Option<Self> {
        let system = match () {
            () if cfg!(windows) => System::Windows,
            () if cfg!(target_os = "macos") => System::Mac,
            () => System::Linux,
        };
        let home = std::env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).ok()?;
        let variables = VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        Some(Self {
            system,
            home: PathBuf::from(home),
            here,
            variables: variables.filter(|(_, value)| !value.is_empty()).collect(),
        })
    }

    /// A variable that names a folder or a file.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).map(PathBuf::from)
    }

    /// A path below the home folder, with `/` between its parts.
    pub(crate) fn home(&self, path: &str) -> PathBuf {
        below(&self.home, path)
    }

    /// A path below the working folder.
    pub(crate) fn project(&self, path: &str) -> PathBuf {
        below(&self.here, path)
    }

    /// A path below the folder that a variable names, or else below one in the home folder.
    pub(crate) fn variable_or_home(&self, variable: &str, otherwise: &str, path: &str) -> PathBuf {
        let folder = self.variable(variable).unwrap_or_else(|| self.home(otherwise));
        below(&folder, path)
    }

    /// A path below `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    pub(crate) fn xdg(&self, path: &str) -> PathBuf {
        self.variable_or_home("XDG_CONFIG_HOME", ".config", path)
    }

    /// A path below `%APPDATA%`.
    pub(crate) fn app_data(&self, path: &str) -> PathBuf {
        self.variable_or_home("APPDATA", "AppData/Roaming", path)
    }

    /// A path below the folder in which desktop programs of this system keep their data.
    pub(crate) fn desktop(&self, path: &str) -> PathBuf {
        match self.system {
            System::Linux => self.xdg(path),
            System::Mac => below(&self.home("Library/Application Support"), path),
            System::Windows => self.app_data(path),
        }
    }
}

/// Joins the parts one by one, so that they get the separator of the system.
pub(super) fn below(folder: &Path, path: &str) -> PathBuf {
    path.split('/')
        .fold(folder.to_owned(), |folder, part| folder.join(part))
}

#[cfg(test)]
impl Folders {
    /// The folders of a system, with these variables.
    pub(super) fn new(system: System, variables: &[(&str, &str)]) -> Self {
        Self {
            system,
            home: PathBuf::from("/home/me"),
            here: PathBuf::from("/home/me/project"),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }
}
