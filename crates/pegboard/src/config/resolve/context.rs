//! The context in which the settings of a server are resolved.

use std::path::{Path, PathBuf};

use crate::{
    config::{
        expand::Env,
        problem::{Report, join},
        tree::Place,
    },
    mask::Masking,
};

/// The context of one server's table.
pub(in crate::config) struct Context<'a> {
    pub(in crate::config) report: &'a mut Report,
    pub(in crate::config) env: &'a Env<'a>,
    /// The directory of the config file.
    pub(in crate::config) base: Option<&'a Path>,
    /// `servers.NAME`.
    pub(in crate::config) path: &'a str,
    /// The location of the server's name.
    pub(in crate::config) at: Place,
    /// The masking of all servers, which that of the server extends.
    pub(in crate::config) masking: &'a Masking,
}

impl Context<'_> {
    /// Reports an error of one of the server's settings.
    pub(super) fn refuse<T>(&mut self, at: Place, key: &str, message: &str) -> Option<T> {
        self.report.error(at, &join(self.path, key), message);
        None
    }

    /// Resolves a path relative to the config file; `~` is the home directory.
    pub(super) fn resolve_path(&self, written: &str) -> PathBuf {
        path_from(written, self.base, self.env)
    }
}

/// Resolves a path relative to the folder `base`; `~` is the home directory.
pub(super) fn path_from(written: &str, base: Option<&Path>, env: &Env<'_>) -> PathBuf {
    let home = || env.get("HOME").or_else(|| env.get("USERPROFILE"));
    if (written == "~" || written.starts_with("~/"))
        && let Some(home) = home()
    {
        return Path::new(&home).join(written.trim_start_matches('~').trim_start_matches('/'));
    }
    match base {
        Some(base) => base.join(written.strip_prefix("./").unwrap_or(written)),
        None => PathBuf::from(written),
    }
}
