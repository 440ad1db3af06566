//! The context in which the settings of a server are resolved.

use std::path::{Path, PathBuf};

use crate::{
    env_file::EnvFiles,
    expand::Env,
    problem::{Report, join},
    relative_path,
    tree::Location,
};
use pegboard_mask::Masking;

/// The context of one server's table.
pub(crate) struct Context<'a> {
    pub(crate) report: &'a mut Report,
    pub(crate) env: &'a Env<'a>,
    /// The directory of the config file.
    pub(crate) base: Option<&'a Path>,
    /// `servers.NAME`.
    pub(crate) path: &'a str,
    /// The location of the server's name.
    pub(crate) at: Location,
    /// The masking of all servers, which that of the server extends.
    pub(crate) masking: &'a Masking,
    /// The environment files of a project file. It may use no others, because these are the ones that were approved.
    pub(crate) env_files: Option<&'a EnvFiles>,
}

impl Context<'_> {
    /// Whether the server is one of a project file.
    pub(super) fn is_project(&self) -> bool {
        self.env_files.is_some()
    }

    /// Reports an error of one of the server's settings.
    pub(super) fn refuse<T>(&mut self, at: Location, key: &str, message: &str) -> Option<T> {
        self.report.error(at, &join(self.path, key), message);
        None
    }

    /// Resolves a path relative to the config file; `~` is the home directory.
    pub(super) fn resolve_path(&self, written: &str) -> PathBuf {
        relative_path::resolve(written, self.base, self.env)
    }
}
