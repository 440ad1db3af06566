//! [`ConnectionCredentials`]: the credentials that the program supplies for one connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    delivery::Sent,
    request_failure::{FailureKind, WireFailure},
};
#[cfg(any(feature = "http", feature = "websocket"))]
use crate::credential::AuthChallenge;
use crate::credential::{CredentialSource, Issued, NoCredential};
use pegboard_mask::ServerMasker;

/// The source of a connection's credentials. Every credential is known to the masker before it is used.
#[derive(Debug, Clone)]
pub struct ConnectionCredentials {
    source: Arc<CredentialSource>,
    masker: ServerMasker,
    /// The generation that the masker got last.
    masked: Arc<AtomicU64>,
}

impl ConnectionCredentials {
    /// Creates the credentials of one connection, whose messages `masker` masks.
    pub fn new(source: Arc<CredentialSource>, masker: ServerMasker) -> Self {
        Self {
            source,
            masker,
            masked: Arc::default(),
        }
    }

    /// Returns the credential for a request.
    pub(super) async fn get_or_renew(&self) -> Result<Arc<Issued>, WireFailure> {
        self.make_known(self.source.get_or_renew().await)
    }

    /// Returns the credential for a process that is about to start.
    pub(super) async fn current_within(&self, limit: Duration) -> Result<Arc<Issued>, WireFailure> {
        let issued = tokio::time::timeout(limit, self.source.get_or_renew()).await;
        self.make_known(issued.unwrap_or_else(|_| {
            let text = "the program's credential provider did not answer before the start's time was over";
            Err(self.source.failure(text.to_owned()))
        }))
    }

    /// Returns a credential in place of one that the server has refused; `None` if there is none to send, as before.
    #[cfg(any(feature = "http", feature = "websocket"))]
    pub(super) async fn after_refusal(
        &self,
        refused: &Arc<Issued>,
        response: &http::HeaderMap,
    ) -> Result<Option<Arc<Issued>>, WireFailure> {
        let challenge = challenge(response);
        let issued = self.make_known(self.source.after_refusal(refused, challenge.as_deref()).await)?;
        let is_as_before = refused.headers().is_empty() && issued.headers().is_empty();
        Ok((!is_as_before).then_some(issued))
    }

    /// Whether a response refuses the credential: with 401, or with 403 if the token lacks scopes or the provider says so.
    #[cfg(any(feature = "http", feature = "websocket"))]
    pub(super) fn is_refusal(&self, status: http::StatusCode, response: &http::HeaderMap) -> bool {
        let lacks_scopes = || {
            let challenges = challenge(response).map(|header| AuthChallenge::parse_all(&header));
            challenges.iter().flatten().any(AuthChallenge::lacks_scopes)
        };
        match status {
            http::StatusCode::UNAUTHORIZED => true,
            http::StatusCode::FORBIDDEN => lacks_scopes() || self.source.is_refused_by_forbidden(),
            _ => false,
        }
    }

    /// The failure of a credential that cannot be used.
    pub(super) fn unusable_failure(&self, text: String) -> WireFailure {
        to_wire_failure(&self.source.failure(text))
    }

    /// Makes the masker know a credential before it is sent: the server may repeat it in its first response.
    fn make_known(&self, issued: Result<Arc<Issued>, NoCredential>) -> Result<Arc<Issued>, WireFailure> {
        let issued = issued.map_err(|failure| to_wire_failure(&failure))?;
        if self.masked.load(Ordering::Acquire) != issued.generation() {
            self.masker.add_issued(issued.secrets());
            self.masked.store(issued.generation(), Ordering::Release);
        }
        Ok(issued)
    }
}

fn to_wire_failure(failure: &NoCredential) -> WireFailure {
    WireFailure::new(
        FailureKind::NoCredential(failure.remedy().clone()),
        Sent::No,
        failure.to_string(),
    )
}

/// The challenges of a response, joined by commas.
#[cfg(any(feature = "http", feature = "websocket"))]
fn challenge(response: &http::HeaderMap) -> Option<String> {
    let values = response.get_all(http::header::WWW_AUTHENTICATE).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
