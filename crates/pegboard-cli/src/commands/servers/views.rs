//! The views that name a server, when it gets another name or goes.

use pegboard_hosts::{HostError, ServersFile};
use serde_json::{Value, json};

/// The settings of a view that name tools, as `server.tool`.
const OF_TOOLS: [&str; 3] = ["tools", "allow", "deny"];
/// The setting of a view that names servers.
const OF_SERVERS: &str = "servers";

/// A list of a view that names a server.
struct Naming {
    view: String,
    key: &'static str,
    list: Vec<Value>,
}

/// Writes the new name of a server in the views of the file.
pub(super) fn rename(file: &mut ServersFile, old: &str, new: &str) -> Result<(), HostError> {
    for naming in namings(file, old) {
        let renamed = naming.list.iter().map(|value| match rest(naming.key, value, old) {
            Some(rest) => json!(format!("{new}{rest}")),
            None => value.clone(),
        });
        let place = ["views", naming.view.as_str(), naming.key];
        file.document.set(&place, &renamed.collect())?;
    }
    Ok(())
}

/// A warning for each list of a view in these files that names a server.
pub(super) fn warnings<'a>(files: impl Iterator<Item = &'a ServersFile>, server: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for file in files {
        for Naming { view, key, .. } in namings(file, server) {
            let place = file.shown_path();
            warnings.push(format!("`views.{view}.{key}` in {place} still names `{server}`"));
        }
    }
    warnings
}

fn namings(file: &ServersFile, server: &str) -> Vec<Naming> {
    let mut found = Vec::new();
    for view in file.document.keys(&["views"]) {
        for key in OF_TOOLS.into_iter().chain([OF_SERVERS]) {
            let Some(Value::Array(list)) = file.document.get(&["views", &view, key]) else {
                continue;
            };
            if list.iter().any(|value| rest(key, value, server).is_some()) {
                let view = view.clone();
                found.push(Naming { view, key, list });
            }
        }
    }
    found
}

/// What follows the server's name in a value that names it.
fn rest<'a>(key: &str, value: &'a Value, server: &str) -> Option<&'a str> {
    let rest = value.as_str()?.strip_prefix(server)?;
    let is_named = match key {
        OF_SERVERS => rest.is_empty(),
        _ => rest.starts_with('.'),
    };
    is_named.then_some(rest)
}
