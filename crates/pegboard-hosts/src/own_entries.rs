//! Which entries of hosts' files are Pegboard's own: those that start `pegboard mcp`, and those with a URL that `install --url` wrote.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{host_error::HostError, hosts::is_pegboard, user_file};

/// The keys under which hosts have the URL of a server.
const URLS: [&str; 5] = ["url", "serverUrl", "httpUrl", "baseUrl", "uri"];

/// The URLs that `install --url` wrote, since an entry with a URL does not tell whose it is.
#[derive(Debug, Default)]
pub struct OwnEntries {
    /// By the host's file, then by the name of the entry.
    urls: Value,
}

impl OwnEntries {
    /// Reads the user's list of them.
    pub fn load() -> Result<Self, HostError> {
        let document = user_file::open(&file()?)?;
        Ok(Self {
            urls: document.get(&[]).unwrap_or_default(),
        })
    }

    /// The URL that was written into a host's file under this name.
    pub(crate) fn url_of(&self, host_file: &Path, name: &str) -> Option<&str> {
        self.urls.get(host_file.display().to_string())?.get(name)?.as_str()
    }

    /// Whether the entry of this name in a host's file is Pegboard's.
    pub(crate) fn has(&self, host_file: &Path, name: &str, entry: &Value) -> bool {
        is_own(entry, self.url_of(host_file, name))
    }
}

/// The file that remembers the URLs.
pub(crate) fn file() -> Result<PathBuf, HostError> {
    Ok(user_file::config_folder()?.join("installed-urls.json"))
}

/// Whether an entry is Pegboard's: it starts `pegboard mcp`, or has the URL that `install` wrote there.
pub(crate) fn is_own(entry: &Value, written: Option<&str>) -> bool {
    let is_remote = written.is_some() && url_of(entry) == written;
    let list = entry.get("mcpServers").and_then(Value::as_array);
    let is_block = list.is_some_and(|list| !list.is_empty() && list.iter().all(|one| is_own(one, written)));
    is_pegboard(entry) || is_remote || is_block
}

/// The URL of an entry, in the form of any host.
pub(crate) fn url_of(entry: &Value) -> Option<&str> {
    URLS.iter().find_map(|key| entry.get(key)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_with_a_url_is_ours_only_if_that_url_was_written() {
        let entry = json!({"serverUrl": "http://127.0.0.1:7337/mcp"});
        assert!(!is_own(&entry, None));
        assert!(!is_own(&entry, Some("http://127.0.0.1:1/mcp")));
        assert!(is_own(&entry, Some("http://127.0.0.1:7337/mcp")));
        assert!(is_own(&json!({"command": "pegboard", "args": ["mcp"]}), None));
        assert!(!is_own(&json!({"mcpServers": []}), None));
    }
}
