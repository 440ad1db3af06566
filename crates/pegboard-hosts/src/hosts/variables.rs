//! Translates the references to variables in a host's texts into those of our config.

use std::path::PathBuf;

use super::host::Variables;

/// The variable of editors for the folder that is open.
const OPEN_FOLDER: &str = "workspaceFolder";

/// A value that the host asks its user for, `${input:ID}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// What the host's file calls it.
    pub id: String,
    /// The question.
    pub description: String,
    /// Whether the answer must not be shown or written to a file.
    pub is_secret: bool,
    /// What an empty answer stands for.
    pub default: Option<String>,
    /// The answers to choose from; empty if any will do.
    pub options: Vec<String>,
}

impl Input {
    /// The reference as it stands in the settings until it is answered.
    pub(crate) fn reference(&self) -> String {
        format!("${{input:{}}}", self.id)
    }

    /// The environment variable that stands for it where no user can be asked.
    pub fn variable(&self) -> String {
        variable_name(&self.id)
    }
}

/// The project that a file belongs to, and the separator of the system's paths.
#[derive(Debug, Clone, Default)]
pub(super) struct ProjectPaths {
    pub(super) project: Option<PathBuf>,
    pub(super) is_windows: bool,
}

/// A text in our notation, with what could not be translated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) text: String,
    /// What only the host could fill in, as written.
    pub(super) lost: Vec<String>,
    /// The files whose content the host would insert.
    pub(super) files: Vec<String>,
    /// The ids of the values that a person is asked for.
    pub(super) inputs: Vec<String>,
    /// Whether it needs the folder that is open in the host, and there is none: in our config the variable is the folder of the config file.
    pub(super) needs_open_folder: bool,
}

/// Translates `text`. `instead` is the variable that replaces what only the host could fill in.
pub(super) fn translate(text: &str, variables: Variables, place: &ProjectPaths, instead: &str) -> Translated {
    let mut done = Translated::default();
    if let Some(name) = text
        .strip_prefix("$env:")
        .filter(|name| variables.dollar_env && is_name(name))
    {
        refer(name, place, &mut done);
        return done;
    }
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = step(rest, variables, place, instead, &mut done);
        let length = match length {
            0 => {
                done.text.push(first);
                first.len_utf8()
            }
            length => length,
        };
        rest = rest.get(length..).unwrap_or("");
    }
    done
}

/// Translates the reference at the start of `rest` and returns its length; 0 if there is none.
fn step(rest: &str, variables: Variables, place: &ProjectPaths, instead: &str, done: &mut Translated) -> usize {
    if variables.double
        && rest.starts_with("${{")
        && let Some(end) = rest.find("}}")
    {
        let inner = rest.get(3..end).unwrap_or("").trim();
        let name = inner.rsplit('.').next().unwrap_or(inner);
        if is_name(name) {
            refer(name, place, done);
        } else {
            lose(rest.get(..end + 2).unwrap_or(rest), instead, done);
        }
        return end + 2;
    }
    if rest.starts_with("${")
        && (variables.braces || variables.editor)
        && let Some(end) = rest.find('}')
    {
        braces(rest.get(2..end).unwrap_or(""), variables, place, instead, done);
        return end + 1;
    }
    if rest.starts_with("$$") || rest.starts_with("${") {
        // To us `$$` is an escaped `$`, and `${` begins a reference; here both are what they are.
        done.text.push_str("$$");
        if rest.starts_with("$$") {
            done.text.push_str("$$");
            return 2;
        }
        return 1;
    }
    if let Some(after) = rest.strip_prefix('$').filter(|_| variables.bare) {
        let name = leading_name(after);
        if !name.is_empty() {
            refer(name, place, done);
            return 1 + name.len();
        }
    }
    if variables.percent
        && place.is_windows
        && let Some((name, _)) = rest.strip_prefix('%').and_then(|after| after.split_once('%'))
        && is_name(name)
    {
        refer(name, place, done);
        return name.len() + 2;
    }
    if variables.curly
        && (rest.starts_with("{env:") || rest.starts_with("{file:"))
        && let Some(end) = rest.find('}')
    {
        let inner = rest.get(1..end).unwrap_or("");
        let written = rest.get(..=end).unwrap_or(rest);
        match inner.strip_prefix("env:") {
            Some(name) if is_name(name) => refer(name, place, done),
            Some(_) => lose(written, instead, done),
            None => file(inner.trim_start_matches("file:"), written, instead, done),
        }
        return end + 1;
    }
    0
}

/// Translates what is between `${` and `}`.
fn braces(inner: &str, variables: Variables, place: &ProjectPaths, instead: &str, done: &mut Translated) {
    let written = format!("${{{inner}}}");
    if variables.editor {
        let separator = if place.is_windows { "\\" } else { "/" };
        let folder = place.project.as_ref();
        match inner {
            "pathSeparator" | "/" => return done.text.push_str(separator),
            "userHome" => return done.text.push_str(&written),
            "workspaceFolder" | "cwd" => {
                return match folder {
                    Some(folder) => done.text.push_str(&folder.display().to_string()),
                    None => refer(OPEN_FOLDER, place, done),
                };
            }
            "workspaceFolderBasename" => {
                if let Some(name) = folder.and_then(|folder| folder.file_name()) {
                    return done.text.push_str(&name.to_string_lossy());
                }
                return lose(&written, instead, done);
            }
            _ => {}
        }
        if let Some(id) = inner.strip_prefix("input:") {
            done.inputs.push(id.to_owned());
            return done.text.push_str(&written);
        }
        if let Some(path) = inner.strip_prefix("file:") {
            return file(path, &written, instead, done);
        }
    }
    let name = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = split_default(name, variables.dollar_env);
    match default {
        _ if !is_name(name) => lose(&written, instead, done),
        Some(default) => {
            done.needs_open_folder |= name == OPEN_FOLDER && place.project.is_none();
            done.text.push_str(&reference(&format!("{name}:-{default}")));
        }
        None => refer(name, place, done),
    }
}

/// A name and its default: `X:-d`, and where `is_short` also `X:d` and `X-d`.
fn split_default(inner: &str, is_short: bool) -> (&str, Option<&str>) {
    let name = leading_name(inner);
    let rest = inner.get(name.len()..).unwrap_or("");
    let marks: &[&str] = if is_short { &[":-", ":", "-"] } else { &[":-"] };
    let default = marks.iter().find_map(|mark| rest.strip_prefix(mark));
    match default {
        Some(default) if !name.is_empty() && !default.contains("${") => (name, Some(default)),
        _ => (inner, None),
    }
}

fn file(path: &str, written: &str, instead: &str, done: &mut Translated) {
    done.files.push(path.trim().to_owned());
    done.text.push_str(&reference(instead));
    done.lost.push(written.to_owned());
}

fn lose(written: &str, instead: &str, done: &mut Translated) {
    done.lost.push(written.to_owned());
    done.text.push_str(&reference(instead));
}

fn refer(name: &str, place: &ProjectPaths, done: &mut Translated) {
    done.needs_open_folder |= name == OPEN_FOLDER && place.project.is_none();
    done.text.push_str(&reference(name));
}

/// A reference to a variable, as our config has it.
fn reference(name: &str) -> String {
    ["${", name, "}"].concat()
}

/// The name of an environment variable made from any text.
pub(super) fn variable_name(text: &str) -> String {
    let word = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = text.chars().map(word).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}

fn leading_name(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or("");
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => "",
        false => name,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && leading_name(text).len() == text.len()
}

#[cfg(test)]
mod tests {
    use super::{super::table::find, *};

    fn place() -> ProjectPaths {
        ProjectPaths {
            project: Some(PathBuf::from("/srv/shop")),
            is_windows: false,
        }
    }

    #[track_caller]
    fn check(host: &str, cases: &[(&str, &str)]) {
        let variables = find(host).unwrap().dialect.variables;
        for (theirs, ours) in cases {
            let done = translate(theirs, variables, &place(), "INSTEAD");
            assert_eq!(done.text, *ours, "{host}: {theirs}");
        }
    }

    #[test]
    fn a_host_that_expands_nothing_has_its_dollars_escaped() {
        let cases = [
            ("pa$$word", "pa$$$$word"),
            ("${X}", "$${X}"),
            ("$X costs 5$", "$X costs 5$"),
        ];
        for host in ["claude-desktop", "codex", "zed", "cline"] {
            check(host, &cases);
        }
    }

    #[test]
    fn every_notation_becomes_ours() {
        check(
            "claude",
            &[
                ("Bearer ${TOK}", "Bearer ${TOK}"),
                ("${A:-b c}", "${A:-b c}"),
                ("$A", "$A"),
            ],
        );
        check(
            "gemini",
            &[
                ("$TOK", "${TOK}"),
                ("${TOK}", "${TOK}"),
                ("a$B-c", "a${B}-c"),
                ("5$", "5$"),
            ],
        );
        check("goose", &[("Bearer $API_TOKEN", "Bearer ${API_TOKEN}")]);
        check(
            "opencode",
            &[
                ("x{env:TOK}y", "x${TOK}y"),
                ("${X}", "$${X}"),
                ("{file:~/.tok}", "${INSTEAD}"),
            ],
        );
        check(
            "continue",
            &[
                ("Bearer ${{ secrets.TOK }}", "Bearer ${TOK}"),
                ("${{ inputs.a }}", "${a}"),
            ],
        );
        check(
            "mcporter",
            &[("$env:TOK", "${TOK}"), ("${A:b}", "${A:-b}"), ("${A-b}", "${A:-b}")],
        );
    }

    #[test]
    fn the_variables_of_editors_are_those_of_the_project() {
        let cases = [
            ("${env:TOK}", "${TOK}"),
            ("${workspaceFolder}/.env", "/srv/shop/.env"),
            ("${workspaceFolderBasename}${/}x", "shop/x"),
            ("${userHome}/x", "${userHome}/x"),
            ("${cmd: op read x}", "${INSTEAD}"),
            ("${config:a.b}", "${INSTEAD}"),
        ];
        check("vscode", &cases);
        check("cursor", &cases);
        let asked = translate(
            "Bearer ${input:gh-token}",
            find("vscode").unwrap().dialect.variables,
            &place(),
            "X",
        );
        assert_eq!(
            (asked.text.as_str(), asked.inputs),
            ("Bearer ${input:gh-token}", vec!["gh-token".to_owned()])
        );
    }

    #[test]
    fn the_folder_that_is_open_in_the_host_is_known_only_in_a_project() {
        let needs_it = |host: &str, text: &str, place: &ProjectPaths| {
            let variables = find(host).unwrap().dialect.variables;
            translate(text, variables, place, "X").needs_open_folder
        };
        let user = ProjectPaths::default();
        for (host, text) in [
            ("cursor", "${workspaceFolder}/x"),
            ("cursor", "${workspaceFolder:-.}"),
            ("vscode", "${cwd}"),
            ("gemini", "$workspaceFolder"),
        ] {
            assert!(needs_it(host, text, &user), "{host}: {text}");
            assert!(!needs_it(host, text, &place()), "{host}: {text}");
        }
        // These are not expanded there, so they are escaped here.
        assert!(!needs_it("zed", "${workspaceFolder}", &user));
        assert!(!needs_it("cursor", "${userHome}", &user));
    }

    #[test]
    fn a_variable_of_windows_counts_only_there() {
        let variables = find("gemini").unwrap().dialect.variables;
        let mut place = place();
        assert_eq!(translate("%TOK%", variables, &place, "X").text, "%TOK%");
        place.is_windows = true;
        assert_eq!(translate("%TOK%", variables, &place, "X").text, "${TOK}");
    }
}
