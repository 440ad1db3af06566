//! What stands while sessions come and go: what is subscribed to, at which level a server logs, the roots it may ask for, and who
//! listens to what it tells.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    fmt,
    path::Path,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    sync::{broadcast, watch},
    time::Instant,
};

use super::events::{ServerEvent, ServerEvents, Told};
use crate::mask::ServerMasker;

/// How many events a slow listener may be behind before it misses some.
const EVENTS: usize = 256;
/// The most resources of one server that are subscribed to at once.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// What one server is wanted to do in every session that it has.
#[derive(Debug)]
pub(crate) struct DesiredState {
    events: broadcast::Sender<Told>,
    desired: watch::Sender<Desired>,
    /// When models were asked for answers in the last minute.
    sampled: Mutex<VecDeque<Instant>>,
}

/// What is wanted of every session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Desired {
    /// The addresses that somebody wants to hear of.
    pub(super) subscriptions: BTreeMap<Arc<str>, DesiredSubscription>,
    pub(super) level: Option<DesiredLogLevel>,
    pub(super) roots: Arc<[Root]>,
    /// How often something was wished for that a server may refuse.
    counted: u64,
}

/// How many want to hear of an address, and which wish that was: one that was refused may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DesiredSubscription {
    by: usize,
    pub(super) wish: u64,
}

impl Desired {
    fn next(&mut self) -> u64 {
        self.counted += 1;
        self.counted
    }
}

/// The level that a server is to log from, and which wish that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DesiredLogLevel {
    pub(super) level: LogLevel,
    pub(super) wish: u64,
}

/// A folder or another place that a server may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Root {
    /// Where it is: an address, mostly one of a file.
    pub uri: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// The root at an address or a path. A path becomes the address of a file.
    pub fn new(place: &str) -> Self {
        let uri = if place.contains("://") {
            place.to_owned()
        } else {
            let path = std::path::absolute(Path::new(place)).ok();
            let url = path.and_then(|path| url::Url::from_file_path(path).ok());
            url.map_or_else(|| place.to_owned(), Into::into)
        };
        Self { uri, name: None }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// How grave a message of a server's log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// What happens in good order.
    Info,
    /// What happens in good order and matters.
    Notice,
    /// What may go wrong.
    Warning,
    /// What went wrong.
    Error,
    /// A part is out of order.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

impl LogLevel {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// All levels, from the least grave on.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(word: &str) -> Result<Self, UnknownLogLevel> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == word);
        found.ok_or_else(|| UnknownLogLevel(word.to_owned()))
    }
}

/// A word that is no level of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no level of a log; there are {}", .0.escape_debug(), LogLevel::ALL.map(LogLevel::as_str).join(", "))]
pub struct UnknownLogLevel(String);

impl DesiredState {
    pub(crate) fn new(roots: &[String]) -> Arc<Self> {
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

    pub(crate) fn events(&self) -> ServerEvents {
        ServerEvents::new(self.events.subscribe())
    }

    /// Tells all who listen. It is nobody's fault when nobody does.
    pub(super) fn tell(&self, event: ServerEvent) {
        let _ = self.events.send(event.into());
    }

    /// Tells that a resource may have changed. Those who subscribed to it know it by its address, all others by what may be shown of that.
    pub(super) fn tell_updated(&self, address: &str, masker: &ServerMasker) {
        let uri = masker.text(address).into_owned();
        let _ = self.events.send(Told {
            address: Some(address.into()),
            ..ServerEvent::ResourceUpdated { uri }.into()
        });
    }

    pub(super) fn desired(&self) -> watch::Receiver<Desired> {
        self.desired.subscribe()
    }

    pub(crate) fn roots(&self) -> Arc<[Root]> {
        self.desired.borrow().roots.clone()
    }

    /// Sets the roots. Whether that changed them.
    pub(crate) fn set_roots(&self, roots: &[Root]) -> bool {
        self.desired.send_if_modified(|desired| {
            let changes = *desired.roots != *roots;
            if changes {
                desired.roots = roots.into();
            }
            changes
        })
    }

    /// Desired for a level, and returns the number of the wish.
    pub(crate) fn set_level(&self, level: LogLevel) -> u64 {
        let mut wish = 0;
        self.desired.send_modify(|desired| {
            wish = desired.next();
            desired.level = Some(DesiredLogLevel { level, wish });
        });
        wish
    }

    /// One more wants to hear of this address, which is shown as `shown`. `None` when there are too many already.
    pub(crate) fn subscribe(self: &Arc<Self>, address: &str, shown: &str) -> Option<Subscription> {
        let address: Arc<str> = address.into();
        // Listening begins before the server can know that somebody does.
        let events = self.events();
        let mut wish = None;
        self.desired.send_if_modified(|desired| {
            if let Some(wanted) = desired.subscriptions.get_mut(&address) {
                wanted.by += 1;
                wish = Some(wanted.wish);
                return false;
            }
            if desired.subscriptions.len() >= MAX_SUBSCRIPTIONS {
                return false;
            }
            let wanted = DesiredSubscription {
                by: 1,
                wish: desired.next(),
            };
            wish = Some(wanted.wish);
            desired.subscriptions.insert(address.clone(), wanted);
            true
        });
        wish.map(|wish| Subscription {
            wish,
            address,
            shown: shown.to_owned(),
            events,
            desired_state: Arc::downgrade(self),
            _kept: None,
        })
    }

    fn unsubscribe(&self, uri: &Arc<str>) {
        self.desired
            .send_if_modified(|desired| match desired.subscriptions.get_mut(uri) {
                Some(wanted) if wanted.by > 1 => {
                    wanted.by -= 1;
                    false
                }
                Some(_) => desired.subscriptions.remove(uri).is_some(),
                None => false,
            });
    }

    /// Whether a model may be asked once more, when `most` times in a minute are allowed.
    pub(super) fn may_sample(&self, most: usize) -> bool {
        let now = Instant::now();
        let mut sampled = self.sampled.lock().unwrap_or_else(PoisonError::into_inner);
        while sampled
            .front()
            .is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(60))
        {
            sampled.pop_front();
        }
        let may = sampled.len() < most;
        if may {
            sampled.push_back(now);
        }
        may
    }
}

/// Notifications of one resource. It ends when this is dropped, and lasts over restarts of the server.
pub struct Subscription {
    wish: u64,
    address: Arc<str>,
    /// What may be seen of the address.
    shown: String,
    events: ServerEvents,
    desired_state: Weak<DesiredState>,
    /// What must not end while this is kept.
    _kept: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("uri", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Subscription {
    /// The same, which keeps something until it is dropped.
    pub(crate) fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self._kept = Some(Box::new(kept));
        self
    }

    /// The resource.
    pub fn uri(&self) -> &str {
        &self.shown
    }

    /// Waits until the resource may have changed; `false` when its server is gone for good. Notifications that came too fast for the listener
    /// count as one, and so does a new connection, after which something may have been missed. Dropping the future loses nothing.
    pub async fn changed(&mut self) -> bool {
        loop {
            let Some(told) = self.events.told().await else {
                return false;
            };
            let is_ours = told.address.as_deref().is_some_and(|address| self.covers(address));
            if is_ours || matches!(*told.event, ServerEvent::Missed { .. }) {
                return true;
            }
        }
    }
}

impl Subscription {
    /// Which wish it was.
    pub(crate) fn wish(&self) -> u64 {
        self.wish
    }

    /// Whether news of this address are news of ours: servers may tell of a part of what was subscribed to.
    fn covers(&self, address: &str) -> bool {
        let part = address.strip_prefix(&*self.address);
        part.is_some_and(|part| part.is_empty() || part.starts_with('/') || self.address.ends_with('/'))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(desired_state) = self.desired_state.upgrade() {
            desired_state.unsubscribe(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_from_its_word() {
        for level in LogLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        let unknown = "loud".parse::<LogLevel>().unwrap_err().to_string();
        assert!(unknown.contains("`loud`") && unknown.contains("emergency"), "{unknown}");
    }
    use crate::mask::{KnownSecrets, Masking};

    fn desired_state() -> Arc<DesiredState> {
        DesiredState::new(&["file:///srv".to_owned()])
    }

    #[tokio::test]
    async fn an_address_is_wanted_until_the_last_one_lets_go() {
        let desired_state = desired_state();
        let mut desired = desired_state.desired();
        let first = desired_state.subscribe("a:b", "a:b").unwrap();
        let second = desired_state.subscribe("a:b", "a:b").unwrap();
        assert!(desired.borrow_and_update().subscriptions.contains_key("a:b"));
        drop(first);
        assert!(!desired.has_changed().unwrap());
        drop(second);
        assert!(desired.borrow_and_update().subscriptions.is_empty());
    }

    #[tokio::test]
    async fn news_of_other_resources_are_not_news_of_this_one() {
        let (desired_state, masker) = (
            desired_state(),
            ServerMasker::new(&Masking::default(), KnownSecrets::default()),
        );
        let mut wanted = desired_state.subscribe("a:b", "a:b").unwrap();
        desired_state.tell_updated("a:c", &masker);
        let nothing = tokio::time::timeout(Duration::from_millis(5), wanted.changed()).await;
        assert!(nothing.is_err());
        desired_state.tell_updated("a:b", &masker);
        assert!(wanted.changed().await);
        drop(desired_state);
        assert!(!wanted.changed().await);
    }

    #[test]
    fn news_of_a_part_are_news_of_the_whole() {
        let desired_state = desired_state();
        let check = |subscribed: &str, told: &str, expected: bool| {
            let subscription = desired_state.subscribe(subscribed, subscribed).unwrap();
            assert_eq!(subscription.covers(told), expected, "{told} of {subscribed}");
        };
        check("file:///a", "file:///a", true);
        check("file:///a", "file:///a/b/c", true);
        check("file:///a/", "file:///a/b", true);
        check("file:///a", "file:///ab", false);
        check("file:///a", "file:///", false);
        check("file:///a/b", "file:///a", false);
    }

    #[tokio::test]
    async fn a_slow_listener_is_told_that_it_missed_something() {
        let (desired_state, masker) = (
            desired_state(),
            ServerMasker::new(&Masking::default(), KnownSecrets::default()),
        );
        let mut wanted = desired_state.subscribe("a:b", "a:b").unwrap();
        for _ in 0..1000 {
            desired_state.tell_updated("a:c", &masker);
        }
        assert!(wanted.changed().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_holds_only_so_many_samplings() {
        let desired_state = desired_state();
        assert!(desired_state.may_sample(2) && desired_state.may_sample(2));
        assert!(!desired_state.may_sample(2));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(desired_state.may_sample(2));
        assert!(!desired_state.may_sample(0));
    }

    #[test]
    fn a_path_becomes_the_address_of_a_file_and_an_address_stays() {
        assert_eq!(Root::new("https://a.b/c").uri, "https://a.b/c");
        if cfg!(unix) {
            assert_eq!(Root::new("/srv/a b").uri, "file:///srv/a%20b");
        }
    }
}
