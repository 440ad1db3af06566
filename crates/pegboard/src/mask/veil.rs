//! What stands between a server and everybody else: the masker that is right at this moment, wherever its words go.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::{ArcSwap, Guard};

use super::{Counts, Masker, Masking, rules::Rules, values::Values};
use crate::secret::Secret;

/// The most secrets that are remembered. Tokens are renewed for as long as a program runs; the oldest are long void.
const MOST: usize = 4096;

/// The secrets that a board knows of. They are hidden in the words of every server, and one that was replaced is not forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSecrets(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    /// In the order in which they were learned.
    secrets: Mutex<Vec<Secret>>,
    /// The same, ready to be looked for.
    values: ArcSwap<Values>,
}

impl KnownSecrets {
    /// Learns secrets, those of a server's config or a token that was just given out.
    pub(crate) fn learn(&self, secrets: impl IntoIterator<Item = Secret>) {
        let mut known = self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let old: BTreeSet<Secret> = known.iter().cloned().collect();
        let new: BTreeSet<Secret> = secrets.into_iter().filter(|secret| !old.contains(secret)).collect();
        if new.is_empty() {
            return;
        }
        known.extend(new);
        let surplus = known.len().saturating_sub(MOST);
        known.drain(..surplus);
        self.0.values.store(Arc::new(Values::new(known.iter().cloned())));
    }

    fn values(&self) -> Guard<Arc<Values>> {
        self.0.values.load()
    }
}

/// The masker of one server: its policy and all known secrets.
#[derive(Debug, Clone)]
pub(crate) struct Veil {
    known: KnownSecrets,
    latest: Arc<Latest>,
}

/// The masker that was right when somebody looked last. Every call looks, so looking must not make the cores wait for each other.
#[derive(Debug)]
struct Latest {
    masker: ArcSwap<Masker>,
    /// Held while it is replaced.
    changing: Mutex<()>,
}

impl Default for Veil {
    fn default() -> Self {
        Self::new(&Masking::default(), KnownSecrets::default())
    }
}

impl Veil {
    pub(crate) fn new(policy: &Masking, known: KnownSecrets) -> Self {
        let masker = Masker {
            rules: rules(policy),
            values: Guard::into_inner(known.values()),
        };
        let latest = Latest {
            masker: ArcSwap::from_pointee(masker),
            changing: Mutex::default(),
        };
        Self {
            known,
            latest: Arc::new(latest),
        }
    }

    /// A veil with another policy, for the same board.
    pub(crate) fn with(&self, policy: &Masking) -> Self {
        Self::new(policy, self.known.clone())
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
            values: Guard::into_inner(self.known.values()),
        };
        latest.masker.store(Arc::new(masker));
    }

    /// Learns secrets, for all servers of the board.
    pub(crate) fn learn(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.known.learn(secrets);
    }

    /// The masker for this moment.
    pub(crate) fn masker(&self) -> Guard<Arc<Masker>> {
        let masker = self.latest.masker.load();
        if Arc::ptr_eq(&masker.values, &self.known.values()) {
            return masker;
        }
        self.replace(|old| old.rules.clone());
        self.latest.masker.load()
    }

    /// A masker for what must stay as it is to be of any use: it hides the known secrets alone.
    pub(crate) fn known_masker(&self) -> Masker {
        Masker {
            rules: Arc::new(Rules::none()),
            values: Guard::into_inner(self.known.values()),
        }
    }

    /// A text without its secrets.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masker().text(text).text
    }

    /// Masks a text in its place.
    pub(crate) fn hide(&self, text: &mut String) {
        self.masker().mask(text, &mut Counts::default());
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
        let veil = Veil::new(&Masking::default(), known.clone());
        assert_eq!(veil.text("it is hunter2hunter2"), "it is hunter2hunter2");
        known.learn([Secret::new("hunter2hunter2")]);
        known.learn([Secret::new("another-one")]);
        assert_eq!(
            veil.text("it is hunter2hunter2, another-one"),
            "it is [MASKED_SECRET], [MASKED_SECRET]"
        );
    }

    #[test]
    fn a_policy_that_cannot_be_followed_lets_nothing_through() {
        let mut policy = Masking::default();
        policy.custom.push(CustomPattern::new("("));
        let veil = Veil::new(&policy, KnownSecrets::default());
        assert_eq!(veil.text("anything"), WITHHELD);
        veil.follow(&Masking::default());
        assert_eq!(veil.text("anything"), "anything");
    }
}
