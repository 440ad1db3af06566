//! [`CredentialSource`]: the provider of one server's credentials for one principal, and the credential that is still valid.

use std::{fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    caller_tokens::CallerRights,
    issued::Issued,
    provider::{Credential, CredentialReason, CredentialRequest, Credentials, Remedy},
};
use pegboard_base::sync::Mutex;
use pegboard_base::{
    caller::Principal,
    name::ServerName,
    sync::{catch, catch_now},
};

/// How long a provider may take to return a credential.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest message of a provider that is shown, in bytes.
const MAX_MESSAGE: usize = 1000;

/// The source of one server's credentials for one principal. All connections of that server and principal share it.
pub struct CredentialSource {
    server: ServerName,
    principal: Option<Principal>,
    /// Which of the principal's access tokens may be exchanged.
    rights: Option<CallerRights>,
    /// The newest provider. Views with equal principals and credentials replace it.
    provider: ArcSwap<Arc<dyn Credentials>>,
    state: Mutex<CredentialState>,
    /// Held by the request that renews the credential, so that concurrent requests ask the provider once.
    renewing: Semaphore,
}

#[derive(Default)]
struct CredentialState {
    /// The answer to the newest question that was answered, and the number of that question.
    last: Option<(u64, Arc<Issued>)>,
    /// The newest generation that the server has refused, and its values until the provider has been told of that.
    refused: u64,
    refused_values: Option<Arc<Issued>>,
    /// The newest question whose answer must not be used any more, although it may still be valid.
    outdated: u64,
    /// How many questions the provider was asked. A new credential has the number of its question as its generation.
    asked: u64,
    /// How many renewals have failed, and why the last one did.
    failures: u64,
    failure: Option<NoCredential>,
}

/// What a request has to do for its credential.
enum Next {
    /// The last credential is still valid.
    Use(Arc<Issued>),
    /// Credentials are for one request each, so requests need not wait for each other.
    AskAlone,
    /// One request asks for all that wait.
    Renew(CredentialReason<'static>),
}

impl CredentialState {
    fn next(&self) -> Next {
        match &self.last {
            None => Next::Renew(CredentialReason::FirstUse),
            Some((_, last)) if last.generation() <= self.refused => Next::Renew(CredentialReason::Refresh),
            Some((_, last)) => match last.valid_until() {
                Some(until) if Instant::now() < until => Next::Use(last.clone()),
                Some(_) => Next::Renew(CredentialReason::Refresh),
                None => Next::AskAlone,
            },
        }
    }

    /// The last credential, if it is newer than `generation`.
    fn newer_than(&self, generation: u64) -> Option<Arc<Issued>> {
        let (_, last) = self.last.as_ref()?;
        (last.generation() > generation).then(|| last.clone())
    }

    /// Stores the answer to a question, and returns it as it is sent.
    fn keep(
        &mut self,
        question: u64,
        reason: CredentialReason<'_>,
        credential: &Credential,
    ) -> Result<Arc<Issued>, String> {
        let has_values = |issued: &&Arc<Issued>| issued.has_values_of(credential);
        let refused = self.refused_values.as_ref().filter(has_values);
        let issued = match reason {
            // Values that the server has refused are a new generation: the provider knows of the refusal and insists, so it is not asked again for
            // each request that was refused with them.
            CredentialReason::Refused { .. } => {
                let issued = Issued::new(question, credential)?;
                if refused.is_some() {
                    self.refused_values = None;
                }
                issued
            }
            // Otherwise the same values are the same generation. A provider may still return those that were refused meanwhile.
            CredentialReason::FirstUse | CredentialReason::Refresh => {
                let last = self.last.as_ref().map(|(_, last)| last).filter(has_values);
                match last.or(refused) {
                    Some(known) => known.with_new_validity(credential),
                    None => Issued::new(question, credential)?,
                }
            }
        };
        let issued = Arc::new(issued);
        // The answer to an older question may come late. It is for its own request only.
        let is_newer = self.last.as_ref().is_none_or(|(newest, last)| {
            last.generation() <= self.refused || (*newest < question && issued.generation() > self.refused)
        });
        if is_newer && question > self.outdated {
            self.last = Some((question, issued.clone()));
        }
        Ok(issued)
    }

    /// The failure of a renewal that ended after `seen` failures.
    fn check_failed_since(&self, seen: u64) -> Result<(), NoCredential> {
        match &self.failure {
            Some(failure) if self.failures > seen => Err(failure.clone()),
            _ => Ok(()),
        }
    }
}

impl CredentialSource {
    /// Creates the source for a principal, or for the board's own connections, without exchanging tokens of callers.
    pub fn new(server: ServerName, principal: Option<Principal>, provider: Arc<dyn Credentials>) -> Arc<Self> {
        Self::for_caller(server, principal, None, provider)
    }

    /// Creates one for the callers of a principal that have these rights.
    pub fn for_caller(
        server: ServerName,
        principal: Option<Principal>,
        rights: Option<CallerRights>,
        provider: Arc<dyn Credentials>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            principal,
            rights,
            provider: ArcSwap::from_pointee(provider),
            state: Mutex::default(),
            renewing: Semaphore::new(1),
        })
    }

    /// Uses another provider from the next question on, and returns the one before. A credential that is still valid is kept.
    #[must_use = "dropping a provider runs the program's code, so no lock may be held"]
    pub fn set_provider(&self, provider: Arc<dyn Credentials>) -> Arc<Arc<dyn Credentials>> {
        self.provider.swap(Arc::new(provider))
    }

    /// Returns the credential for a request. Asks the provider unless the last credential is still valid.
    pub(crate) async fn get_or_renew(&self) -> Result<Arc<Issued>, NoCredential> {
        let (mut next, seen) = {
            let state = self.state.lock();
            (state.next(), state.failures)
        };
        if let Next::Renew(_) = next {
            let _permit = self.renewing.acquire().await;
            {
                let state = self.state.lock();
                state.check_failed_since(seen)?;
                next = state.next();
            }
            if let Next::Renew(reason) = next {
                return self.renew(reason, None).await;
            }
        }
        match next {
            Next::Use(issued) => Ok(issued),
            Next::AskAlone | Next::Renew(_) => self.ask(CredentialReason::Refresh, None).await,
        }
    }

    /// Returns a credential in place of one that the server has refused. Asks the provider, unless another request has done so since.
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket", test)),
        expect(dead_code, reason = "only remote servers refuse credentials")
    )]
    pub(crate) async fn after_refusal(
        &self,
        refused: &Arc<Issued>,
        challenge: Option<&str>,
    ) -> Result<Arc<Issued>, NoCredential> {
        let generation = refused.generation();
        let seen = {
            let mut state = self.state.lock();
            if generation > state.refused {
                state.refused = generation;
                state.refused_values = Some(refused.clone());
            }
            if let Some(newer) = state.newer_than(generation) {
                return Ok(newer);
            }
            state.failures
        };
        let _permit = self.renewing.acquire().await;
        {
            let state = self.state.lock();
            if let Some(newer) = state.newer_than(generation) {
                return Ok(newer);
            }
            state.check_failed_since(seen)?;
        }
        self.renew(CredentialReason::Refused { challenge }, Some(refused)).await
    }

    /// Asks the provider for all requests that wait. Its failure is theirs too.
    async fn renew(
        &self,
        reason: CredentialReason<'_>,
        refused: Option<&Arc<Issued>>,
    ) -> Result<Arc<Issued>, NoCredential> {
        let renewed = self.ask(reason, refused).await;
        if let Err(failure) = &renewed {
            let mut state = self.state.lock();
            state.failures += 1;
            state.failure = Some(failure.clone());
        }
        renewed
    }

    async fn ask(
        &self,
        reason: CredentialReason<'_>,
        refused: Option<&Arc<Issued>>,
    ) -> Result<Arc<Issued>, NoCredential> {
        let question = {
            let mut state = self.state.lock();
            state.asked += 1;
            state.asked
        };
        let credential = self.request(reason, refused).await?;
        let kept = self.state.lock().keep(question, reason, &credential);
        kept.map_err(|unusable| self.failure(unusable))
    }

    /// Runs the provider, which is the program's code: it may fail, hang or panic.
    async fn request(
        &self,
        reason: CredentialReason<'_>,
        refused: Option<&Arc<Issued>>,
    ) -> Result<Credential, NoCredential> {
        let provider = self.provider.load_full();
        let refused_token = refused.and_then(|refused| refused.token());
        let request = CredentialRequest {
            server: &self.server,
            principal: self.principal.as_ref(),
            reason,
            refused_token: refused_token.as_ref(),
            rights: self.rights,
        };
        let asking = catch(async { provider.credential(request).await });
        let text = match tokio::time::timeout(ASK_TIMEOUT, asking).await {
            Ok(Ok(Ok(credential))) => return Ok(credential),
            Ok(Ok(Err(error))) => {
                let mut text = error.to_string();
                text.truncate(text.floor_char_boundary(MAX_MESSAGE));
                return Err(NoCredential {
                    remedy: error.remedy().clone(),
                    ..self.failure(text)
                });
            }
            Ok(Err(_)) => "the program's credential provider panicked".to_owned(),
            Err(_) => format!(
                "the program's credential provider did not answer within {} s",
                ASK_TIMEOUT.as_secs()
            ),
        };
        Err(self.failure(text))
    }

    pub(crate) fn failure(&self, reason: String) -> NoCredential {
        NoCredential {
            server: self.server.clone(),
            principal: self.principal.clone(),
            reason,
            remedy: Remedy::Program,
        }
    }

    /// Forgets the last credential and its refusals, although it may still be valid: the provider has another one, or none.
    #[cfg(feature = "oauth")]
    pub fn outdate(&self) {
        let mut state = self.state.lock();
        // The provider may be answering a question with the old one at this moment.
        state.outdated = state.asked;
        state.last = None;
        state.refused_values = None;
    }

    /// Whether the provider has credentials for the server. Without it, those of the config are used.
    pub fn covers(&self, is_process: bool) -> bool {
        let provider = self.provider.load();
        catch_now(|| provider.covers(&self.server, is_process)).unwrap_or(true)
    }

    /// Whether status 403 refuses the credential.
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket")),
        expect(dead_code, reason = "only remote servers refuse credentials")
    )]
    pub(crate) fn is_refused_by_forbidden(&self) -> bool {
        let provider = self.provider.load();
        catch_now(|| provider.retries_on_forbidden(&self.server)).unwrap_or(false)
    }

    /// Waits until the provider may have another credential than the one that failed.
    pub async fn renewed(&self) {
        let provider = self.provider.load_full();
        let waiting = catch(async { provider.wait_for_renewal(&self.server, self.principal.as_ref()).await });
        if waiting.await.is_err() {
            std::future::pending::<()>().await;
        }
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

/// Why there is no credential for a request. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCredential {
    server: ServerName,
    principal: Option<Principal>,
    reason: String,
    remedy: Remedy,
}

impl NoCredential {
    pub(crate) fn remedy(&self) -> &Remedy {
        &self.remedy
    }
}

impl fmt::Display for NoCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.remedy, &self.principal) {
            // The reason says what is missing.
            (Remedy::Person { .. }, None) => f.write_str(&self.reason),
            (Remedy::Person { .. }, Some(principal)) => write!(f, "{} (principal `{principal}`)", self.reason),
            (_, None) => write!(
                f,
                "there is no credential for server `{}`: {}",
                self.server, self.reason
            ),
            (_, Some(principal)) => write!(
                f,
                "there is no credential for server `{}` and principal `{principal}`: {}",
                self.server, self.reason
            ),
        }
    }
}

impl std::error::Error for NoCredential {}

#[cfg(test)]
mod tests;
