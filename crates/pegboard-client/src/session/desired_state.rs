//! [`DesiredState`]: the subscriptions, log level and roots that every session of a server is reconciled with, and the broadcast channel of
//! its events. Both outlive single sessions.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};

use super::{
    events::{Audience, PublishedEvent, ServerEvent, ServerEvents},
    log_level::LogLevel,
    root::Root,
};
use pegboard_base::sync::Mutex;
use pegboard_mask::ServerMasker;

/// How many events a slow subscriber may lag behind before it misses some.
const EVENTS: usize = 256;
/// The most resources of one server that can be subscribed to at once.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// The state that every session of one server is reconciled with, and the channel of the server's events.
#[derive(Debug)]
pub struct DesiredState {
    events: broadcast::Sender<PublishedEvent>,
    desired: watch::Sender<Desired>,
    /// When the server's sampling requests of the last minute were admitted.
    sampled: Mutex<VecDeque<Instant>>,
}

/// A snapshot of the state that every session of a server should have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Desired {
    /// The resources with subscribers, by URI.
    pub(super) subscriptions: BTreeMap<Arc<str>, DesiredSubscription>,
    pub(super) level: Option<DesiredLogLevel>,
    /// The level that the program set.
    set_level: Option<LogLevel>,
    /// How many want the logs from each level on.
    wanted_levels: BTreeMap<LogLevel, usize>,
    pub(super) roots: Arc<[Root]>,
    /// Incremented when the roots of a caller have changed, which its host answers for.
    pub(super) roots_revision: u64,
    /// The last revision given to a subscription or log level.
    last_revision: u64,
}

/// The number of subscribers of a resource. A new revision makes a session retry a subscription that its server refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DesiredSubscription {
    subscribers: usize,
    pub(super) revision: u64,
}

impl Desired {
    fn next_revision(&mut self) -> u64 {
        self.last_revision += 1;
        self.last_revision
    }

    /// The least severe level that is set or wanted.
    fn lowest_level(&self) -> Option<LogLevel> {
        let wanted = self.wanted_levels.keys().next().copied();
        wanted.into_iter().chain(self.set_level).min()
    }

    /// Desires the lowest level if it is not desired already. Returns `true` if it was not.
    fn adjust_level(&mut self) -> bool {
        let lowest = self.lowest_level();
        if self.level.map(|desired| desired.level) == lowest {
            return false;
        }
        let revision = self.next_revision();
        self.level = lowest.map(|level| DesiredLogLevel { level, revision });
        true
    }
}

/// The least severe level that the server should log. A new revision makes a session retry a level that its server refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DesiredLogLevel {
    pub(super) level: LogLevel,
    pub(super) revision: u64,
}

impl DesiredState {
    /// Creates the state of a server with these roots and no subscriptions.
    pub fn new(roots: &[String]) -> Arc<Self> {
        let desired = Desired {
            roots: roots.iter().map(|root| Root::new(root)).collect(),
            ..Desired::default()
        };
        Arc::new(Self {
            events: broadcast::Sender::new(EVENTS),
            desired: watch::Sender::new(desired),
            sampled: Mutex::default(),
        })
    }

    /// Subscribes to the server's events.
    pub fn events(&self) -> ServerEvents {
        ServerEvents::new(self.events.subscribe())
    }

    /// Whether events have subscribers.
    pub(super) fn has_subscribers(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// Publishes an event to all subscribers.
    pub(super) fn publish(&self, event: ServerEvent) {
        // Fails only if there are no subscribers.
        let _ = self.events.send(event.into());
    }

    /// Publishes an event to those who may read it.
    pub(super) fn publish_to(&self, audience: Audience, event: ServerEvent) {
        let _ = self.events.send(PublishedEvent {
            audience,
            ..event.into()
        });
    }

    /// Publishes that a resource may have changed. Subscriptions match on the raw URI; the event shows the masked one.
    pub(super) fn publish_resource_updated(&self, raw_uri: &str, masker: &ServerMasker) {
        let uri = masker.text(raw_uri).into_owned();
        let _ = self.events.send(PublishedEvent {
            raw_uri: Some(raw_uri.into()),
            ..ServerEvent::ResourceUpdated { uri }.into()
        });
    }

    /// Watches the desired state.
    pub(super) fn watch(&self) -> watch::Receiver<Desired> {
        self.desired.subscribe()
    }

    /// The roots that sessions report to the server.
    pub fn roots(&self) -> Arc<[Root]> {
        self.desired.borrow().roots.clone()
    }

    /// Sets the roots. Returns `true` if that changed them.
    pub fn set_roots(&self, roots: &[Root]) -> bool {
        self.desired.send_if_modified(|desired| {
            let changes = *desired.roots != *roots;
            if changes {
                desired.roots = roots.into();
            }
            changes
        })
    }

    /// Tells the server that the roots of a caller have changed.
    pub fn announce_roots(&self) {
        self.desired.send_modify(|desired| desired.roots_revision += 1);
    }

    /// Sets the log level, unless a lower one is wanted, and returns its revision.
    pub fn set_level(&self, level: LogLevel) -> u64 {
        let mut revision = 0;
        self.desired.send_modify(|desired| {
            desired.set_level = Some(level);
            revision = desired.next_revision();
            let level = desired.lowest_level().unwrap_or(level);
            desired.level = Some(DesiredLogLevel { level, revision });
        });
        revision
    }

    /// Wants the logs from this level on, until the returned value is dropped. Returns the revision of the log level, too.
    pub fn want_level(self: &Arc<Self>, level: LogLevel) -> (WantedLogs, u64) {
        let mut revision = 0;
        self.desired.send_if_modified(|desired| {
            *desired.wanted_levels.entry(level).or_default() += 1;
            let has_changed = desired.adjust_level();
            revision = desired.level.map_or(0, |desired| desired.revision);
            has_changed
        });
        let wanted = WantedLogs {
            level,
            desired_state: Arc::downgrade(self),
        };
        (wanted, revision)
    }

    fn release_level(&self, level: LogLevel) {
        self.desired.send_if_modified(|desired| {
            if let Some(count) = desired.wanted_levels.get_mut(&level) {
                *count -= 1;
                if *count == 0 {
                    desired.wanted_levels.remove(&level);
                }
            }
            desired.adjust_level()
        });
    }

    /// Adds a subscriber of the resource at `raw_uri`, which is displayed as `masked_uri`. Returns `None` if there are too many
    /// subscriptions.
    pub fn subscribe(self: &Arc<Self>, raw_uri: &str, masked_uri: &str) -> Option<Subscription> {
        let raw_uri: Arc<str> = raw_uri.into();
        // Created before the server can learn of the subscription, so that no event is missed.
        let events = self.events();
        let mut revision = None;
        self.desired.send_if_modified(|desired| {
            if let Some(subscription) = desired.subscriptions.get_mut(&raw_uri) {
                subscription.subscribers += 1;
                revision = Some(subscription.revision);
                return false;
            }
            if desired.subscriptions.len() >= MAX_SUBSCRIPTIONS {
                return false;
            }
            let subscription = DesiredSubscription {
                subscribers: 1,
                revision: desired.next_revision(),
            };
            revision = Some(subscription.revision);
            desired.subscriptions.insert(raw_uri.clone(), subscription);
            true
        });
        revision.map(|revision| Subscription {
            revision,
            raw_uri,
            masked_uri: masked_uri.to_owned(),
            events,
            desired_state: Arc::downgrade(self),
            _kept: None,
        })
    }

    fn unsubscribe(&self, uri: &Arc<str>) {
        self.desired
            .send_if_modified(|desired| match desired.subscriptions.get_mut(uri) {
                Some(subscription) if subscription.subscribers > 1 => {
                    subscription.subscribers -= 1;
                    false
                }
                Some(_) => desired.subscriptions.remove(uri).is_some(),
                None => false,
            });
    }

    /// Admits one more sampling request if fewer than `limit` were admitted in the last minute.
    pub(super) fn admit_sampling(&self, limit: usize) -> bool {
        let now = Instant::now();
        let mut sampled = self.sampled.lock();
        while sampled
            .front()
            .is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(60))
        {
            sampled.pop_front();
        }
        let is_admitted = sampled.len() < limit;
        if is_admitted {
            sampled.push_back(now);
        }
        is_admitted
    }
}

/// Makes a server log from a level on, until it is dropped. The server logs from the lowest level that is wanted; in the legacy era, in which a
/// level cannot be taken back, only emergencies once none is.
#[derive(Debug)]
pub struct WantedLogs {
    level: LogLevel,
    desired_state: Weak<DesiredState>,
}

impl WantedLogs {
    /// Returns the level.
    pub fn level(&self) -> LogLevel {
        self.level
    }
}

impl Drop for WantedLogs {
    fn drop(&mut self) {
        if let Some(desired_state) = self.desired_state.upgrade() {
            desired_state.release_level(self.level);
        }
    }
}

/// A subscription to changes of one resource. It survives restarts of the server, and ends when it is dropped.
pub struct Subscription {
    revision: u64,
    raw_uri: Arc<str>,
    masked_uri: String,
    events: ServerEvents,
    desired_state: Weak<DesiredState>,
    /// Keeps the server running for as long as the subscription lives.
    _kept: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("uri", &self.masked_uri)
            .finish_non_exhaustive()
    }
}

impl Subscription {
    /// Keeps a value alive until the subscription is dropped.
    #[doc(hidden)]
    pub fn with_kept(mut self, kept: impl Any + Send + Sync) -> Self {
        self._kept = Some(Box::new(kept));
        self
    }

    /// Returns the URI of the resource, with its secrets masked.
    pub fn uri(&self) -> &str {
        &self.masked_uri
    }

    /// Waits until the resource may have changed. Returns `false` once the server is removed.
    ///
    /// Notifications that came faster than they were read count as one change. A new connection counts as a change as well, because
    /// notifications may have been missed before it. This method is cancel safe.
    pub async fn changed(&mut self) -> bool {
        loop {
            let Some(published) = self.events.next_published().await else {
                return false;
            };
            let is_ours = published.raw_uri.as_deref().is_some_and(|uri| self.covers(uri));
            if is_ours || matches!(*published.event, ServerEvent::Missed { .. }) {
                return true;
            }
        }
    }
}

impl Subscription {
    /// Returns the revision of the desired state that added the resource.
    #[doc(hidden)]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns `true` if a notification about `uri` belongs to this subscription: servers may report sub-resources.
    fn covers(&self, uri: &str) -> bool {
        let part = uri.strip_prefix(&*self.raw_uri);
        part.is_some_and(|part| part.is_empty() || part.starts_with('/') || self.raw_uri.ends_with('/'))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(desired_state) = self.desired_state.upgrade() {
            desired_state.unsubscribe(&self.raw_uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use pegboard_mask::{KnownSecrets, Masking};

    fn desired_state() -> Arc<DesiredState> {
        DesiredState::new(&["file:///srv".to_owned()])
    }

    #[tokio::test]
    async fn a_resource_is_desired_until_its_last_subscriber_is_dropped() {
        let desired_state = desired_state();
        let mut desired = desired_state.watch();
        let first = desired_state.subscribe("a:b", "a:b").unwrap();
        let second = desired_state.subscribe("a:b", "a:b").unwrap();
        assert!(desired.borrow_and_update().subscriptions.contains_key("a:b"));
        drop(first);
        assert!(!desired.has_changed().unwrap());
        drop(second);
        assert!(desired.borrow_and_update().subscriptions.is_empty());
    }

    #[test]
    fn the_lowest_wanted_level_is_desired_and_rises_again() {
        let desired_state = desired_state();
        let level = || desired_state.watch().borrow().level.map(|desired| desired.level);
        assert_eq!(level(), None);
        let (warning, first) = desired_state.want_level(LogLevel::Warning);
        let (debug, second) = desired_state.want_level(LogLevel::Debug);
        let (error, third) = desired_state.want_level(LogLevel::Error);
        assert!(first < second && second == third, "{first} {second} {third}");
        assert_eq!(level(), Some(LogLevel::Debug));
        drop(debug);
        assert_eq!(level(), Some(LogLevel::Warning));
        desired_state.set_level(LogLevel::Info);
        drop((warning, error));
        assert_eq!(level(), Some(LogLevel::Info), "the program's own level stays");
        let (debug, _) = desired_state.want_level(LogLevel::Debug);
        desired_state.set_level(LogLevel::Alert);
        assert_eq!(level(), Some(LogLevel::Debug));
        drop(debug);
        assert_eq!(level(), Some(LogLevel::Alert));
    }

    #[test]
    fn no_level_is_desired_when_none_is_wanted_any_more() {
        let desired_state = desired_state();
        drop(desired_state.want_level(LogLevel::Debug));
        assert_eq!(desired_state.watch().borrow().level, None);
    }

    #[tokio::test]
    async fn updates_of_other_resources_do_not_wake_a_subscription() {
        let (desired_state, masker) = (
            desired_state(),
            ServerMasker::new(&Masking::default(), KnownSecrets::default()),
        );
        let mut subscription = desired_state.subscribe("a:b", "a:b").unwrap();
        desired_state.publish_resource_updated("a:c", &masker);
        let nothing = tokio::time::timeout(Duration::from_millis(5), subscription.changed()).await;
        assert!(nothing.is_err());
        desired_state.publish_resource_updated("a:b", &masker);
        assert!(subscription.changed().await);
        drop(desired_state);
        assert!(!subscription.changed().await);
    }

    #[test]
    fn an_update_of_a_part_is_an_update_of_the_whole() {
        let desired_state = desired_state();
        let check = |subscribed: &str, updated: &str, expected: bool| {
            let subscription = desired_state.subscribe(subscribed, subscribed).unwrap();
            assert_eq!(subscription.covers(updated), expected, "{updated} of {subscribed}");
        };
        check("file:///a", "file:///a", true);
        check("file:///a", "file:///a/b/c", true);
        check("file:///a/", "file:///a/b", true);
        check("file:///a", "file:///ab", false);
        check("file:///a", "file:///", false);
        check("file:///a/b", "file:///a", false);
    }

    #[tokio::test]
    async fn a_slow_subscriber_learns_that_it_missed_something() {
        let (desired_state, masker) = (
            desired_state(),
            ServerMasker::new(&Masking::default(), KnownSecrets::default()),
        );
        let mut subscription = desired_state.subscribe("a:b", "a:b").unwrap();
        for _ in 0..1000 {
            desired_state.publish_resource_updated("a:c", &masker);
        }
        assert!(subscription.changed().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_holds_only_so_many_samplings() {
        let desired_state = desired_state();
        assert!(desired_state.admit_sampling(2) && desired_state.admit_sampling(2));
        assert!(!desired_state.admit_sampling(2));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(desired_state.admit_sampling(2));
        assert!(!desired_state.admit_sampling(0));
    }
}
