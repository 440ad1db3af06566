//! The user's secrets, and the environment of configs that may refer to them.

use std::sync::Arc;

use pegboard::Env;
use pegboard_base::{keyring::Keyring, sync::Mutex};
use pegboard_oauth::SecretStore;

use super::boards::{key_file, state, uses_keyring};

/// The user's secrets; `None` if there is no home folder.
pub(crate) fn secret_store() -> Option<SecretStore> {
    let keyrings = match uses_keyring() {
        true => Keyring::all(),
        false => Vec::new(),
    };
    Some(SecretStore::new(state("secrets.json")?, keyrings, key_file()))
}

/// Whether any secret was asked for, and how the place of the secrets failed.
#[derive(Debug, Default, Clone)]
pub(crate) struct SecretUse(Arc<Mutex<(bool, Option<String>)>>);

impl SecretUse {
    pub(crate) fn is_any(&self) -> bool {
        self.0.lock().0
    }
}

/// The environment of this process. The secrets of the user are looked for only when a config refers to one.
pub(crate) fn environment(used: &SecretUse) -> Env<'static> {
    let used = used.0.clone();
    Env::process().secrets(move |name| {
        let mut used = used.lock();
        used.0 = true;
        // A keyring that does not answer would make each secret wait.
        if let Some(why) = &used.1 {
            return Err(why.clone());
        }
        let Some(store) = secret_store() else { return Ok(None) };
        let found = store.get(name).map_err(|error| {
            use pegboard::Hint as _;
            let why = match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            };
            if error.is_silent() {
                used.1 = Some(why.clone());
            }
            why
        })?;
        Ok(found.map(|secret| secret.expose().to_owned()))
    })
}
