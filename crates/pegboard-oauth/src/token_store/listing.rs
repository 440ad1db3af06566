//! All accounts and registered clients of a store.

use std::{io, path::Path};

use super::{Inner, Storage, StoreError, TokenStore, registration_key, run_blocking};
use crate::{
    account::AccountKey,
    sealed,
    stored::{Registration, StoredAccount},
};

/// The most files that are looked at.
const MAX_FILES: usize = 100_000;

/// An account of the store.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) key: AccountKey,
    pub(crate) account: StoredAccount,
    /// Whether its file is encrypted.
    pub(crate) is_encrypted: bool,
}

impl TokenStore {
    /// Every account with a session. A file that cannot be read is left out and logged; if none can be read, that is an error.
    pub(crate) async fn accounts(&self) -> Result<Vec<Listed>, StoreError> {
        let inner = self.inner.clone();
        run_blocking(move || inner.accounts()).await
    }

    /// Removes the clients that are registered at an issuer, for all redirect addresses.
    pub(crate) async fn remove_registrations(&self, issuer: &str) -> Result<(), StoreError> {
        let (inner, issuer) = (self.inner.clone(), issuer.to_owned());
        for key in run_blocking(move || inner.registrations(&issuer)).await? {
            self.delete(&key).await?;
        }
        Ok(())
    }

    /// The files that cannot be read, and those that were set aside because they are damaged, with their names.
    pub(crate) async fn list_unreadable(&self) -> Result<Vec<(AccountKey, String)>, StoreError> {
        let inner = self.inner.clone();
        run_blocking(move || inner.unreadable_files()).await
    }
}

impl Inner {
    fn accounts(&self) -> Result<Vec<Listed>, StoreError> {
        let (mut accounts, mut failure) = (Vec::new(), None);
        for key in self.keys()? {
            match self.session_of(&key) {
                Ok(found) => accounts.extend(found),
                Err(error) => {
                    tracing::warn!(%error, "a sign-in is not listed");
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) if accounts.is_empty() => Err(error),
            _ => Ok(accounts),
        }
    }

    fn unreadable_files(&self) -> Result<Vec<(AccountKey, String)>, StoreError> {
        let mut keys = self.keys()?;
        keys.retain(|key| self.session_of(key).is_err());
        if let Storage::Folder(folder) = &self.storage {
            let damaged = files(folder, ".damaged").map_err(|error| listing_error(folder, &error))?;
            keys.extend(damaged.iter().filter_map(|name| AccountKey::parse(name)));
        }
        Ok(keys
            .into_iter()
            .map(|key| (key.clone(), self.display_file(&key)))
            .collect())
    }

    /// The account of a file, if it is one and has a session.
    fn session_of(&self, key: &AccountKey) -> Result<Option<Listed>, StoreError> {
        let Some(content) = self.load(key)? else {
            return Ok(None);
        };
        let text =
            sealed::open(&content, key.as_str(), &*self.key).map_err(|problem| self.read_error(key, problem.why()))?;
        // Registered clients and pinned issuers are no accounts: they have no session.
        let account: Option<StoredAccount> = serde_json::from_slice(&text).ok();
        Ok(account
            .filter(|account| account.session.is_some())
            .map(|account| Listed {
                key: key.clone(),
                account,
                is_encrypted: sealed::is_encrypted(&content),
            }))
    }

    /// The files of the clients that are registered at an issuer. Those that cannot be read are left out.
    fn registrations(&self, issuer: &str) -> Result<Vec<AccountKey>, StoreError> {
        let is_of = |key: &AccountKey| {
            let content = self.load(key).ok().flatten();
            let text = content.and_then(|content| sealed::open(&content, key.as_str(), &*self.key).ok());
            let found: Option<Registration> = text.and_then(|text| serde_json::from_slice(&text).ok());
            found.is_some_and(|found| found.issuer == issuer && registration_key(issuer, &found.redirect_uri) == *key)
        };
        let mut keys = self.keys()?;
        keys.retain(is_of);
        Ok(keys)
    }

    /// The names of all files, sorted.
    fn keys(&self) -> Result<Vec<AccountKey>, StoreError> {
        let mut names: Vec<String> = self.unsaved.lock().keys().cloned().collect();
        match &self.storage {
            Storage::Memory { files, .. } => names.extend(files.lock().keys().cloned()),
            Storage::Folder(folder) => {
                names.extend(files(folder, ".json").map_err(|error| listing_error(folder, &error))?);
            }
        }
        names.sort();
        names.dedup();
        Ok(names.iter().filter_map(|name| AccountKey::parse(name)).collect())
    }
}

fn listing_error(folder: &Path, error: &io::Error) -> StoreError {
    StoreError::Read {
        file: folder.display().to_string(),
        why: error.to_string(),
    }
}

/// The names of the files of a folder with this ending, without it. A folder that does not exist yet has none.
fn files(folder: &Path, ending: &str) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let name = entry?.file_name();
        names.extend(
            name.to_str()
                .and_then(|name| name.strip_suffix(ending))
                .map(str::to_owned),
        );
    }
    Ok(names)
}
