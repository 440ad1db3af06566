//! Which environment variables a child process gets.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use crate::config::{Command, EnvPolicy, is_allowed, is_loader};

/// A child's environment.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// Where programs look for the code that they load, and what they run beside it. A config may well set these; our own say
/// how we are set up, not the server.
const CODE: &[&str] = &[
    "CLASSPATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PERL5DB",
    "PERL5LIB",
    "PROMPT_COMMAND",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "RUBYLIB",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
];

/// Keys of model providers. The agent pays with them, not its servers.
const KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "HUGGINGFACE_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "VOYAGE_API_KEY",
    "XAI_API_KEY",
];

/// Our own settings, and where our own traces go.
const OURS: &[&str] = &["OTEL_", "PEGBOARD_"];

/// The variables for `command`: what its policy lets through of `ours`, and on top what its config sets.
pub(super) fn build(command: &Command, ours: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let passes = |name: &OsStr| match command.env_policy {
        EnvPolicy::Inherit => !name.to_str().is_some_and(is_held_back),
        EnvPolicy::Allowlist => name.to_str().is_some_and(is_allowed),
        EnvPolicy::Explicit => false,
    };
    let mut environment: Environment = ours.filter(|(name, _)| passes(name)).collect();
    let set = command
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.expose().into()));
    environment.extend(set);
    environment
}

/// Whether a variable goes to a child only when its config names it, even if the child inherits all others.
fn is_held_back(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_loader(name)
        || CODE.contains(&upper.as_str())
        || KEYS.contains(&upper.as_str())
        || OURS.iter().any(|prefix| upper.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: EnvPolicy, expected: &[(&str, &str)]) {
        let mut command = Command::new("x").env("TZ", "UTC").env("TOKEN", "t");
        command.env_policy = policy;
        let ours = [
            ("PATH", "/bin"),
            ("TZ", "CET"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("LD_PRELOAD", "x.so"),
        ];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let environment = build(&command, ours.into_iter());
        let expected: Environment = expected
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        assert_eq!(environment, expected);
    }

    #[test]
    fn a_child_gets_the_allowed_variables_and_what_its_config_sets() {
        check(EnvPolicy::Allowlist, &[("PATH", "/bin"), ("TZ", "UTC"), ("TOKEN", "t")]);
    }

    #[test]
    fn an_inheriting_child_gets_everything_that_is_not_held_back() {
        check(
            EnvPolicy::Inherit,
            &[
                ("PATH", "/bin"),
                ("TZ", "UTC"),
                ("TOKEN", "t"),
                ("AWS_SECRET_ACCESS_KEY", "s"),
            ],
        );
    }

    #[test]
    fn foreign_code_provider_keys_and_our_own_settings_are_held_back_unless_named() {
        let held_back = [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "PEGBOARD_CONFIG",
        ];
        for name in held_back {
            let ours = || [(OsString::from(name), OsString::from("ours"))].into_iter();
            let mut command = Command::new("x");
            command.env_policy = EnvPolicy::Inherit;
            assert_eq!(build(&command, ours()), Environment::new(), "{name}");
            let named = build(&command.env(name, "named"), ours());
            assert_eq!(named, Environment::from([(name.into(), "named".into())]));
        }
    }

    #[test]
    fn an_explicit_child_gets_only_what_its_config_sets() {
        check(EnvPolicy::Explicit, &[("TZ", "UTC"), ("TOKEN", "t")]);
    }
}
