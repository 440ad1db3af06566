//! The sources of a config: a file, a text, or a server on the command line.

use std::path::{Path, PathBuf};

use super::{
    discover,
    expand::Env,
    inline_server,
    owned_file::{self, FileError, Links},
    problem::{Report, Severity},
    project_file,
    tree::{self, Format, Node, Value},
    trust::TrustStore,
};

/// A source of settings.
#[derive(Debug, Clone)]
pub struct Source {
    name: String,
    content: Content,
    /// The approval of a project file; `None` for sources that need none.
    approval: Option<Approval>,
}

/// What a person approved of a project file.
#[derive(Debug, Clone)]
pub(super) enum Approval {
    /// Nothing. Holds why stored approvals are not believed, if they are not.
    None(Option<String>),
    /// The content with this digest.
    Digest(String),
    /// Any content, for this run.
    Any,
}

impl Approval {
    /// Whether the content with this digest is approved.
    pub(super) fn covers(&self, digest: &str) -> bool {
        match self {
            Self::None(_) => false,
            Self::Digest(approved) => approved == digest,
            Self::Any => true,
        }
    }
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
    ///
    /// The caller names the file, so it needs no approval. It is refused if another user owns it or may write to it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::new(path.display().to_string(), Content::File(path))
    }

    /// Finds the config files that apply in `folder`: the system's, the user's, and the nearest one in `folder` and its ancestors.
    ///
    /// The last one is a project file, which may have come with a cloned repository. It is used if `trust` has an approval of its content;
    /// else its servers are in [`Config::misconfigured`](super::Config::misconfigured), and the file is in
    /// [`Loaded::pending_trust`](super::Loaded::pending_trust). It adds servers, but replaces none of the other files, and its settings for all
    /// servers can only make masking, approval and limits stricter.
    ///
    /// The search ends at the root of the repository (a directory with `.git`), the home directory or the root of the file
    /// system, and before an ancestor that every user may write to: another user could have placed a file there.
    pub fn discover(folder: &Path, env: &Env<'_>, trust: &TrustStore) -> Vec<Self> {
        let found = discover::find(folder, env);
        let project = found.project.map(|path| Self::project(path, trust));
        found.own.into_iter().map(Self::file).chain(project).collect()
    }

    /// A project file, which is used only if `trust` has an approval of its content.
    pub fn project(path: impl Into<PathBuf>, trust: &TrustStore) -> Self {
        let path = path.into();
        let approval = match trust.record(&path) {
            Some(record) => Approval::Digest(record.sha256.clone()),
            None => Approval::None(trust.problem()),
        };
        Self {
            approval: Some(approval),
            ..Self::file(path)
        }
    }

    /// Approves the content of a project file for this use, without storing it. Has no effect on other sources.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.approval = self.approval.map(|_| Approval::Any);
        self
    }

    /// The path of a project file; `None` for other sources.
    pub fn project_path(&self) -> Option<&Path> {
        match (&self.content, &self.approval) {
            (Content::File(path), Some(_)) => Some(path),
            _ => None,
        }
    }

    /// A text, and its name in problems. Without a format, all formats are tried.
    pub fn text(name: impl Into<String>, text: impl Into<String>, format: Option<Format>) -> Self {
        Self::new(name.into(), Content::Text(text.into(), format))
    }

    /// One server in the syntax of the command line: `NAME=COMMAND…` or `NAME=URL`.
    pub fn server(text: impl Into<String>) -> Self {
        Self::new("--server".into(), Content::Server(text.into()))
    }

    fn new(name: String, content: Content) -> Self {
        Self {
            name,
            content,
            approval: None,
        }
    }

    /// The name of the source in problems.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The approval of a project file; `None` for sources that need none.
    pub(super) fn approval(&self) -> Option<&Approval> {
        self.approval.as_ref()
    }

    /// The directory that relative paths refer to: the parent of the file, with symbolic links resolved.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let Content::File(path) = &self.content else {
            return None;
        };
        let path = project_file::canonicalize(path);
        path.parent().map(Path::to_owned)
    }

    /// Reads and parses the source; also returns the text of a file. Returns `None` after reporting a problem.
    pub(super) fn read(&self, report: &mut Report) -> Option<(String, Node)> {
        let (text, format) = match &self.content {
            Content::Server(text) => return inline_server::tree(text, report).map(|root| (String::new(), root)),
            Content::Text(text, format) => (text.clone(), *format),
            Content::File(path) => match self.read_file(path) {
                Ok(text) => (text, Format::from_path(path)),
                Err(error) => {
                    report.file(Severity::Error, error.message, error.hint);
                    report.name_last(error.code, None);
                    return None;
                }
            },
        };
        match tree::read(&text, format) {
            Ok(root) if matches!(root.value, Value::Map(_) | Value::List(_) | Value::Null) => Some((text, root)),
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

    /// Whether it is read from a file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.content, Content::File(_))
    }

    fn read_file(&self, path: &Path) -> Result<String, FileError> {
        match self.approval {
            Some(_) => project_file::text(path),
            None => owned_file::read(path, tree::MAX_BYTES, Links::FollowToAny),
        }
    }
}
