//! The sources of a config: a file, a text, or a server on the command line.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::{
    expand::Env,
    inline_server,
    problem::{Report, Severity},
    tree::{self, Format, Node, Value},
};

/// The default names of config files, the preferred one first.
const FILE_NAMES: [&str; 5] = [
    "pegboard.toml",
    "pegboard.yaml",
    "pegboard.yml",
    "pegboard.json",
    ".mcp.json",
];

/// A source of settings.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    content: Content,
}

#[derive(Clone)]
enum Content {
    File(PathBuf),
    Text(String, Option<Format>),
    /// `NAME=COMMAND…` or `NAME=URL`.
    Server(String),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File(_) => "file",
            Self::Text(..) => "text",
            Self::Server(_) => "server",
        })
    }
}

impl Source {
    /// A file. Its extension determines the format; if it is unknown, all formats are tried.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: path.display().to_string(),
            content: Content::File(path),
        }
    }

    /// Finds the default config file: the nearest one in `folder` and its ancestors, or else one in the user's config directory.
    ///
    /// The search ends at the root of the repository (a directory with `.git`), the home directory or the root of the file
    /// system, and before an ancestor that every user may write to: another user could have placed a file there.
    pub fn discover(folder: &Path, env: &Env<'_>) -> Option<Self> {
        let user = if cfg!(windows) {
            env.get("APPDATA").map(PathBuf::from)
        } else {
            let home = || Some(PathBuf::from(env.get("HOME")?).join(".config"));
            env.get("XDG_CONFIG_HOME")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
                .or_else(home)
        };
        let user = user.map(|folder| folder.join("pegboard"));
        let folders = project_folders(folder, env).into_iter().chain(user);
        let mut files = folders.flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
        files.find(|path| path.is_file()).map(Self::file)
    }

    /// A text, and its name in problems. Without a format, all formats are tried.
    pub fn text(name: impl Into<String>, text: impl Into<String>, format: Option<Format>) -> Self {
        Self {
            name: name.into(),
            content: Content::Text(text.into(), format),
        }
    }

    /// One server in the syntax of the command line: `NAME=COMMAND…` or `NAME=URL`.
    pub fn server(text: impl Into<String>) -> Self {
        Self {
            name: "--server".into(),
            content: Content::Server(text.into()),
        }
    }
    /// The name of the source in problems.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The directory that relative paths refer to: the parent of the file, with symbolic links resolved.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let Content::File(path) = &self.content else {
            return None;
        };
        // Many programs do not accept the canonical form of paths on Windows.
        let real = if cfg!(windows) { None } else { path.canonicalize().ok() };
        let path = real.or_else(|| std::path::absolute(path).ok())?;
        path.parent().map(Path::to_owned)
    }

    /// Reads and parses the source. Returns `None` after reporting a problem.
    pub(super) fn read(&self, report: &mut Report) -> Option<Node> {
        let from_file;
        let (text, format) = match &self.content {
            Content::Server(text) => return inline_server::tree(text, report),
            Content::Text(text, format) => (text, *format),
            Content::File(path) => {
                from_file = read_file(path, report)?;
                (&from_file, Format::of(path))
            }
        };
        match tree::read(text, format) {
            Ok(root) if matches!(root.value, Value::Map(_) | Value::List(_) | Value::Null) => Some(root),
            Ok(root) => {
                report.error(root.at, "", "a config is a table of settings");
                None
            }
            Err(error) => {
                report.error(error.at, "", error.message);
                None
            }
        }
    }
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

fn read_file(path: &Path, report: &mut Report) -> Option<String> {
    let limit = tree::MAX_BYTES as u64;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        warn_if_others_may_write(&file, report);
        file.take(limit + 1).read_to_end(&mut bytes)
    });
    if let Err(error) = read {
        report.file(Severity::Error, format!("cannot be read: {error}"), None);
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) => {
            report.file(Severity::Error, "is not UTF-8 text", None);
            None
        }
    }
}

#[cfg(unix)]
fn warn_if_others_may_write(file: &File, report: &mut Report) {
    use std::os::unix::fs::PermissionsExt as _;

    let open = file
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o022 != 0);
    if open {
        let hint = Some("`chmod go-w` it".to_owned());
        report.file(
            Severity::Warning,
            "other users may change it and so choose what is started",
            hint,
        );
    }
}

#[cfg(not(unix))]
fn warn_if_others_may_write(_: &File, _: &mut Report) {}
