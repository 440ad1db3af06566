//! [`IssuerKeys`]: the public keys of one issuer. They are fetched when they are first needed, again when they get old or a token names
//! an unknown key, by one request at a time, and at most so often. While the issuer does not answer, old keys are used for a limited time.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use pegboard_base::sync::Mutex;
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
/// How long keys are used before they are fetched again: as long as the response says, but not longer than this.
const MAX_AGE: Duration = Duration::from_secs(3600);
const MIN_AGE: Duration = Duration::from_secs(60);
/// How long keys that should be fetched again are used while the issuer does not answer.
const MAX_STALE: Duration = Duration::from_secs(24 * 3600);
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
    /// When the keys should be fetched again, in milliseconds after `begun`. Read for every request, so that it is no part of a lock.
    due: AtomicU64,
    begun: Instant,
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
    keys: Vec<Arc<Jwk>>,
    /// When they should be fetched again; `None` before the first fetch.
    stale_at: Option<Instant>,
}

/// With what a token was verified.
#[derive(Clone, Debug)]
pub(in crate::door) struct Proof {
    keys: Arc<IssuerKeys>,
    key: Arc<Jwk>,
    epoch: u64,
}

#[derive(Debug, Default)]
struct Fetching {
    running: Option<AbortOnDropHandle<()>>,
    begun: Option<Instant>,
    /// Whether the last one that ended has failed.
    has_failed: bool,
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
            due: AtomicU64::new(u64::MAX),
            begun: Instant::now(),
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

    /// Verifies the signature of a token.
    pub(in crate::door) async fn verify(&self, token: &Jws<'_>) -> Result<Proof, TokenFault> {
        self.fetch_if_old();
        // The epoch first: a key that is withdrawn meanwhile ends what it proves.
        let epoch = self.epoch.load(Ordering::Acquire);
        let known = self.current.load_full();
        if known.is_usable() && known.has_key_for(token) {
            return self.proof(known.verify(token)?, epoch);
        }
        let mut fetched = self.fetched.subscribe();
        if self.begin_fetch() {
            // The fetch has a limit of its own; this one is for a task that was aborted.
            let _ = tokio::time::timeout(2 * TIME_LIMIT, fetched.changed()).await;
        }
        let epoch = self.epoch.load(Ordering::Acquire);
        let known = self.current.load_full();
        match known.is_usable() {
            true if known.has_key_for(token) => self.proof(known.verify(token)?, epoch),
            // The key may be a new one.
            true if !self.fetching.lock().has_failed => Err(TokenFault::UnknownKey),
            _ => Err(TokenFault::Unavailable),
        }
    }

    fn proof(&self, key: Arc<Jwk>, epoch: u64) -> Result<Proof, TokenFault> {
        let keys = self.this.upgrade().ok_or(TokenFault::Unavailable)?;
        Ok(Proof { keys, key, epoch })
    }

    /// Begins to fetch the keys if they are old. They are good until then.
    pub(in crate::door) fn fetch_if_old(&self) {
        if self.millis(Instant::now()) >= self.due.load(Ordering::Relaxed) {
            self.begin_fetch();
        }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    /// Begins to fetch the keys, unless that was done a moment ago. Returns `true` if a fetch is running.
    fn begin_fetch(&self) -> bool {
        let pause = match self.current.load().stale_at {
            Some(_) => PAUSE,
            None => FIRST_PAUSE,
        };
        let mut fetching = self.fetching.lock();
        if fetching.running.as_ref().is_some_and(|task| !task.is_finished()) {
            return true;
        }
        if fetching.begun.is_some_and(|begun| begun.elapsed() < pause) {
            return false;
        }
        let now = Instant::now();
        fetching.begun = Some(now);
        self.due.store(self.millis(now + pause), Ordering::Relaxed);
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
        let has_failed = outcome.is_err();
        match outcome {
            Ok(keys) => {
                if let Some(at) = keys.stale_at {
                    self.due.store(self.millis(at), Ordering::Relaxed);
                }
                let keys = Arc::new(keys);
                let before = self.current.swap(keys.clone());
                if before.keys.iter().any(|key| !keys.keys.contains(key)) {
                    self.epoch.fetch_add(1, Ordering::AcqRel);
                }
            }
            Err(error) => {
                tracing::warn!(issuer = %self.source.issuer, %error, "the keys of an issuer of access tokens cannot be fetched");
            }
        }
        // Before the waiting requests are notified, so that none of them takes this fetch for a running one.
        let mut fetching = self.fetching.lock();
        (fetching.running, fetching.has_failed) = (None, has_failed);
        drop(fetching);
        self.fetched.send_replace(());
    }
}

impl KeySource {
    async fn fetch(&self) -> Result<KeySet, FetchError> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.fetcher.get(&url, MAX_DOCUMENT).await?;
        let age = document.max_age.unwrap_or(MAX_AGE).clamp(MIN_AGE, MAX_AGE);
        let keys = document.json.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(FetchError::Content("the JWKS has no list `keys`"))?;
        Ok(KeySet {
            keys: keys.iter().take(MAX_KEYS).filter_map(Jwk::read).map(Arc::new).collect(),
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
    /// Returns `false` before the first fetch, and when they are so old that they may have been withdrawn long ago.
    fn is_usable(&self) -> bool {
        self.stale_at.is_some_and(|at| Instant::now() < at + MAX_STALE)
    }

    /// The keys that may have signed a token.
    fn candidates<'a>(&'a self, token: &'a Jws<'_>) -> impl Iterator<Item = &'a Arc<Jwk>> {
        let is_named = |key: &&Arc<Jwk>| token.key_id.is_none() || key.id == token.key_id;
        let is_for = |key: &&Arc<Jwk>| key.is_for(token.algorithm);
        self.keys.iter().filter(is_named).filter(is_for).take(MAX_TRIES)
    }

    fn has_key_for(&self, token: &Jws<'_>) -> bool {
        self.candidates(token).next().is_some()
    }

    /// The key that has signed a token.
    fn verify(&self, token: &Jws<'_>) -> Result<Arc<Jwk>, TokenFault> {
        let verifies = |key: &&Arc<Jwk>| key.verifies(token.algorithm, token.signed, &token.signature);
        self.candidates(token)
            .find(verifies)
            .cloned()
            .ok_or(TokenFault::Signature)
    }
}

impl Proof {
    /// Returns `true` if the token need not be verified again: no key was withdrawn since, and the keys are not too old.
    pub(in crate::door) fn is_current(&self) -> bool {
        self.keys.fetch_if_old();
        self.keys.epoch.load(Ordering::Acquire) == self.epoch && self.keys.current.load().is_usable()
    }

    /// Returns `true` if these are the keys that it was verified with.
    pub(in crate::door) fn is_by(&self, keys: &Arc<IssuerKeys>) -> bool {
        Arc::ptr_eq(&self.keys, keys)
    }

    /// Returns `true` if the key is still one of the issuer's.
    pub(in crate::door) fn holds(&self) -> bool {
        let known = self.keys.current.load();
        known.is_usable() && known.keys.contains(&self.key)
    }
}
