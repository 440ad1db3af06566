//! What an entry of a registry may make a config run: one exact version of the package that it names, in the usual runner, and nothing else.
//!
//! Everyone can publish an entry, and a person who adds one reads little more than its name.

use pegboard::config::decides_code;
use serde_json::{Map, Value};

use super::super::entry::{Input, Package};

/// Arguments of `npx` that change nothing about what runs.
const NPX: &[&str] = &["-y", "--yes", "-q", "--quiet", "--silent", "--prefer-offline"];
/// Arguments of `uvx` that change nothing about what runs.
const UVX: &[&str] = &["-q", "--quiet", "--no-progress", "--isolated"];
/// Arguments of `docker run` without a value that give the container no more rights.
const DOCKER: &[&str] = &["-i", "--interactive", "--rm", "--init", "--read-only", "-q", "--quiet"];
/// Arguments of `docker run` with a value that give the container no more rights, whatever the value.
const DOCKER_VALUES: &[&str] = &[
    "--name",
    "--platform",
    "-w",
    "--workdir",
    "--memory",
    "-m",
    "--cpus",
    "--cap-drop",
    "--pids-limit",
];

/// Variables that hold the user's credentials and settings for others than the publisher: names, or prefixes before a `*`.
const OF_OTHERS: &[&str] = &[
    "ANTHROPIC_*",
    "ARM_*",
    "AWS_*",
    "AZURE_*",
    "CI_*",
    "CLOUDFLARE_*",
    "CLOUDSDK_*",
    "COHERE_*",
    "DATABASE_URL",
    "DIGITALOCEAN_*",
    "DOCKER_*",
    "GCP_*",
    "GEMINI_*",
    "GH_*",
    "GITHUB_*",
    "GITLAB_*",
    "GOOGLE_*",
    "GROQ_*",
    "HEROKU_*",
    "HF_*",
    "HOME",
    "HUGGINGFACE_*",
    "KUBE*",
    "LOGNAME",
    "MISTRAL_*",
    "NPM_*",
    "OPENAI_*",
    "OPENROUTER_*",
    "PATH",
    "PEGBOARD_*",
    "PG*",
    "PWD",
    "PYPI_*",
    "SENTRY_*",
    "SHELL",
    "SLACK_*",
    "SSH_*",
    "STRIPE_*",
    "TF_*",
    "TWILIO_*",
    "TWINE_*",
    "USER",
    "UV_*",
    "VAULT_*",
    "VERCEL_*",
    "XAI_*",
    "XDG_*",
];

/// Whether a variable of the user's environment is meant for others: it is known as theirs, or is set already and not named after the entry. A remote
/// server gets none of these by its own wish.
pub(super) fn is_of_others(name: &str, entry: &str) -> bool {
    let first = name.split('_').next().unwrap_or_default().to_ascii_lowercase();
    let is_own = entry
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word == first);
    let is_named = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *pattern == name,
    };
    OF_OTHERS.iter().any(is_named) || decides_code(name) || (!is_own && std::env::var_os(name).is_some())
}

/// Fails unless the package is exactly one version of one package.
pub(super) fn check_package(package: &Package) -> Result<(), String> {
    let name = package.identifier.as_str();
    let is_name = match package.kind.as_str() {
        "npm" => {
            let (scope, rest) = match name.strip_prefix('@') {
                Some(scoped) => scoped.split_once('/').unwrap_or(("", "")),
                None => ("scope", name),
            };
            is_word(scope, "._~-") && is_word(rest, "._~-")
        }
        "pypi" => {
            let (base, extras) = name.split_once('[').unwrap_or((name, "]"));
            is_word(base, "._-")
                && extras.ends_with(']')
                && (extras == "]" || is_word(&extras[..extras.len() - 1], "._-,"))
        }
        "nuget" => is_word(name, "._-"),
        "go" => name.contains('/') && name.split('/').all(|part| is_word(part, "._~-")),
        "oci" => is_word(name, "._-/:@"),
        _ => true,
    };
    if !is_name {
        return Err(format!("`{name}` is no plain name of a package of this kind"));
    }
    match package.version.as_deref() {
        Some(version) if !is_exact(&package.kind, version) => Err(format!(
            "`{version}` is not exactly one version, so what runs could change at any time"
        )),
        _ => Ok(()),
    }
}

/// A text of letters, digits and `more` that begins with a letter, a digit or `_`.
fn is_word(text: &str, more: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || more.contains(c))
}

/// Whether a version is a single one: no range, tag, alias or URL. Without a version there is another refusal.
fn is_exact(kind: &str, version: &str) -> bool {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match kind {
        "npm" | "nuget" | "go" => {
            if version == "latest" {
                return true;
            }
            let version = match kind {
                "go" => version.strip_prefix('v').unwrap_or_default(),
                _ => version,
            };
            let core = version.split(['-', '+']).next().unwrap_or_default();
            let parts: Vec<&str> = core.split('.').collect();
            let most = if kind == "nuget" { 4 } else { 3 };
            (3..=most).contains(&parts.len()) && parts.iter().all(is_number) && is_word(version, ".+-")
        }
        // `==` takes any version but one with `*`.
        "pypi" => {
            version == "latest" || (version.starts_with(|c: char| c.is_ascii_digit()) && is_word(version, ".+!-"))
        }
        _ => true,
    }
}

/// Fails if the publisher sets a variable that decides which code runs. The user may have one of them.
pub(super) fn check_env(inputs: &[Input], env: &Map<String, Value>) -> Result<(), String> {
    for input in inputs {
        let Some(name) = input.name.as_deref().filter(|name| env.contains_key(*name)) else {
            continue;
        };
        if !is_word(name, "") {
            return Err(format!("`{}` is no name of a variable", name.escape_debug()));
        }
        let is_fixed = input.value.is_some() || input.default.is_some();
        if is_fixed && decides_code(name) {
            return Err(format!("it sets {name}, which decides what code runs"));
        }
    }
    Ok(())
}

/// Fails if an argument of the runner could run something else, fetch it from elsewhere, or give it rights on this machine.
pub(super) fn check_runtime(kind: &str, words: &[String]) -> Result<(), String> {
    let refused = |word: &str| {
        let word = word.escape_debug();
        Err(format!(
            "its argument `{word}` for the runner could run other code, or with more rights, than the package"
        ))
    };
    match kind {
        "npm" | "pypi" => {
            let allowed = if kind == "npm" { NPX } else { UVX };
            let other = words.iter().find(|word| !allowed.contains(&word.as_str()));
            other.map_or(Ok(()), |word| refused(word))
        }
        "oci" => {
            let mut rest = words.iter();
            while let Some(word) = rest.next() {
                let (flag, value) = match word.split_once('=') {
                    Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
                    _ => (word.as_str(), None),
                };
                if value.is_none() && DOCKER.contains(&flag) {
                    continue;
                }
                let value = value.or_else(|| rest.next().map(String::as_str));
                if !value.is_some_and(|value| is_harmless(flag, value)) {
                    return refused(word);
                }
            }
            Ok(())
        }
        // Other runners get none of them.
        _ => Ok(()),
    }
}

/// Whether an argument of `docker run` gives the container no more rights.
fn is_harmless(flag: &str, value: &str) -> bool {
    match flag {
        "-e" | "--env" => {
            let name = value.split('=').next().unwrap_or_default();
            is_word(name, "") && !decides_code(name)
        }
        // Other machines could reach a port of all addresses.
        "-p" | "--publish" => value.starts_with("127.0.0.1:"),
        "--network" | "--net" => matches!(value, "none" | "bridge"),
        "--pull" => matches!(value, "missing" | "never"),
        "--security-opt" => matches!(
            value,
            "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true"
        ),
        _ => DOCKER_VALUES.contains(&flag) && !value.starts_with('-'),
    }
}
