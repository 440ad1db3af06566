//! Environment variables that a server asks for in its last words and does not get, because its config does not pass them on.

use pegboard::{
    Config, ServerName,
    config::{Command, Transport},
    diagnosis::Diagnosis,
    status::LastError,
};
use pegboard_base::secret::names_secret;
use serde_json::Value;

use crate::settings::secret_store;

/// Words with which programs ask for a variable, in lower case.
const ASKING: &[&str] = &[
    "environment",
    "env var",
    "env.",
    "not set",
    "set ",
    "undefined",
    "missing",
    "required",
    "provide",
    "export ",
    "keyerror",
];

/// The last words of the names of variables that servers ask for.
const SETTINGS: &[&str] = &[
    "ACCOUNT",
    "AUTH",
    "CREDENTIALS",
    "DATABASE",
    "DB",
    "DIR",
    "DSN",
    "EMAIL",
    "ENDPOINT",
    "ENV",
    "FILE",
    "HOST",
    "ID",
    "KEY",
    "NAME",
    "ORG",
    "PASS",
    "PASSWORD",
    "PAT",
    "PATH",
    "PORT",
    "PROFILE",
    "PROJECT",
    "REGION",
    "SECRET",
    "SITE",
    "TENANT",
    "TOKEN",
    "URI",
    "URL",
    "USER",
    "USERNAME",
    "WORKSPACE",
];

/// The last words of a server's process that exited by itself.
#[derive(Debug)]
pub(super) struct LastWords {
    text: String,
    /// Whether the process was one of the daemon, which has an environment of its own.
    is_in_daemon: bool,
}

impl LastWords {
    /// Those of a process of this command.
    pub(super) fn here(error: &LastError) -> Option<Self> {
        let diagnosis = error.diagnosis.as_deref()?;
        let text = error.stderr.clone().filter(|_| diagnosis.cause.is_own_exit())?;
        Some(Self {
            text,
            is_in_daemon: false,
        })
    }

    /// Those of a process of the daemon, which reports its status so.
    pub(super) fn in_daemon(status: &Value, server: &str) -> Option<Self> {
        let mut rows = status["servers"].as_array()?.iter();
        let error = &rows.find(|row| row["name"] == server)?["last_error"];
        let diagnosis: Diagnosis = serde_json::from_value(error["diagnosis"].clone()).ok()?;
        let text = error["stderr"].as_str().filter(|_| diagnosis.cause.is_own_exit())?;
        Some(Self {
            text: text.to_owned(),
            is_in_daemon: true,
        })
    }

    /// Whether a variable is set for the program that starts the process. Of the daemon's nothing is known.
    fn is_set(&self, name: &str) -> bool {
        !self.is_in_daemon && std::env::var_os(name).is_some()
    }
}

/// How a process gets the variables that its last words ask for. `None` if they ask for none, or it has them.
pub(super) fn advice(config: &Config, server: &ServerName, words: &LastWords) -> Option<String> {
    let command = command(config, server)?;
    advice_where(
        server.as_str(),
        command,
        &words.text,
        |name| words.is_set(name),
        is_stored,
    )
}

/// The secrets that a process of this config asked for when it ended, and that are not set here.
pub(super) fn missing_secrets(config: &Config, server: &ServerName, words: &LastWords) -> Vec<String> {
    let Some(command) = command(config, server) else {
        return Vec::new();
    };
    let (_, unset) = find(command, &words.text, |name| words.is_set(name));
    let secrets = unset.into_iter().filter(|name| names_secret(name));
    secrets.map(str::to_owned).collect()
}

/// Whether the user has a secret of this name. No keyring is asked.
pub(super) fn is_stored(name: &str) -> bool {
    let secrets = secret_store().and_then(|store| store.list().ok());
    secrets.is_some_and(|secrets| secrets.iter().any(|secret| secret.name == name))
}

fn command<'a>(config: &'a Config, server: &ServerName) -> Option<&'a Command> {
    match &config.servers.get(server)?.transport {
        Transport::Stdio(command) => Some(command),
        Transport::Remote { .. } => None,
    }
}

fn advice_where(
    server: &str,
    command: &Command,
    words: &str,
    is_set: impl Fn(&str) -> bool,
    is_stored: impl Fn(&str) -> bool,
) -> Option<String> {
    let (set, unset) = find(command, words, is_set);
    match (set.as_slice(), unset.as_slice()) {
        ([], []) => None,
        ([], names) if names.iter().all(|name| names_secret(name)) => Some(store(server, names, is_stored)),
        ([], names) => Some(format!("set {}, and pass it on: {}", list(names), settings(names))),
        (names, _) => {
            let verb = if names.len() == 1 { "is" } else { "are" };
            Some(format!(
                "{} {verb} set here, but not passed on to the server: {}",
                list(names),
                settings(names)
            ))
        }
    }
}

/// The variables that a process asks for and does not get: those that are set here, and those that are not.
fn find<'w>(command: &Command, words: &'w str, is_set: impl Fn(&str) -> bool) -> (Vec<&'w str>, Vec<&'w str>) {
    let is_given = |name: &str| command.env.contains_key(name);
    let mut set: Vec<&str> = Vec::new();
    let mut unset: Vec<&str> = Vec::new();
    if !asks(words) {
        return (set, unset);
    }
    for line in words.lines() {
        for name in names(line).filter(|name| !is_given(name)) {
            let found = match is_set(name) {
                true if command.env_policy.passes(name) => continue,
                true => &mut set,
                // Error codes look like variables.
                false if !asks(line) || !is_setting(name) => continue,
                false => &mut unset,
            };
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    (set, unset)
}

fn asks(text: &str) -> bool {
    let text = text.to_lowercase();
    ASKING.iter().any(|word| text.contains(word))
}

/// Whether a name ends like those of settings, such as `GITHUB_TOKEN` or `DATABASE_URL`.
fn is_setting(name: &str) -> bool {
    name.rsplit('_').next().is_some_and(|last| SETTINGS.contains(&last))
}

/// The words that have the form of a variable's name, such as `GITHUB_TOKEN`.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = |word: &&str| {
        let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.trim_matches('_').contains('_')
            && word.bytes().all(is_upper)
    };
    line.split(move |c: char| !is_part(c)).filter(is_name)
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" and ")
}

/// The commands that keep secrets of the user and pass them on to a server.
fn store(server: &str, names: &[&str], is_stored: impl Fn(&str) -> bool) -> String {
    let missing: Vec<String> = names
        .iter()
        .filter(|name| !is_stored(name))
        .map(|name| format!("`pegboard secret set {name} --for {server}`"))
        .collect();
    match missing.as_slice() {
        [] => {
            let verb = if names.len() == 1 { "is" } else { "are" };
            format!(
                "{} {verb} stored, but not passed on to the server: `pegboard doctor {server} --fix` does that",
                list(names)
            )
        }
        [one] => format!("{one} stores it and passes it on to the server"),
        more => format!("{} store them and pass them on to the server", more.join(" and ")),
    }
}

/// The settings of a server that pass variables on.
fn settings(names: &[&str]) -> String {
    let set: Vec<String> = names.iter().map(|name| format!("{name} = \"${{{name}}}\"")).collect();
    format!("`env_pass = {names:?}`, or `env = {{ {} }}`", set.join(", "))
}

#[cfg(test)]
mod tests {
    use pegboard::config::EnvPolicy;

    use super::*;

    #[test]
    fn a_variable_that_is_set_here_and_withheld_is_named() {
        for words in [
            "Set PRIVATE_APP_ACCESS_TOKEN in your environment variables and retry",
            "Error: PRIVATE_APP_ACCESS_TOKEN environment variable is required",
            "KeyError: 'PRIVATE_APP_ACCESS_TOKEN'",
            "[\n  \"PRIVATE_APP_ACCESS_TOKEN\"\n]\n\"message\": \"Required\"",
        ] {
            let advice = advice_where("x", &Command::new("x"), words, |_| true, |_| false);
            assert_eq!(
                advice.as_deref(),
                Some(
                    "`PRIVATE_APP_ACCESS_TOKEN` is set here, but not passed on to the server: \
                     `env_pass = [\"PRIVATE_APP_ACCESS_TOKEN\"]`, \
                     or `env = { PRIVATE_APP_ACCESS_TOKEN = \"${PRIVATE_APP_ACCESS_TOKEN}\" }`"
                )
            );
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_to_be_set_and_passed_on() {
        let advice = advice_where(
            "brave",
            &Command::new("x"),
            "BRAVE_API_KEY is required",
            |_| false,
            |_| false,
        );
        assert_eq!(
            advice.as_deref(),
            Some("`pegboard secret set BRAVE_API_KEY --for brave` stores it and passes it on to the server")
        );
        let words = "BRAVE_API_KEY and BRAVE_TOKEN are required";
        let advice = advice_where("brave", &Command::new("x"), words, |_| false, |_| false);
        assert_eq!(
            advice.as_deref(),
            Some(
                "`pegboard secret set BRAVE_API_KEY --for brave` and `pegboard secret set BRAVE_TOKEN --for brave` \
                 store them and pass them on to the server"
            )
        );
        let advice = advice_where("brave", &Command::new("x"), words, |_| false, |_| true);
        assert_eq!(
            advice.as_deref(),
            Some(
                "`BRAVE_API_KEY` and `BRAVE_TOKEN` are stored, but not passed on to the server: \
                 `pegboard doctor brave --fix` does that"
            )
        );
        let advice = advice_where(
            "x",
            &Command::new("x"),
            "DATABASE_HOST is required",
            |_| false,
            |_| false,
        );
        assert_eq!(
            advice.as_deref(),
            Some(
                "set `DATABASE_HOST`, and pass it on: `env_pass = [\"DATABASE_HOST\"]`, \
                 or `env = { DATABASE_HOST = \"${DATABASE_HOST}\" }`"
            )
        );
    }

    #[test]
    fn other_words_give_no_advice() {
        let mut given = Command::new("x").env("A_TOKEN", "wrong");
        for words in [
            "A_TOKEN is required",
            "no database",
            "the AWS_REGION that is set is unknown",
            "Error: connect ECONNREFUSED",
        ] {
            assert_eq!(advice_where("x", &given, words, |_| true, |_| false), None, "{words}");
        }
        given.env_policy = EnvPolicy::Inherit;
        assert_eq!(
            advice_where("x", &given, "B_TOKEN is invalid or missing", |_| true, |_| false),
            None
        );
        for words in [
            "code: 'MODULE_NOT_FOUND'",
            "ERR_INVALID_ARG is undefined",
            "SQLITE_ERROR: no such table; database required",
            "Missing MASKED_SECRET_ASSIGNMENT in the environment",
        ] {
            assert_eq!(
                advice_where("x", &Command::new("x"), words, |_| false, |_| false),
                None,
                "{words}"
            );
        }
    }
}
