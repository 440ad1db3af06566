//! What is known of a host.

use std::path::PathBuf;

use super::folders::Folders;

/// A program that has MCP servers in a config file.
#[derive(Debug)]
pub struct Host {
    /// Its name on the command line.
    pub id: &'static str,
    /// Other names for it on the command line.
    pub(crate) also: &'static [&'static str],
    /// Its name for people.
    pub title: &'static str,
    /// The user's files, the preferred one first.
    pub(crate) user: fn(&Folders) -> Vec<PathBuf>,
    /// Files and folders that show that the host is installed, besides the files themselves.
    pub(crate) signs: fn(&Folders) -> Vec<PathBuf>,
    /// The files of a project, relative to its folder.
    pub(crate) project: &'static [&'static str],
    /// The keys under which the servers are; new ones go to the first.
    pub(crate) keys: &'static [&'static [&'static str]],
    pub(crate) dialect: Dialect,
    /// How Pegboard's entry is written; `None` if the host is only read.
    pub(crate) form: Option<EntryForm>,
    /// Whether the host may read any of its files that exist.
    pub(crate) reads_several: bool,
    /// What makes a running host read its file again.
    pub reload: &'static str,
}

impl Host {
    /// The user's files that exist.
    pub fn user_files(&self, folders: &Folders) -> Vec<PathBuf> {
        (self.user)(folders).into_iter().filter(|path| path.is_file()).collect()
    }

    /// The project's files that exist.
    pub fn project_files(&self, folders: &Folders) -> Vec<PathBuf> {
        let files = self.project.iter().map(|name| folders.project(name));
        files.filter(|path| path.is_file()).collect()
    }

    /// The user's files into which Pegboard is entered: those that exist, where a host may read any of several, else the preferred one.
    pub(crate) fn files_to_edit(&self, folders: &Folders) -> Vec<PathBuf> {
        // Servers in this file are of an older form, which is only read.
        let is_old = |path: &PathBuf| self.form == Some(EntryForm::Typed) && path.ends_with("settings.json");
        let mut files = (self.user)(folders);
        files.retain(|path| !is_old(path));
        let existing: Vec<PathBuf> = files.iter().filter(|path| path.is_file()).cloned().collect();
        match (existing.is_empty(), self.reads_several) {
            (true, _) => files.into_iter().take(1).collect(),
            (false, true) => existing,
            (false, false) => existing.into_iter().take(1).collect(),
        }
    }

    /// Whether Pegboard can be entered in its files.
    pub fn is_editable(&self) -> bool {
        self.form.is_some()
    }

    /// Whether the user has the host.
    pub(crate) fn is_present(&self, folders: &Folders) -> bool {
        !self.user_files(folders).is_empty() || (self.signs)(folders).iter().any(|path| path.exists())
    }
}

/// What differs in the meaning of the keys of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "hosts combine them freely")]
pub(crate) struct Dialect {
    /// The unit of `timeout`.
    pub(crate) timeout: Unit,
    /// The references to variables that it expands.
    pub(crate) variables: Variables,
    /// Whether a URL without a type means SSE.
    pub(crate) is_sse_by_default: bool,
    /// Whether `command` without `args` is split at spaces.
    pub(crate) splits_command: bool,
    /// Whether an empty value of a variable means that of the environment.
    pub(crate) passes_empty_env: bool,
    /// Whether `oauth` holds the state of a sign-in, with its tokens.
    pub(crate) keeps_tokens: bool,
}

/// The unit of a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Seconds,
}

/// The references to variables that a host expands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "hosts combine them freely")]
pub(crate) struct Variables {
    /// `${X}` and `${X:-default}`.
    pub(crate) braces: bool,
    /// `$X`.
    pub(crate) bare: bool,
    /// `%X%`.
    pub(crate) percent: bool,
    /// `${env:X}`, `${input:X}`, `${workspaceFolder}` and others of editors.
    pub(crate) editor: bool,
    /// `{env:X}` and `{file:PATH}`.
    pub(crate) curly: bool,
    /// `${{ secrets.X }}`.
    pub(crate) double: bool,
    /// `$env:X` as a whole value.
    pub(crate) dollar_env: bool,
}

/// How an entry for a program or a URL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// `command` and `args` only; no URLs.
    ProcessOnly,
    /// `command` and `args`, or `url`.
    Plain,
    /// With `type`: `stdio` or `http`.
    Typed,
    /// As `claude mcp add` writes it: with `type` and `env`.
    ClaudeCode,
    /// `serverUrl` for URLs.
    Windsurf,
    /// `httpUrl` for URLs.
    HttpUrl,
    /// With `source = "custom"`.
    Zed,
    /// `cmd` and `envs`, or `uri`.
    Goose,
    /// With `disabled` and, for URLs, `type = "streamableHttp"`.
    Cline,
    /// With `tools = ["*"]`.
    Copilot,
    /// `command` as a list.
    OpenCode,
    /// A file of its own.
    ContinueBlock,
    /// `baseUrl` for URLs.
    Mcporter,
}
