//! Resolves paths in config files: relative to the file, with `~` for the home directory and the variables that editors define.

use std::path::{Path, PathBuf};

use super::expand::Env;

/// Resolves a path relative to `base`, the directory of the config file; `~` is the home directory.
pub(super) fn resolve(written: &str, base: Option<&Path>, env: &Env<'_>) -> PathBuf {
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

/// Adds the variables that editors define to the environment: `workspaceFolder` and `userHome`.
pub(super) fn with_folders<'a>(env: &'a Env<'a>, base: Option<&'a Path>) -> Env<'a> {
    let project = base.map(|base| match base.file_name().and_then(|name| name.to_str()) {
        Some(".vscode" | ".cursor") => base.parent().unwrap_or(base),
        _ => base,
    });
    let with = Env::new(move |name| match name {
        "workspaceFolder" => project.map(|folder| folder.display().to_string()),
        "userHome" => env.get("HOME").or_else(|| env.get("USERPROFILE")),
        _ => env.get(name),
    })
    .keyring_of(env);
    if env.is_lenient() { with.lenient() } else { with }
}
