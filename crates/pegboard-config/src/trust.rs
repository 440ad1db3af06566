//! The store of project files that a person approved.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{
    expand::Env,
    project_file::{self, ProjectFile},
};
use pegboard_base::{hint::Hint, private_file};

/// The largest store that is read: thousands of approvals.
const MAX_BYTES: usize = 16 << 20;
/// The longest description that is stored with an approval. Without it, only the fact of a change is shown.
const MAX_DESCRIPTION: usize = 64 << 10;
/// The format of the store.
const VERSION: u32 = 1;

/// The project files that a person approved, each with the content that was approved.
///
/// A project file is found in a working directory or its ancestors, so it may have come with a cloned repository. It starts nothing,
/// expands no variable and changes no setting until its content is approved, and any change of the content revokes the approval.
///
/// A store that is a symbolic link, belongs to another user or can be written by others is not believed.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: Option<PathBuf>,
    records: BTreeMap<String, TrustRecord>,
    problem: Option<String>,
}

/// The approval of one project file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrustRecord {
    /// The digest of the approved content, as in [`ProjectFile::digest`].
    pub sha256: String,
    /// When it was approved.
    pub approved_at: Timestamp,
    /// What was approved, with secrets redacted; null if it was too long to store.
    #[serde(default)]
    description: Json,
}

#[derive(Serialize, Deserialize)]
struct StoredTrust {
    version: u32,
    files: BTreeMap<String, TrustRecord>,
}

/// Why an approval cannot be stored or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// There is no home directory, so there is no place for the store.
    #[error("there is no folder for approvals")]
    NoFolder,
    /// The store exists, but is not believed.
    #[error("{} is not believed: {reason}", path.display())]
    NotBelieved {
        /// The store.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The path of the project file is not UTF-8.
    #[error("the path of the file is not UTF-8 text")]
    PathNotText,
    /// The store is full.
    #[error("{} would become larger than {} MiB", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The store.
        path: PathBuf,
    },
    /// The store cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The store.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Hint for TrustError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder => Some("set HOME or XDG_STATE_HOME to an absolute path".to_owned()),
            Self::NotBelieved { .. } => Some("remove it and approve project files again".to_owned()),
            Self::TooLarge { .. } => Some("forget project files that you do not use".to_owned()),
            Self::PathNotText => Some("name the file with `--config FILE`".to_owned()),
            Self::Write { .. } => None,
        }
    }
}

impl TrustStore {
    /// The user's store: `pegboard/trust.json` in `XDG_STATE_HOME` or `~/.local/state`, on Windows in `LOCALAPPDATA`.
    pub fn user(env: &Env<'_>) -> Self {
        // A relative path would be one in the project itself.
        let folder = |name| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = match cfg!(windows) {
            true => folder("LOCALAPPDATA"),
            false => folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state"))),
        };
        match folder {
            Some(folder) => Self::at(folder.join("pegboard").join("trust.json")),
            None => Self {
                path: None,
                records: BTreeMap::new(),
                problem: None,
            },
        }
    }

    /// The store in a file, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (records, problem) = match read(&path) {
            Ok(records) => (records, None),
            Err(reason) => (BTreeMap::new(), Some(reason)),
        };
        Self {
            path: Some(path),
            records,
            problem,
        }
    }

    /// The file of the store; `None` if there is no home directory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Why the stored approvals are not believed, if they are not.
    pub fn problem(&self) -> Option<String> {
        let (path, problem) = (self.path.as_ref()?, self.problem.as_ref()?);
        Some(format!(
            "the approvals in {} are not believed: {problem}",
            path.display()
        ))
    }

    /// The approval of a project file.
    pub fn record(&self, file: &Path) -> Option<&TrustRecord> {
        self.records.get(project_file::canonicalize(file).to_str()?)
    }

    /// Stores the approval of a project file.
    pub fn accept(&mut self, file: &ProjectFile) -> Result<(), TrustError> {
        let path = file.path().to_str().ok_or(TrustError::PathNotText)?;
        let description = file.description();
        let is_short = description.to_string().len() <= MAX_DESCRIPTION;
        let record = TrustRecord {
            sha256: file.digest().to_owned(),
            approved_at: Timestamp::now(),
            description: if is_short { description } else { Json::Null },
        };
        self.change(|records| drop(records.insert(path.to_owned(), record)))
    }

    /// Removes the approval of a project file. Returns whether there was one.
    pub fn forget(&mut self, file: &Path) -> Result<bool, TrustError> {
        let path = project_file::canonicalize(file);
        let path = path.to_str().ok_or(TrustError::PathNotText)?;
        let mut was_there = false;
        self.change(|records| was_there = records.remove(path).is_some())?;
        Ok(was_there)
    }

    /// The approval of what is in no project file, by its name.
    pub fn named(&self, name: &str) -> Option<&TrustRecord> {
        self.records.get(name)
    }

    /// Stores approvals of what is in no project file, such as the servers of other programs: the name of each, the digest of its content, and its
    /// description with secrets redacted. A name must not be an absolute path, because approvals of project files have those.
    pub fn accept_named(&mut self, approvals: Vec<(String, String, Json)>) -> Result<(), TrustError> {
        let approved_at = Timestamp::now();
        let records = approvals.into_iter().map(|(name, sha256, description)| {
            let is_short = description.to_string().len() <= MAX_DESCRIPTION;
            let record = TrustRecord {
                sha256,
                approved_at,
                description: if is_short { description } else { Json::Null },
            };
            (name, record)
        });
        let records: Vec<(String, TrustRecord)> = records.collect();
        self.change(|known| known.extend(records))
    }

    /// Removes the approvals of what is in no project file whose names begin like this. Returns how many there were.
    pub fn forget_named(&mut self, prefix: &str) -> Result<usize, TrustError> {
        let mut removed = 0;
        self.change(|known| {
            let before = known.len();
            known.retain(|name, _| !name.starts_with(prefix));
            removed = before - known.len();
        })?;
        Ok(removed)
    }

    /// Changes the stored approvals. They are read again first, because another process may have changed them.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, TrustRecord>)) -> Result<(), TrustError> {
        let path = self.path.clone().ok_or(TrustError::NoFolder)?;
        *self = Self::at(&path);
        if let Some(reason) = self.problem.clone() {
            return Err(TrustError::NotBelieved { path, reason });
        }
        let mut files = self.records.clone();
        change(&mut files);
        if files == self.records {
            return Ok(());
        }
        let stored = StoredTrust {
            version: VERSION,
            files,
        };
        let failed = |source| TrustError::Write {
            path: path.clone(),
            source,
        };
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| failed(error.into()))?;
        if text.len() > MAX_BYTES {
            return Err(TrustError::TooLarge { path });
        }
        private_file::replace(&path, &text).map_err(failed)?;
        self.records = stored.files;
        Ok(())
    }
}

/// Reads the records, none if the file does not exist. The error says why they are not believed.
fn read(path: &Path) -> Result<BTreeMap<String, TrustRecord>, String> {
    let content = match private_file::read(path, MAX_BYTES) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.to_string()),
    };
    let stored: StoredTrust = serde_json::from_slice(&content).map_err(|error| error.to_string())?;
    match stored.version {
        VERSION => Ok(stored.files),
        other => Err(format!("its format {other} is unknown")),
    }
}

impl TrustRecord {
    /// What has changed in the file since it was approved, one line per setting; empty if its content is the approved one.
    pub fn changes(&self, file: &ProjectFile) -> Vec<String> {
        if self.sha256 == file.digest() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if !self.description.is_null() {
            compare("", &self.description, &file.description(), &mut lines);
        }
        if lines.is_empty() {
            lines.push("a comment or a hidden value".to_owned());
        }
        lines
    }
}

/// Adds a line for every difference. Tables are compared key by key.
fn compare(path: &str, before: &Json, after: &Json, lines: &mut Vec<String>) {
    let (Json::Object(old), Json::Object(new)) = (before, after) else {
        if before != after {
            lines.push(format!("{path}: {before} is now {after}"));
        }
        return;
    };
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    for (key, before) in old {
        match new.get(key) {
            Some(after) => compare(&below(key), before, after, lines),
            None => lines.push(format!("{} was {before} and is gone", below(key))),
        }
    }
    for (key, after) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
        lines.push(format!("{} is new: {after}", below(key)));
    }
}
