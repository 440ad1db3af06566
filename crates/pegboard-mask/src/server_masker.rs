//! The masker of one server, which follows changes of its policy and of the known secrets.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, OnceLock, Weak},
};

use arc_swap::{ArcSwap, Guard};

use super::{counts::Counts, known_values::KnownValues, masker::Masker, pattern_set::PatternSet, policy::Masking};
use pegboard_base::sync::Mutex;
use pegboard_base::{name::ServerName, secret::Secret};

/// Texts longer than this many bytes are masked on a blocking thread, because masking them takes milliseconds and would delay other tasks.
pub const LONG: usize = 256 << 10;

/// The most secrets without an owner that are kept. Tokens are renewed for as long as a program runs; the oldest have expired.
const MAX_UNOWNED: usize = 4096;

/// The most credentials of one server that are kept in addition to those of its config and those in use: a server may still send one that was
/// replaced.
const MAX_ISSUED: usize = 16;

/// All secrets that a board knows. They are masked in the messages of every server.
///
/// The secrets of a server's config are owned by its [`ServerMasker`]. They are kept while it lives, however many others there are, and are
/// dropped at the latest when half of the secrets learned with them are released. Secrets that the config has replaced, and secrets that the
/// embedding program adds, have no owner: the oldest of these are evicted when there are too many.
#[derive(Debug, Clone, Default)]
pub struct KnownSecrets(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: Mutex<HeldSecrets>,
    /// The matchers of the same secrets.
    values: ArcSwap<KnownValues>,
    /// The secrets of each server, for finding the owner of one.
    owners: Mutex<Vec<Weak<OwnedSecrets>>>,
}

#[derive(Debug, Default)]
struct HeldSecrets {
    /// How many owners each secret has. A secret in `unowned` has one more.
    counts: HashMap<Secret, usize>,
    /// The secrets without an owner, in the order in which they were learned.
    unowned: VecDeque<Secret>,
    is_unowned: HashSet<Secret>,
    /// The secrets that the current change has added.
    new: Vec<Secret>,
    /// Whether the current change has released a secret's last owner.
    has_released: bool,
}

impl HeldSecrets {
    fn hold(&mut self, secret: Secret) {
        let count = self.counts.entry(secret.clone()).or_default();
        *count += 1;
        if *count == 1 {
            self.new.push(secret);
        }
    }

    fn release(&mut self, secret: &Secret) {
        if let Some(count) = self.counts.get_mut(secret) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(secret);
                self.has_released = true;
            }
        }
    }

    /// Holds a secret without an owner, and evicts the oldest one if there are too many.
    fn hold_unowned(&mut self, secret: Secret) {
        if !self.is_unowned.insert(secret.clone()) {
            return;
        }
        self.unowned.push_back(secret.clone());
        self.hold(secret);
        if self.unowned.len() > MAX_UNOWNED
            && let Some(oldest) = self.unowned.pop_front()
        {
            self.is_unowned.remove(&oldest);
            self.release(&oldest);
        }
    }
}

impl KnownSecrets {
    /// Adds secrets without an owner, such as a token that was just issued.
    pub fn learn(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.change(|held| secrets.into_iter().for_each(|secret| held.hold_unowned(secret)));
    }

    /// Changes the held secrets, and then updates the matchers once.
    fn change(&self, change: impl FnOnce(&mut HeldSecrets)) {
        let mut held = self.0.held.lock();
        change(&mut held);
        let (mut new, has_released) = (std::mem::take(&mut held.new), std::mem::take(&mut held.has_released));
        new.retain(|secret| held.counts.contains_key(secret));
        if new.is_empty() && !has_released {
            return;
        }
        let mut values = Guard::into_inner(self.0.values.load());
        if has_released {
            values = Arc::new(values.without(|secret| held.counts.contains_key(secret)));
        }
        if !new.is_empty() {
            values = Arc::new(values.with(new));
        }
        self.0.values.store(values);
    }

    pub(super) fn values(&self) -> Guard<Arc<KnownValues>> {
        self.0.values.load()
    }

    /// The secrets of all servers that live.
    pub(super) fn owners(&self) -> Vec<Arc<OwnedSecrets>> {
        let owners = self.0.owners.lock();
        owners.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Whose secrets they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretOwner {
    pub(super) server: ServerName,
    /// The principal or view that uses the server with credentials of its own.
    user: Option<u64>,
}

/// The secrets of one server's config. Dropping it releases them.
#[derive(Debug)]
pub(super) struct OwnedSecrets {
    pub(super) known: KnownSecrets,
    /// The server; set once, before its first use.
    pub(super) owner: OnceLock<SecretOwner>,
    current: Mutex<HashSet<Secret>>,
    /// The secrets of credentials that the program supplied at run time, the newest last.
    issued: Mutex<VecDeque<Arc<[Secret]>>>,
    /// The matcher of the current secrets, built when a text contains a secret for the first time.
    matcher: Mutex<Option<Arc<KnownValues>>>,
}

impl OwnedSecrets {
    fn new(known: KnownSecrets) -> Self {
        Self {
            known,
            owner: OnceLock::new(),
            current: Mutex::default(),
            issued: Mutex::default(),
            matcher: Mutex::default(),
        }
    }

    /// Returns the matcher of this server's secrets.
    pub(super) fn matcher(&self) -> Arc<KnownValues> {
        let current = self.current.lock();
        let issued = self.issued.lock();
        let mut matcher = self.matcher.lock();
        let issued = issued.iter().flat_map(|secrets| secrets.iter());
        let build = || Arc::new(KnownValues::new(current.iter().chain(issued).cloned()));
        matcher.get_or_insert_with(build).clone()
    }

    /// Replaces the owned secrets. The earlier ones stay known without an owner, because the server may still send them.
    fn replace(&self, secrets: HashSet<Secret>) {
        let mut current = self.current.lock();
        self.known.change(|held| {
            for new in secrets.difference(&current) {
                held.hold(new.clone());
            }
            for old in current.difference(&secrets) {
                held.hold_unowned(old.clone());
                held.release(old);
            }
        });
        *current = secrets;
        *self.matcher.lock() = None;
    }

    /// Adds the secrets of a credential, and drops the oldest ones that no request holds.
    fn add_issued(&self, secrets: &Arc<[Secret]>) {
        let mut issued = self.issued.lock();
        if let Some(at) = issued.iter().position(|known| known == secrets) {
            issued.remove(at);
            issued.push_back(secrets.clone());
            return;
        }
        let mut released = Vec::new();
        while issued.len() >= MAX_ISSUED
            && let Some(unused) = issued.iter().position(|known| Arc::strong_count(known) == 1)
        {
            released.extend(issued.remove(unused));
        }
        self.known.change(|held| {
            secrets.iter().for_each(|secret| held.hold(secret.clone()));
            let released = released.iter().flat_map(|secrets| secrets.iter());
            released.for_each(|secret| held.release(secret));
        });
        issued.push_back(secrets.clone());
        *self.matcher.lock() = None;
    }
}

impl Drop for OwnedSecrets {
    fn drop(&mut self) {
        let current = self.current.get_mut();
        let current = std::mem::take(current);
        let issued = self.issued.get_mut();
        let issued = std::mem::take(issued);
        self.known.change(|held| {
            let issued = issued.iter().flat_map(|secrets| secrets.iter());
            current.iter().chain(issued).for_each(|secret| held.release(secret));
        });
    }
}

/// The masker of one server: its policy and all known secrets.
#[derive(Debug, Clone)]
pub struct ServerMasker {
    pub(super) owned: Arc<OwnedSecrets>,
    cached: Arc<CachedMasker>,
}

/// The masker as of its last use. Every call reads it, so reading takes no lock.
#[derive(Debug)]
struct CachedMasker {
    masker: ArcSwap<Masker>,
    /// Held while the masker is replaced.
    update_lock: Mutex<()>,
}

impl CachedMasker {
    fn new(masker: Masker) -> Self {
        Self {
            masker: ArcSwap::from_pointee(masker),
            update_lock: Mutex::default(),
        }
    }
}

impl Default for ServerMasker {
    fn default() -> Self {
        Self::new(&Masking::default(), KnownSecrets::default())
    }
}

impl ServerMasker {
    /// Creates the masker of a server with this policy, which shares the known secrets.
    pub fn new(policy: &Masking, known: KnownSecrets) -> Self {
        Self::with_secrets(policy, Arc::new(OwnedSecrets::new(known)))
    }

    /// Names the server whose secrets this masker owns.
    pub fn set_server(&self, server: &ServerName) {
        self.set_owner(SecretOwner {
            server: server.clone(),
            user: None,
        });
    }

    /// Returns a masker for the same server when one principal or view, known by its number, uses it with credentials of its own. Those are
    /// secret from other users of the server.
    pub fn for_user(&self, user: u64) -> Self {
        let owned = OwnedSecrets::new(self.owned.known.clone());
        owned.replace(self.owned.current.lock().clone());
        let copy = Self {
            owned: Arc::new(owned),
            cached: Arc::new(CachedMasker::new((**self.current()).clone())),
        };
        if let Some(owner) = self.owned.owner.get() {
            copy.set_owner(SecretOwner {
                server: owner.server.clone(),
                user: Some(user),
            });
        }
        copy
    }

    fn set_owner(&self, owner: SecretOwner) {
        if self.owned.owner.set(owner).is_ok() {
            let owners = &self.owned.known.0.owners;
            let mut owners = owners.lock();
            owners.retain(|owner| owner.strong_count() > 0);
            owners.push(Arc::downgrade(&self.owned));
        }
    }

    fn with_secrets(policy: &Masking, owned: Arc<OwnedSecrets>) -> Self {
        let masker = Masker {
            patterns: patterns(policy),
            values: Guard::into_inner(owned.known.values()),
        };
        Self {
            owned,
            cached: Arc::new(CachedMasker::new(masker)),
        }
    }

    /// Returns a masker with another policy for the same server.
    pub fn with(&self, policy: &Masking) -> Self {
        Self::with_secrets(policy, self.owned.clone())
    }

    /// Replaces the policy.
    pub fn set_policy(&self, policy: &Masking) {
        let patterns = patterns(policy);
        self.replace(|_| patterns);
    }

    fn replace(&self, patterns: impl FnOnce(&Masker) -> Arc<PatternSet>) {
        let cached = &*self.cached;
        let _lock = cached.update_lock.lock();
        let masker = Masker {
            patterns: patterns(&cached.masker.load()),
            values: Guard::into_inner(self.owned.known.values()),
        };
        cached.masker.store(Arc::new(masker));
    }

    /// Sets the secrets of the server's config. All servers of the board mask them until the last clone of this masker is dropped.
    pub fn own_secrets(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.owned.replace(secrets.into_iter().collect());
    }

    /// Adds the secrets of a credential that the program supplied at run time. They are masked and kept from other servers like those of the
    /// config: the newest `MAX_ISSUED` credentials, and older ones while a request holds them.
    pub fn add_issued(&self, secrets: &Arc<[Secret]>) {
        self.owned.add_issued(secrets);
    }

    /// Returns the masker for the current policy and secrets.
    pub fn current(&self) -> Guard<Arc<Masker>> {
        let masker = self.cached.masker.load();
        if Arc::ptr_eq(&masker.values, &self.owned.known.values()) {
            return masker;
        }
        self.replace(|old| old.patterns.clone());
        self.cached.masker.load()
    }

    /// Returns a masker for the known secrets alone, for texts that would become useless if patterns were applied.
    pub fn known_masker(&self) -> Masker {
        Masker {
            patterns: Arc::new(PatternSet::none()),
            values: Guard::into_inner(self.owned.known.values()),
        }
    }

    /// Masks a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.current().text(text).text
    }

    /// Masks a text in place.
    pub fn hide(&self, text: &mut String) {
        self.current().mask(text, &mut Counts::default());
    }

    /// Masks an optional text in place.
    pub fn hide_in(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.hide(text);
        }
    }
}

/// Returns the patterns of a policy. An invalid policy withholds every text.
fn patterns(policy: &Masking) -> Arc<PatternSet> {
    PatternSet::get_or_compile(policy).unwrap_or_else(|error| {
        tracing::warn!(%error, "the masking policy cannot be followed, so everything is withheld");
        Arc::new(PatternSet::broken())
    })
}

#[cfg(test)]
mod tests;
