//! [`Introspection`]: asks the authorization server about opaque tokens (RFC 7662).

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use pegboard::config::OAuthIntrospection;
use pegboard_base::sync::Mutex;
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};
use url::Url;

use super::{claims::Claims, token_table::TokenTable};
use crate::door::{
    fetch::{FetchError, Fetcher, TIME_LIMIT},
    token_fault::TokenFault,
};

/// How long the answer to an active token is believed, at most.
const ACTIVE: Duration = Duration::from_secs(60);
/// How long the answer to an inactive token is believed.
const INACTIVE: Duration = Duration::from_secs(10);
/// The most inactive tokens that are remembered.
const MAX_INACTIVE: usize = 4096;
/// The most requests at once.
const MAX_REQUESTS: usize = 16;
/// The most tokens that wait for an answer.
const MAX_WAITING: usize = 256;
/// The limit on a response.
const MAX_RESPONSE: usize = 64 * 1024;

/// The introspection endpoint of an authorization server.
pub(super) struct Introspection {
    settings: OAuthIntrospection,
    url: Url,
    fetcher: Fetcher,
    requests: Semaphore,
    inactive: TokenTable<SystemTime>,
    /// The tokens that are being asked about, each once.
    waiting: Mutex<HashMap<[u8; 32], Arc<Question>>>,
}

type Question = OnceCell<Result<Introspected, TokenFault>>;

/// An active token.
#[derive(Clone, Debug)]
pub(super) struct Introspected {
    pub(super) claims: Claims,
    /// When the server should be asked again.
    pub(super) until: SystemTime,
}

impl Introspection {
    pub(super) fn new(settings: &OAuthIntrospection) -> Option<Self> {
        Some(Self {
            url: Url::parse(&settings.url).ok()?,
            fetcher: Fetcher::for_server_at(&settings.url),
            settings: settings.clone(),
            requests: Semaphore::new(MAX_REQUESTS),
            inactive: TokenTable::new(MAX_INACTIVE),
            waiting: Mutex::default(),
        })
    }

    /// Asks about a token, unless it was inactive a moment ago or is being asked about already.
    pub(super) async fn introspect(
        &self,
        token: &str,
        digest: [u8; 32],
        issuer: &str,
    ) -> Result<Introspected, TokenFault> {
        if let Some(until) = self.inactive.get(&digest)
            && SystemTime::now() < *until
        {
            return Err(TokenFault::Inactive);
        }
        let question = {
            let mut waiting = self.waiting.lock();
            if waiting.len() >= MAX_WAITING && !waiting.contains_key(&digest) {
                return Err(TokenFault::Unavailable);
            }
            waiting.entry(digest).or_default().clone()
        };
        let place = WaitingPlace {
            introspection: self,
            digest,
            question,
        };
        // Requests of clients that go away are asked again by the next one that waits.
        let outcome = place.question.get_or_init(|| self.ask(token, digest, issuer)).await;
        outcome.clone()
    }

    async fn ask(&self, token: &str, digest: [u8; 32], issuer: &str) -> Result<Introspected, TokenFault> {
        let form = [("token", token), ("token_type_hint", "access_token")];
        let credentials = (&*self.settings.client_id, self.settings.client_secret.expose());
        let exchange = async {
            let _place = self.requests.acquire().await.map_err(|_| FetchError::Timeout)?;
            self.fetcher.post(&self.url, credentials, &form, MAX_RESPONSE).await
        };
        let answer = tokio::time::timeout(TIME_LIMIT, exchange)
            .await
            .unwrap_or(Err(FetchError::Timeout));
        let now = SystemTime::now();
        match answer.map(|document| document.json) {
            Ok(Value::Object(fields)) if fields.get("active") == Some(&Value::Bool(true)) => Ok(Introspected {
                claims: Claims::from_introspection(fields, issuer),
                until: now + ACTIVE,
            }),
            Ok(fields) if fields.get("active") == Some(&Value::Bool(false)) => {
                self.inactive
                    .put(digest, Arc::new(now + INACTIVE), |until| now >= *until);
                Err(TokenFault::Inactive)
            }
            Ok(_) => {
                tracing::warn!("the introspection endpoint does not say whether a token is active");
                Err(TokenFault::Unavailable)
            }
            Err(error) => {
                tracing::warn!(%error, "an access token cannot be introspected");
                Err(TokenFault::Unavailable)
            }
        }
    }
}

/// The place of one request in `waiting`. It is given back also if the request is dropped, because its client has gone.
struct WaitingPlace<'a> {
    introspection: &'a Introspection,
    digest: [u8; 32],
    question: Arc<Question>,
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        let mut waiting = self.introspection.waiting.lock();
        // Dropped before the lock is released, so that the last place sees that it is the last.
        let question = std::mem::take(&mut self.question);
        let is_known = waiting
            .get(&self.digest)
            .is_some_and(|known| Arc::ptr_eq(known, &question));
        // Held by the map and this place only.
        let is_last = Arc::strong_count(&question) <= 2;
        if is_known && (is_last || question.initialized()) {
            waiting.remove(&self.digest);
        }
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clients_that_go_away_leave_their_places_to_others() {
        // Connections are accepted by the kernel, and nobody answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/introspect", silent.local_addr().unwrap());
        let introspection = Introspection::new(&OAuthIntrospection::new(url, "gate", "secret")).unwrap();
        let check = |number: u8| introspection.introspect("opaque", [number; 32], "https://as.example");
        let (first, second, other) = (check(1), check(1), check(2));
        let mut first = Box::pin(first);
        {
            let gone = async { tokio::join!(&mut first, second, other) };
            assert!(tokio::time::timeout(Duration::from_millis(1), gone).await.is_err());
        }
        assert_eq!(introspection.waiting.lock().len(), 1, "the first is still waiting");
        drop(first);
        assert_eq!(introspection.waiting.lock().len(), 0);
    }
}
