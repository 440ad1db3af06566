//! Which environment variables a child process gets.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use crate::config::{Command, EnvPolicy};

/// A child's environment.
pub(super) type Environment = BTreeMap<OsString, OsString>;

/// What programs need to run at all: where things are, who runs them, the language, and where certificates live.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    // Certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // What Windows programs need.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The variables for `command`: what its policy lets through of `ours`, and on top what its config sets.
pub(super) fn build(command: &Command, ours: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    let passes = |name: &OsStr| match command.env_policy {
        EnvPolicy::Inherit => true,
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

fn is_allowed(name: &str) -> bool {
    let same = |allowed: &&str| {
        if cfg!(windows) {
            allowed.eq_ignore_ascii_case(name)
        } else {
            *allowed == name
        }
    };
    ALLOWED.iter().any(same)
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
    fn an_inheriting_child_gets_everything() {
        check(
            EnvPolicy::Inherit,
            &[
                ("PATH", "/bin"),
                ("TZ", "UTC"),
                ("TOKEN", "t"),
                ("AWS_SECRET_ACCESS_KEY", "s"),
                ("LD_PRELOAD", "x.so"),
            ],
        );
    }

    #[test]
    fn an_explicit_child_gets_only_what_its_config_sets() {
        check(EnvPolicy::Explicit, &[("TZ", "UTC"), ("TOKEN", "t")]);
    }
}
