//! References to secrets in the keyring of the operating system: `${keyring:SERVICE/USER}`, and `${secret:NAME}` for those of the user.

use std::{collections::BTreeMap, sync::Arc};

use pegboard_base::{
    secret::{USER_SECRETS, is_secret_name},
    sync::Mutex,
};

/// How a reference to an entry of the keyring begins, inside of its braces.
const PREFIX: &str = "keyring:";
/// How a reference to a secret of the user begins.
const SECRET_PREFIX: &str = "secret:";
/// The longest service and the longest user.
const MAX_NAME: usize = 256;

/// Looks up a secret by its service and user.
type Lookup = dyn Fn(&str, &str) -> Result<String, KeyringProblem> + Send + Sync;

/// Why a secret cannot be read, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyringProblem {
    pub(super) message: String,
    pub(super) hint: String,
    /// Whether the keyring did not answer, so that it is not asked again.
    pub(super) is_silent: bool,
}

impl KeyringProblem {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            is_silent: false,
        }
    }
}

/// A keyring that is asked for each secret once.
#[derive(Clone)]
pub(super) struct KeyringReferences(Arc<Inner>);

struct Inner {
    lookup: Box<Lookup>,
    known: Mutex<BTreeMap<String, Result<String, KeyringProblem>>>,
}

impl KeyringReferences {
    pub(super) fn new(lookup: impl Fn(&str, &str) -> Result<String, KeyringProblem> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            lookup: Box::new(lookup),
            known: Mutex::default(),
        }))
    }

    /// No keyring, where a program has chosen its own variables.
    pub(super) fn absent() -> Self {
        Self::new(|_, _| {
            Err(KeyringProblem::new(
                "there is no keyring here",
                "put the secret in a variable",
            ))
        })
    }

    /// The same, with another place for the secrets of the user.
    pub(super) fn with_secrets(
        self,
        secrets: impl Fn(&str) -> Result<String, KeyringProblem> + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |service, user| match service {
            USER_SECRETS => secrets(user),
            _ => (self.0.lookup)(service, user),
        })
    }

    /// The keyring of this machine.
    #[cfg(feature = "keyring")]
    pub(super) fn for_system() -> Self {
        use pegboard_base::keyring::{Keyring, KeyringEntry, KeyringError, find_in};

        Self::new(|service, user| {
            let entry = KeyringEntry { service, user };
            let found = find_in(&Keyring::all(), entry);
            found
                .map(|secret| secret.expose().to_owned())
                .map_err(|error| KeyringProblem {
                    message: error.to_string(),
                    hint: match (service, &error) {
                        (USER_SECRETS, KeyringError::NoEntry | KeyringError::NoKeyring) => set_hint(user),
                        _ => error.hint(entry),
                    },
                    is_silent: matches!(error, KeyringError::NoAnswer(_)),
                })
        })
    }

    /// No keyring.
    #[cfg(not(feature = "keyring"))]
    pub(super) fn for_system() -> Self {
        Self::new(|_, _| {
            let hint = "build it with the feature `keyring` of the crate `pegboard`, or put the secret in a variable";
            Err(KeyringProblem::new("this program was built without keyrings", hint))
        })
    }

    /// The secret that a reference names. `None` if `name` is no such reference.
    pub(super) fn get(&self, name: &str) -> Option<Result<String, KeyringProblem>> {
        let (service, user) = entry(name)?;
        let mut known = self.0.known.lock();
        if let Some(known) = known.get(name) {
            return Some(known.clone());
        }
        // A keyring that waits for a person would make each reference wait.
        let silent = known.values().find_map(|known| match known {
            Err(problem) if problem.is_silent => Some(problem.clone()),
            _ => None,
        });
        let found = match silent {
            Some(problem) => Err(problem),
            None => (self.0.lookup)(service, user),
        };
        known.insert(name.to_owned(), found.clone());
        Some(found)
    }
}

/// What to do about a secret of the user that is not stored.
pub(super) fn set_hint(name: &str) -> String {
    format!("`pegboard secret set {name}` stores it")
}

/// Whether a text in the braces of a reference is meant for the keyring.
pub(super) fn is_meant(name: &str) -> bool {
    name.starts_with(PREFIX) || name.starts_with(SECRET_PREFIX)
}

/// The name of the user's secret that a reference asks for, or should ask for.
pub(super) fn secret_name(name: &str) -> Option<&str> {
    name.strip_prefix(SECRET_PREFIX)
}

/// The service and the user that a reference names. The service may have slashes.
pub(super) fn entry(name: &str) -> Option<(&str, &str)> {
    if let Some(secret) = secret_name(name) {
        return is_secret_name(secret).then_some((USER_SECRETS, secret));
    }
    let (service, user) = name.strip_prefix(PREFIX)?.rsplit_once('/')?;
    // A name with a leading `-` could pass for an option of a program.
    let is_name = |text: &str| {
        !text.is_empty() && text.len() <= MAX_NAME && !text.starts_with('-') && !text.chars().any(char::is_control)
    };
    (is_name(service) && is_name(user)).then_some((service, user))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_reference_names_a_service_and_a_user() {
        assert_eq!(entry("keyring:github/me"), Some(("github", "me")));
        assert_eq!(entry("keyring:https://h/x/me@h"), Some(("https://h/x", "me@h")));
        assert_eq!(entry("secret:GH_TOKEN"), Some((USER_SECRETS, "GH_TOKEN")));
        for bad in [
            "secret:",
            "secret:a b",
            "secret:-a",
            "secret:a/b",
            "keyring:",
            "keyring:a",
            "keyring:a/",
            "keyring:/b",
            "keyring:-a/b",
            "keyring:a/-b",
            "a/b",
            "keyring:a\n/b",
        ] {
            assert_eq!(entry(bad), None, "{bad:?}");
        }
    }

    #[cfg(all(feature = "keyring", target_os = "linux"))]
    #[test]
    fn a_secret_in_the_keyring_of_the_kernel_is_found() {
        use pegboard_base::{
            keyring::{Keyring, KeyringEntry},
            secret::Secret,
        };

        let user = format!("reference-{}", std::process::id());
        let entry = KeyringEntry {
            service: "pegboard-test",
            user: &user,
        };
        // A container may forbid the system calls.
        if Keyring::Kernel.store(entry, &Secret::new("s3cret")).is_ok() {
            let found = KeyringReferences::for_system().get(&format!("keyring:pegboard-test/{user}"));
            assert_eq!(found, Some(Ok("s3cret".to_owned())));
        }
    }

    #[test]
    fn the_secrets_of_the_user_may_be_in_another_place_than_the_keyring() {
        let keyring = KeyringReferences::new(|service, user| Ok(format!("keyring {service}/{user}")));
        let both = keyring.with_secrets(|name| Ok(format!("secret {name}")));
        assert_eq!(both.get("keyring:a/b"), Some(Ok("keyring a/b".to_owned())));
        assert_eq!(both.get("secret:B"), Some(Ok("secret B".to_owned())));
    }

    #[test]
    fn a_keyring_that_does_not_answer_is_asked_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let keyring = KeyringReferences::new(move |_, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            Err(KeyringProblem {
                is_silent: true,
                ..KeyringProblem::new("no answer", "unlock it")
            })
        });
        for name in ["keyring:a/b", "keyring:a/c", "keyring:a/b"] {
            assert_eq!(keyring.get(name).unwrap().unwrap_err().message, "no answer");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
