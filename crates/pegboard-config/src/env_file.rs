//! Reads environment files: lines of `NAME=value`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use super::owned_file::{self, Links};

/// The largest environment file.
const MAX_BYTES: usize = 1 << 20;

/// The environment files that a project file names, each read once, so that the content in use is the content that was approved.
#[derive(Default)]
pub(super) struct EnvFiles(BTreeMap<PathBuf, Result<String, String>>);

impl EnvFiles {
    /// Reads a file, unless it was read before.
    pub(super) fn add(&mut self, path: PathBuf) {
        self.0
            .entry(path)
            .or_insert_with_key(|path| text(path, Links::FollowApproved));
    }

    /// The files and their texts, sorted by path; the text of a file that cannot be read is the reason.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, Result<&str, &str>)> {
        self.0
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_deref().map_err(String::as_str)))
    }
}

impl fmt::Debug for EnvFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Loads the variables of a file: one of `approved`, or with `None` any file.
pub(super) fn load(path: &Path, approved: Option<&EnvFiles>) -> Result<Vec<(String, String)>, String> {
    let read_now;
    let text = match approved {
        None => {
            read_now = text(path, Links::FollowToAny)?;
            &read_now
        }
        Some(approved) => match approved.0.get(path) {
            Some(text) => text.as_ref().map_err(Clone::clone)?,
            None => {
                return Err("a project file can name it only with `${workspaceFolder}` and `${userHome}`".to_owned());
            }
        },
    };
    read(text).map_err(|line| format!("{}:{line} is not `NAME=value`", path.display()))
}

fn text(path: &Path, links: Links) -> Result<String, String> {
    let text = owned_file::read(path, MAX_BYTES, links).map_err(|error| match error.hint {
        Some(hint) => format!("{} {} ({hint})", path.display(), error.message),
        None => format!("{} {}", path.display(), error.message),
    })?;
    match text.len() > MAX_BYTES {
        true => Err(format!("{} is larger than 1 MiB", path.display())),
        false => Ok(text),
    }
}

/// Parses the lines. Returns the number of the first line that is neither `NAME=value`, nor a comment, nor empty.
///
/// Values are literal: variables are not expanded in them.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pairs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        if !is_name(name) {
            return Err(index + 1);
        }
        pairs.push((name.to_owned(), value_of(value.trim()).ok_or(index + 1)?));
    }
    Ok(pairs)
}

/// Whether an environment variable can have this name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn value_of(written: &str) -> Option<String> {
    if let Some(rest) = written.strip_prefix('\'') {
        let (value, after) = rest.split_once('\'')?;
        return is_blank(after).then(|| value.to_owned());
    }
    if let Some(rest) = written.strip_prefix('"') {
        return parse_double_quoted(rest);
    }
    // A comment starts with a space, so that `#` can be part of a password.
    let value = written.split_once(" #").map_or(written, |(value, _)| value);
    Some(value.trim_end().to_owned())
}

fn parse_double_quoted(rest: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return is_blank(chars.as_str()).then_some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                c @ ('"' | '\\' | '$') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
}

fn is_blank(after: &str) -> bool {
    let after = after.trim_start();
    after.is_empty() || after.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# comment\n\nA=1\nexport B = two words \nC='a # b'\nD=\"x\\ny \\\"q\\\"\" # why\nE=p#ss # note\nF=\nG=${A}\n";
        let want = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b"),
            ("D", "x\ny \"q\""),
            ("E", "p#ss"),
            ("F", ""),
            ("G", "${A}"),
        ];
        let want: Vec<_> = want.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(read(text), Ok(want));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, line) in [
            ("A=1\nB\n", 2),
            ("A='x\n", 1),
            ("A B=1\n", 1),
            ("=1", 1),
            ("A=\"x\" y", 1),
        ] {
            assert_eq!(read(text), Err(line), "{text}");
        }
    }
}
