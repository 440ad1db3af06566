//! [`IssuerKeys`]: the public keys of one issuer. They are fetched when they are first needed, again when they get old or a token names
//! an unknown key, by one request at a time, and at most so often.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::{jwk::Jwk, jws::Jws};
use crate::door::{
    fetch::{FetchError, Fetcher, MAX_DOCUMENT, TIME_LIMIT},
    token_fault::TokenFault,
};

/// The shortest time between two fetches.
const PAUSE: Duration = Duration::from_secs(30);
/// The same while no key is known: nobody could get in.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long keys are used before they are fetched again, if the response does not say.
const AGE: Duration = Duration::from_secs(3600);
const MIN_AGE: Duration = Duration::from_secs(60);
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// The most keys that are read of a JWKS.
const MAX_KEYS: usize = 100;
/// The most keys that are tried for a token that names none.
const MAX_TRIES: usize = 4;

/// The keys of an issuer.
#[derive(Debug)]
pub(in crate::door) struct IssuerKeys {
    source: KeySource,
    current: ArcSwap<KeySet>,
    /// Counts the fetches after which a key was gone: what was verified with it before counts no more.
    epoch: AtomicU64,
    fetching: Mutex<Fetching>,
    /// Notified at the end of a fetch.
    fetched: watch::Sender<()>,
    this: Weak<Self>,
}

/// Where the keys are.
#[derive(Clone, Debug)]
struct KeySource {
    issuer: Arc<str>,
    jwks_url: Option<Url>,
    fetcher: Fetcher,
}

#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<Jwk>,
    /// When they should be fetched again; `None` before the first fetch.
    stale_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Fetching {
    running: Option<AbortOnDropHandle<()>>,
    begun: Option<Instant>,
}

impl IssuerKeys {
    /// The keys of an issuer, at `jwks_url` or where its metadata says.
    pub(in crate::door) fn new(issuer: &str, jwks_url: Option<&str>) -> Arc<Self> {
        let source = KeySource {
            issuer: issuer.into(),
            jwks_url: jwks_url.and_then(|url| Url::parse(url).ok()),
            fetcher: Fetcher::for_server_at(issuer),
        };
        Arc::new_cyclic(|this| Self {
            source,
            current: ArcSwap::default(),
            epoch: AtomicU64::new(0),
            fetching: Mutex::default(),
            fetched: watch::Sender::new(()),
            this: this.clone(),
        })
    }

    pub(in crate::door) fn issuer(&self) -> &str {
        &self.source.issuer
    }

    /// Returns `true` if these are the keys of this issuer at this place.
    pub(in crate::door) fn is_at(&self, issuer: &str, jwks_url: Option<&str>) -> bool {
        let url = jwks_url.and_then(|url| Url::parse(url).ok());
        *self.source.issuer == *issuer && self.source.jwks_url == url
    }

    /// Changes when a key is gone.
    pub(in crate::door) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Verifies the signature of a token.
    pub(in crate::door) async fn verify(&self, token: &Jws<'_>) -> Result<(), TokenFault> {
        let known = self.current.load_full();
        if known.stale_at.is_some_and(|at| Instant::now() >= at) {
            // The old ones are good until then.
            self.begin_fetch();
        }
        if known.has_key_for(token) {
            return known.verify(token);
        }
        let mut fetched = self.fetched.subscribe();
        if self.begin_fetch() {
            // The fetch has a limit of its own; this one is for a task that was aborted.
            let _ = tokio::time::timeout(2 * TIME_LIMIT, fetched.changed()).await;
        }
        let known = self.current.load_full();
        match known.stale_at {
            None => Err(TokenFault::Unavailable),
            Some(_) if known.has_key_for(token) => known.verify(token),
            Some(_) => Err(TokenFault::UnknownKey),
        }
    }

    /// Begins to fetch the keys, unless that was done a moment ago. Returns `true` if a fetch is running.
    fn begin_fetch(&self) -> bool {
        let pause = match self.current.load().stale_at {
            Some(_) => PAUSE,
            None => FIRST_PAUSE,
        };
        let mut fetching = self.fetching();
        if fetching.running.as_ref().is_some_and(|task| !task.is_finished()) {
            return true;
        }
        if fetching.begun.is_some_and(|begun| begun.elapsed() < pause) {
            return false;
        }
        fetching.begun = Some(Instant::now());
        let (source, this) = (self.source.clone(), self.this.clone());
        let fetch = async move {
            let limited = tokio::time::timeout(TIME_LIMIT, source.fetch());
            let outcome = limited.await.unwrap_or(Err(FetchError::Timeout));
            if let Some(this) = this.upgrade() {
                this.finish(outcome);
            }
        };
        fetching.running = Some(AbortOnDropHandle::new(tokio::spawn(fetch)));
        true
    }

    fn finish(&self, outcome: Result<KeySet, FetchError>) {
        match outcome {
            Ok(keys) => {
                let before = self.current.swap(Arc::new(keys));
                let now = self.current.load();
                if before.keys.iter().any(|key| !now.keys.contains(key)) {
                    self.epoch.fetch_add(1, Ordering::AcqRel);
                }
            }
            Err(error) => {
                tracing::warn!(issuer = %self.source.issuer, %error, "the keys of an issuer of access tokens cannot be fetched");
            }
        }
        // Before the waiting requests are notified, so that none of them takes this fetch for a running one.
        self.fetching().running = None;
        self.fetched.send_replace(());
    }

    fn fetching(&self) -> MutexGuard<'_, Fetching> {
        self.fetching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeySource {
    async fn fetch(&self) -> Result<KeySet, FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.fetcher.get(&url, MAX_DOCUMENT).await?;
        let age = document.max_age.unwrap_or(AGE).clamp(MIN_AGE, MAX_AGE);
        let keys = document.json.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(FetchError::Content("the JWKS has no list `keys`"))?;
        Ok(KeySet {
            keys: keys.iter().take(MAX_KEYS).filter_map(Jwk::read).collect(),
            stale_at: Some(Instant::now() + age),
        })
    }

    /// Finds the keys by the metadata of the issuer: that of RFC 8414 first, then that of OpenID Connect.
    async fn discover(&self) -> Result<Url, FetchError> {
        let issuer = Url::parse(&self.issuer).map_err(|_| FetchError::Address)?;
        let path = issuer.path().trim_end_matches('/');
        let places = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
            format!("/.well-known/openid-configuration{path}"),
        ];
        let mut failure = FetchError::Address;
        for place in &places {
            let mut url = issuer.clone();
            url.set_path(place);
            let metadata = match self.fetcher.get(&url, MAX_DOCUMENT).await {
                Ok(metadata) => metadata.json,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            let text = |name: &str| metadata.get(name).and_then(Value::as_str);
            if text("issuer") != Some(&*self.issuer) {
                failure = FetchError::Content("its metadata names another issuer");
                continue;
            }
            if let Some(url) = text("jwks_uri") {
                return Url::parse(url).map_err(|_| FetchError::Address);
            }
            failure = FetchError::Content("its metadata has no `jwks_uri`");
        }
        Err(failure)
    }
}

impl KeySet {
    /// The keys that may have signed a token.
    fn candidates<'a>(&'a self, token: &'a Jws<'_>) -> impl Iterator<Item = &'a Jwk> {
        let is_named = |key: &&Jwk| token.key_id.is_none() || key.id == token.key_id;
        let is_for = |key: &&Jwk| key.is_for(token.algorithm);
        self.keys.iter().filter(is_named).filter(is_for).take(MAX_TRIES)
    }

    fn has_key_for(&self, token: &Jws<'_>) -> bool {
        self.candidates(token).next().is_some()
    }

    fn verify(&self, token: &Jws<'_>) -> Result<(), TokenFault> {
        let verifies = |key: &Jwk| key.verifies(token.algorithm, token.signed, &token.signature);
        match self.candidates(token).any(verifies) {
            true => Ok(()),
            false => Err(TokenFault::Signature),
        }
    }
}
