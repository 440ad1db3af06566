//! What stands between a server and everybody else: the masker that is right at this moment, wherever its words go.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::{ArcSwap, Guard};

use super::{Counts, Masker, Masking, known_values::Values, rules::Rules};
use crate::secret::Secret;

/// What has more bytes of text than this is masked on a blocking thread: that takes milliseconds, for which other tasks would wait.
pub(crate) const LONG: usize = 256 << 10;

/// The most secrets without an owner that are remembered. Tokens are renewed for as long as a program runs; the oldest are long void.
const MOST_LOOSE: usize = 4096;

/// The secrets that a board knows of, hidden in the words of every server.
///
/// Those of a server's config have its [`ServerMasker`] as their owner. They are known for as long as it lives, however many others there are, and
/// forgotten at the latest when half of the secrets that were learned with them have gone. Those that the config has replaced, and those that a program names, have no owner: of these the oldest are forgotten when there are too many.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSecrets(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    held: Mutex<Held>,
    /// The same, ready to be looked for.
    values: ArcSwap<Values>,
}

#[derive(Debug, Default)]
struct Held {
    /// How many owners each secret has. One without an owner counts as one.
    counts: HashMap<Secret, usize>,
    /// Those without an owner, in the order in which they were learned.
    loose: VecDeque<Secret>,
    is_loose: HashSet<Secret>,
    /// Those that nothing has held before the change that is under way.
    new: Vec<Secret>,
    has_gone: bool,
}

impl Held {
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
                self.has_gone = true;
            }
        }
    }

    /// Holds a secret that has no owner, and lets go of the oldest such if there are too many.
    fn hold_loose(&mut self, secret: Secret) {
        if !self.is_loose.insert(secret.clone()) {
            return;
        }
        self.loose.push_back(secret.clone());
        self.hold(secret);
        if self.loose.len() > MOST_LOOSE
            && let Some(oldest) = self.loose.pop_front()
        {
            self.is_loose.remove(&oldest);
            self.release(&oldest);
        }
    }
}

impl KnownSecrets {
    /// Learns secrets that have no owner, such as a token that was just given out.
    pub(crate) fn learn(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.change(|held| secrets.into_iter().for_each(|secret| held.hold_loose(secret)));
    }

    /// Changes what is held, and then what is looked for: once, however many secrets came and went.
    fn change(&self, change: impl FnOnce(&mut Held)) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut held);
        let (mut new, has_gone) = (std::mem::take(&mut held.new), std::mem::take(&mut held.has_gone));
        new.retain(|secret| held.counts.contains_key(secret));
        if new.is_empty() && !has_gone {
            return;
        }
        let mut values = Guard::into_inner(self.0.values.load());
        if has_gone {
            values = Arc::new(values.without(|secret| held.counts.contains_key(secret)));
        }
        if !new.is_empty() {
            values = Arc::new(values.with(new));
        }
        self.0.values.store(values);
    }

    fn values(&self) -> Guard<Arc<Values>> {
        self.0.values.load()
    }
}

/// The secrets of one server's config. They are released when it is dropped.
#[derive(Debug)]
struct Owned {
    known: KnownSecrets,
    current: Mutex<HashSet<Secret>>,
}

impl Owned {
    /// Owns these secrets in the place of the earlier ones, which are remembered without an owner: the server may still say them.
    fn replace(&self, secrets: HashSet<Secret>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.known.change(|held| {
            for new in secrets.difference(&current) {
                held.hold(new.clone());
            }
            for old in current.difference(&secrets) {
                held.hold_loose(old.clone());
                held.release(old);
            }
        });
        *current = secrets;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let current = self.current.get_mut().unwrap_or_else(PoisonError::into_inner);
        let current = std::mem::take(current);
        self.known
            .change(|held| current.iter().for_each(|secret| held.release(secret)));
    }
}

/// The masker of one server: its policy and all known secrets.
#[derive(Debug, Clone)]
pub(crate) struct ServerMasker {
    owned: Arc<Owned>,
    latest: Arc<Latest>,
}

/// The masker that was right when somebody looked last. Every call looks, so looking must not make the cores wait for each other.
#[derive(Debug)]
struct Latest {
    masker: ArcSwap<Masker>,
    /// Held while it is replaced.
    changing: Mutex<()>,
}

impl Default for ServerMasker {
    fn default() -> Self {
        Self::new(&Masking::default(), KnownSecrets::default())
    }
}

impl ServerMasker {
    pub(crate) fn new(policy: &Masking, known: KnownSecrets) -> Self {
        let current = Mutex::default();
        Self::over(policy, Arc::new(Owned { known, current }))
    }

    fn over(policy: &Masking, owned: Arc<Owned>) -> Self {
        let masker = Masker {
            rules: rules(policy),
            values: Guard::into_inner(owned.known.values()),
        };
        let latest = Latest {
            masker: ArcSwap::from_pointee(masker),
            changing: Mutex::default(),
        };
        Self {
            owned,
            latest: Arc::new(latest),
        }
    }

    /// A veil with another policy, for the same server.
    pub(crate) fn with(&self, policy: &Masking) -> Self {
        Self::over(policy, self.owned.clone())
    }

    /// Follows another policy from now on.
    pub(crate) fn follow(&self, policy: &Masking) {
        let rules = rules(policy);
        self.replace(|_| rules);
    }

    fn replace(&self, rules: impl FnOnce(&Masker) -> Arc<Rules>) {
        let latest = &*self.latest;
        let _alone = latest.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let masker = Masker {
            rules: rules(&latest.masker.load()),
            values: Guard::into_inner(self.owned.known.values()),
        };
        latest.masker.store(Arc::new(masker));
    }

    /// Learns the secrets of the server's config, for all servers of the board. They are known until the last clone is dropped.
    pub(crate) fn own(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.owned.replace(secrets.into_iter().collect());
    }

    /// The masker for this moment.
    pub(crate) fn current(&self) -> Guard<Arc<Masker>> {
        let masker = self.latest.masker.load();
        if Arc::ptr_eq(&masker.values, &self.owned.known.values()) {
            return masker;
        }
        self.replace(|old| old.rules.clone());
        self.latest.masker.load()
    }

    /// A masker for what must stay as it is to be of any use: it hides the known secrets alone.
    pub(crate) fn known_masker(&self) -> Masker {
        Masker {
            rules: Arc::new(Rules::none()),
            values: Guard::into_inner(self.owned.known.values()),
        }
    }

    /// A text without its secrets.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.current().text(text).text
    }

    /// Masks a text in its place.
    pub(crate) fn hide(&self, text: &mut String) {
        self.current().mask(text, &mut Counts::default());
    }

    /// Masks a text in its place, if there is one.
    pub(crate) fn hide_in(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.hide(text);
        }
    }
}

/// A policy that cannot be followed lets nothing through.
fn rules(policy: &Masking) -> Arc<Rules> {
    Rules::of(policy).unwrap_or_else(|error| {
        tracing::warn!(%error, "the masking policy cannot be followed, so everything is withheld");
        Arc::new(Rules::broken())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::{CustomPattern, WITHHELD};

    #[test]
    fn a_secret_learned_later_is_hidden_by_every_veil() {
        let known = KnownSecrets::default();
        let masker = ServerMasker::new(&Masking::default(), known.clone());
        assert_eq!(masker.text("it is hunter2hunter2"), "it is hunter2hunter2");
        known.learn([Secret::new("hunter2hunter2")]);
        known.learn([Secret::new("another-one")]);
        assert_eq!(
            masker.text("it is hunter2hunter2, another-one"),
            "it is [MASKED_SECRET], [MASKED_SECRET]"
        );
    }

    #[test]
    fn a_policy_that_cannot_be_followed_lets_nothing_through() {
        let mut policy = Masking::default();
        policy.custom.push(CustomPattern::new("("));
        let masker = ServerMasker::new(&policy, KnownSecrets::default());
        assert_eq!(masker.text("anything"), WITHHELD);
        masker.follow(&Masking::default());
        assert_eq!(masker.text("anything"), "anything");
    }

    #[test]
    fn the_secrets_of_a_config_outlive_any_number_of_others() {
        let known = KnownSecrets::default();
        let masker = ServerMasker::new(&Masking::default(), known.clone());
        masker.own([Secret::new("the-config-s-own")]);
        for part in 0..20 {
            known.learn((0..MOST_LOOSE / 10).map(|n| Secret::new(format!("token-{part}-{n:06}"))));
        }
        assert_eq!(masker.text("x the-config-s-own y"), "x [MASKED_SECRET] y");
        assert_eq!(masker.text("token-19-000007"), "[MASKED_SECRET]");
        assert_eq!(
            masker.text("token-1-000007"),
            "token-1-000007",
            "the oldest are forgotten"
        );
    }

    #[test]
    fn the_secrets_of_a_config_go_with_their_server() {
        let known = KnownSecrets::default();
        let masker = ServerMasker::new(&Masking::default(), known.clone());
        let twin = ServerMasker::new(&Masking::default(), known.clone());
        let other = ServerMasker::new(&Masking::default(), known);
        masker.own([Secret::new("the-config-s-own"), Secret::new("of-both-servers")]);
        twin.own([Secret::new("of-both-servers")]);
        let link = masker.with(&Masking::default());
        drop(masker);
        assert_eq!(
            other.text("the-config-s-own"),
            "[MASKED_SECRET]",
            "its connection is open"
        );
        drop(link);
        assert_eq!(other.text("the-config-s-own"), "the-config-s-own");
        assert_eq!(
            other.text("of-both-servers"),
            "[MASKED_SECRET]",
            "another server has it too"
        );
    }

    #[test]
    fn a_secret_that_the_config_replaced_is_still_hidden() {
        let masker = ServerMasker::new(&Masking::default(), KnownSecrets::default());
        masker.own([Secret::new("hunter2hunter2")]);
        masker.own([Secret::new("hunter3hunter3")]);
        assert_eq!(
            masker.text("hunter2hunter2, hunter3hunter3"),
            "[MASKED_SECRET], [MASKED_SECRET]"
        );
    }

    #[test]
    fn secrets_that_cannot_be_looked_for_let_nothing_through() {
        let known = KnownSecrets::default();
        let masker = ServerMasker::new(&Masking::default(), known.clone());
        known.0.values.store(Arc::new(Values::broken()));
        assert_eq!(masker.text("anything"), WITHHELD);
        assert!(!masker.current().is_surely_clean("{}"));
    }
}
