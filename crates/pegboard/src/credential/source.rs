//! [`CredentialSource`]: the provider that one connection asks, and the credential that is still valid.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::{Credential, CredentialError, CredentialReason, CredentialRequest, Credentials};
use crate::{caller::Principal, name::ServerName};

/// The source of one server's credentials for one principal. All connections of that server and principal share it.
pub(crate) struct CredentialSource {
    server: ServerName,
    principal: Option<Principal>,
    /// The newest provider. Views with equal principals replace it.
    provider: ArcSwap<Arc<dyn Credentials>>,
}

impl CredentialSource {
    pub(crate) fn new(server: ServerName, principal: Option<Principal>, provider: Arc<dyn Credentials>) -> Arc<Self> {
        Arc::new(Self {
            server,
            principal,
            provider: ArcSwap::from_pointee(provider),
        })
    }

    /// Uses another provider from the next request on.
    pub(crate) fn set_provider(&self, provider: Arc<dyn Credentials>) {
        self.provider.store(Arc::new(provider));
    }

    /// Asks the provider.
    pub(crate) async fn ask(&self, reason: CredentialReason<'_>) -> Result<Credential, CredentialError> {
        let provider = self.provider.load_full();
        let request = CredentialRequest {
            server: &self.server,
            principal: self.principal.as_ref(),
            reason,
        };
        provider.credential(request).await
    }
}

impl fmt::Debug for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialSource")
            .field("server", &self.server)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
