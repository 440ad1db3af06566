//! Builds the environment variables of a child process.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use pegboard_config::{Command, EnvPolicy};

/// The environment variables of a child process.
pub(in crate::transport) type Environment = BTreeMap<OsString, OsString>;

/// The environment for `command`: the variables of `ours` that its policy allows, overridden by those that its config sets.
pub(in crate::transport) fn build(command: &Command, ours: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let passes = |name: &OsStr| match name.to_str() {
        Some(name) => command.env_policy.passes(name),
        None => command.env_policy == EnvPolicy::Inherit,
    };
    let mut environment: Environment = ours.filter(|(name, _)| passes(name)).collect();
    let set = command
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.expose().into()));
    environment.extend(set);
    environment
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
    fn an_inheriting_child_gets_every_variable_that_may_be_inherited() {
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
    fn code_loading_variables_model_keys_and_our_settings_are_not_inherited_unless_named() {
        let names = [
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
        for name in names {
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
