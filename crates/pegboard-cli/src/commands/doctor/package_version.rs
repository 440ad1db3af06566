//! The installed version of a package that a command names without one, so that `--fix` can pin it.

use std::{fs, path::Path, time::SystemTime};

use pegboard_hosts::document::Document;
use serde_json::{Value, json};

use super::{finding::Remedy, fix};
use crate::settings;

/// The most folders of npm's cache that are looked at.
const MAX_FOLDERS: usize = 1000;

/// The change that pins a package of `npx` to the version that was fetched last. `file` is where the server is written.
pub(super) fn find_pin(program: &str, package: &str, server: &str, file: &Path) -> Option<(String, Remedy)> {
    if program.rsplit('/').next() != Some("npx") {
        return None;
    }
    let name = package.strip_suffix("@latest").unwrap_or(package);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    // A name with `..` would lead out of the cache.
    if name.contains("..") || !name.chars().all(is_plain) {
        return None;
    }
    let wanted = format!("{name}@{}", fetch(name)?);
    let path = ["servers", server, "args"].map(str::to_owned);
    let document = Document::open(file).ok()?;
    let place = fix::place(&document, &path)?;
    let mut args = document.get(&place)?;
    let mut named = args.as_array_mut()?.iter_mut().filter(|arg| **arg == json!(package));
    // Of two equal arguments only one is the package.
    let (Some(arg), None) = (named.next(), named.next()) else {
        return None;
    };
    *arg = json!(wanted);
    let remedy = Remedy::Set {
        file: file.to_owned(),
        values: vec![(path.to_vec(), args)],
    };
    Some((wanted, remedy))
}

/// The library's example of a version, such as `PACKAGE@VERSION`, with the name of the package.
pub(super) fn example(package: &str, example: &str) -> String {
    let name = name(package);
    ["PACKAGE", "IMAGE", "FLAKE"]
        .iter()
        .find_map(|placeholder| example.strip_prefix(placeholder))
        .map_or_else(|| example.to_owned(), |version| format!("{name}{version}"))
}

/// The name of a package, without a tag or a range of versions.
fn name(package: &str) -> &str {
    // The first character of `@scope/name` belongs to the name, and so does the colon of `localhost:5000/image` or `github:owner/repo`.
    let is_end =
        |at: usize, c: char| (at > 0 && c == '@') || "<>=~!".contains(c) || package[at..].starts_with(":latest");
    let end = package.char_indices().find(|(at, c)| is_end(*at, *c));
    end.map_or(package, |(end, _)| &package[..end])
}

/// The version of a package that npx fetched last.
fn fetch(name: &str) -> Option<String> {
    let cache = settings::set("npm_config_cache").or_else(|| Some(settings::set("HOME")?.join(".npm")))?;
    let folders = fs::read_dir(cache.join("_npx")).ok()?.flatten().take(MAX_FOLDERS);
    let versions = folders.filter_map(|folder| {
        let file = folder.path().join("node_modules").join(name).join("package.json");
        let manifest: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        let at = file
            .metadata()
            .and_then(|found| found.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        Some((at, manifest["version"].as_str()?.to_owned()))
    });
    let newest = versions.max_by_key(|(at, _)| *at).map(|(_, version)| version);
    newest.filter(|version| version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_names_the_package() {
        for (package, written, expected) in [
            ("@scope/server", "PACKAGE@VERSION", "@scope/server@VERSION"),
            ("server@latest", "PACKAGE@VERSION", "server@VERSION"),
            ("@scope/server@^1.0", "PACKAGE@VERSION", "@scope/server@VERSION"),
            ("mcp-server>=1,<2", "PACKAGE==VERSION", "mcp-server==VERSION"),
            ("mcp/server:latest", "IMAGE@sha256:…", "mcp/server@sha256:…"),
            (
                "localhost:5000/server",
                "IMAGE@sha256:…",
                "localhost:5000/server@sha256:…",
            ),
            ("github:owner/repo", "FLAKE/COMMIT", "github:owner/repo/COMMIT"),
            ("git+https://example.com/repo", "…@COMMIT", "…@COMMIT"),
        ] {
            assert_eq!(example(package, written), expected, "{package}");
        }
    }
}
