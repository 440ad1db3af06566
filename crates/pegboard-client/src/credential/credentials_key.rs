//! [`ViewCredentials`]: the credentials of a view, and the [`CredentialsKey`] that tells them from those of other views.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use super::provider::Credentials;
use pegboard_base::{secret::Secret, sync::catch_now};

/// The credentials of a view and its clones. `Debug` shows nothing of them.
#[derive(Clone)]
pub struct ViewCredentials {
    /// Returns the credentials for the servers that it covers.
    pub provider: Arc<dyn Credentials>,
    /// Held by the views that may be opened with these credentials, and by nothing else.
    given: Arc<()>,
}

impl ViewCredentials {
    /// Creates the credentials of a view. Without an identity of the provider, only clones are equal to them.
    pub fn new(provider: impl Credentials) -> Self {
        Self {
            provider: Arc::new(provider),
            given: Arc::default(),
        }
    }

    /// The key of these credentials. Calls the program's code, so no lock may be held.
    pub fn key(&self) -> CredentialsKey {
        let asked = catch_now(|| {
            // Dereferenced first: `Arc<T>` implements `Credentials` too, and would return its own address.
            let provider = &*self.provider;
            let name = provider.identity()?;
            Some(CredentialsKey::from_name(name, provider.allocation()))
        });
        match asked {
            Ok(Some(key)) => key,
            Ok(None) => CredentialsKey::Given(Arc::downgrade(&self.given)),
            Err(_) => {
                tracing::warn!(
                    "the credential provider panicked; its view shares no connection with views of other credentials"
                );
                CredentialsKey::Given(Arc::downgrade(&self.given))
            }
        }
    }
}

impl fmt::Debug for ViewCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ViewCredentials")
    }
}

/// Identifies credentials: views with equal keys share connections.
#[derive(Debug, Clone)]
pub enum CredentialsKey {
    /// The provider's own name for them.
    Named {
        /// A secret, because it may be the token itself.
        name: Secret,
        /// Keeps an address that is the name from being used again.
        _allocation: Option<Arc<dyn Any + Send + Sync>>,
    },
    /// Those of one view and its clones. The weak pointer keeps the address from being used again.
    Given(Weak<()>),
}

impl CredentialsKey {
    /// Creates a key that equals those with the same name. `allocation` is kept alive if the name is its address.
    pub fn from_name(name: String, allocation: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Self::Named {
            name: Secret::new(name),
            _allocation: allocation,
        }
    }

    /// Whether no view can be opened with equal credentials any more.
    pub fn is_unused(&self) -> bool {
        match self {
            Self::Named { .. } => false,
            Self::Given(given) => given.strong_count() == 0,
        }
    }
}

impl PartialEq for CredentialsKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named { name, .. }, Self::Named { name: other, .. }) => name == other,
            (Self::Given(given), Self::Given(other)) => given.ptr_eq(other),
            (Self::Named { .. }, Self::Given(_)) | (Self::Given(_), Self::Named { .. }) => false,
        }
    }
}

impl Eq for CredentialsKey {}

impl Hash for CredentialsKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Named { name, .. } => name.hash(state),
            Self::Given(given) => given.as_ptr().hash(state),
        }
    }
}
