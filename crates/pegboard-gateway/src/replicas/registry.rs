//! [`Replicas`]: this process among those that serve the same gateway, and the registry of the others.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use pegboard_base::{log_event, sync::Mutex};
use pegboard_http::{Client, Settings, Target};
use pegboard_store::{Key, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior};
use url::Url;

use super::replay_guard::ReplayGuard;
use crate::protocol::{ReplicaId, Sealer};

/// How often a replica says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long a replica counts as there after it has said so last: two signs of life may be late or lost.
const ALIVE: Duration = Duration::from_secs(6);

/// How long a replica that stops is known to do so: longer than it takes to stop.
const LEAVING: Duration = Duration::from_secs(120);

/// How many replicas are known at most.
const MAX_REPLICAS: usize = 4096;

/// How long a connection to another replica may take. They are near each other.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// How long an idle connection to another replica is kept.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// This process among those that serve the same gateway. Clones share everything.
#[derive(Clone)]
pub struct Replicas(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) store: Arc<dyn Store>,
    pub(super) sealer: Arc<Sealer>,
    /// Where other replicas reach this one; `None` if they cannot.
    address: Option<Arc<str>>,
    others: ArcSwap<HashMap<ReplicaId, Registered>>,
    /// Replicas whose listeners were found closed, and until when they are not asked again.
    gone: Mutex<HashMap<ReplicaId, Instant>>,
    pub(super) replays: ReplayGuard,
    /// Whether the store answered when it was asked last.
    has_answered: AtomicBool,
    is_leaving: AtomicBool,
    /// How often this replica was late with its sign of life, so that others may have taken over its sessions.
    lapses: AtomicU64,
    pub(super) counters: Counters,
}

/// Another replica that takes requests.
pub(crate) struct Replica {
    pub(super) id: ReplicaId,
    pub(super) target: Arc<Target>,
    pub(super) client: Client,
}

/// A replica that shows signs of life.
#[derive(Clone)]
struct Registered {
    replica: Arc<Replica>,
    is_leaving: bool,
}

/// What a replica writes about itself.
#[derive(Serialize, Deserialize)]
struct Record {
    address: Box<str>,
    /// Whether it only finishes what it has begun.
    #[serde(default)]
    is_leaving: bool,
}

/// What is known of a replica.
pub(crate) enum Known {
    /// It is this one.
    This,
    /// It takes requests.
    Other(Arc<Replica>),
    /// It has ended, or takes no requests of others.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) forwarded: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) adopted: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) store_failures: AtomicU64,
}

/// What this replica has done for others, and they for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaCounts {
    /// How many replicas there are, with this one.
    pub replicas: usize,
    /// Whether the store answered when it was asked last.
    pub store_answers: bool,
    /// How many requests were sent on to their owner.
    pub forwarded: u64,
    /// How many requests came from other replicas.
    pub received: u64,
    /// How many sessions were taken over from replicas that had ended.
    pub adopted: u64,
    /// How many requests were lost on their way to another replica, so that they may have run.
    pub lost: u64,
    /// How often the store did not do what it was asked.
    pub store_failures: u64,
}

impl Replicas {
    /// Creates what this process knows of the others. `sealer` must have the key that all of them share, and be that of the gateway's endpoints.
    /// `address` is the host and port of this replica's [listener for replicas](crate::Listeners::replicas), as others reach it.
    ///
    /// Fails if the address is none.
    pub fn new(store: Arc<dyn Store>, sealer: Arc<Sealer>, address: Option<&str>) -> Result<Self, BadReplicaAddress> {
        if let Some(address) = address {
            target_of(address).ok_or_else(|| BadReplicaAddress(address.to_owned()))?;
        }
        Ok(Self(Arc::new(Inner {
            store,
            sealer,
            address: address.map(Arc::from),
            others: ArcSwap::default(),
            gone: Mutex::default(),
            replays: ReplayGuard::default(),
            has_answered: AtomicBool::new(true),
            is_leaving: AtomicBool::new(false),
            lapses: AtomicU64::new(0),
            counters: Counters::default(),
        })))
    }

    /// What was counted so far.
    pub fn counts(&self) -> ReplicaCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.0.counters;
        ReplicaCounts {
            replicas: self.0.others.load().values().filter(|other| !other.is_leaving).count() + 1,
            store_answers: self.0.has_answered.load(Ordering::Relaxed),
            forwarded: read(&counters.forwarded),
            received: read(&counters.received),
            adopted: read(&counters.adopted),
            lost: read(&counters.lost),
            store_failures: read(&counters.store_failures),
        }
    }

    /// How often this replica was late with its sign of life. A session that was its own before may be another one's now.
    pub(crate) fn lapses(&self) -> u64 {
        self.0.lapses.load(Ordering::Acquire)
    }

    pub(super) fn this(&self) -> ReplicaId {
        self.0.sealer.replica()
    }

    /// Says that this replica is there, and looks for the others, until it is dropped.
    pub(crate) async fn keep_registered(&self) {
        let mut ticks = tokio::time::interval(HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The clock of the system goes on while the process or its machine is suspended.
        let mut registered = None;
        loop {
            ticks.tick().await;
            if self.0.is_leaving.load(Ordering::Acquire) {
                return;
            }
            // Counted before the others see it again, so that no request that they send finds a session here that is theirs.
            if registered.is_some_and(|at: SystemTime| at.elapsed().map_or(true, |since| since >= ALIVE)) {
                self.0.lapses.fetch_add(1, Ordering::AcqRel);
                registered = Some(SystemTime::now());
            }
            let began = SystemTime::now();
            if self.note(self.register(ALIVE).await).is_err() {
                continue;
            }
            registered = Some(began);
            let _ = self.note(self.look_for_others().await);
        }
    }

    /// Says that this replica only finishes what it has begun, so that others go on with its sessions.
    pub(crate) async fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Release);
        let _ = self.note(self.register(LEAVING).await);
    }

    /// Finds a replica by its id.
    pub(crate) async fn find(&self, id: ReplicaId) -> Result<Known, StoreError> {
        if id == self.this() {
            return Ok(Known::This);
        }
        if self.0.gone.lock().get(&id).is_some_and(|until| Instant::now() < *until) {
            return Ok(Known::Gone);
        }
        if let Some(known) = self.0.others.load().get(&id) {
            return Ok(known.clone().into());
        }
        // It may have begun since the last look.
        let value = self.note(self.0.store.get(&key_of(id)).await)?;
        let found = value.and_then(|value| read_record(id, &value.bytes));
        Ok(found.map_or(Known::Gone, Known::from))
    }

    /// Completes when the record of a replica has expired. It does not while the store does not answer.
    pub(super) async fn silent(&self, id: ReplicaId) {
        let mut ticks = tokio::time::interval(HEARTBEAT);
        // The first one is at once.
        ticks.tick().await;
        let mut missed = 0;
        while missed < 2 {
            ticks.tick().await;
            let is_known = self.0.others.load().contains_key(&id);
            // One that has just begun is not among the others before the next look.
            missed = if is_known { 0 } else { missed + 1 };
        }
    }

    /// Notes that nothing listens any more where a replica was.
    pub(crate) fn note_gone(&self, id: ReplicaId) {
        let now = Instant::now();
        let mut gone = self.0.gone.lock();
        gone.retain(|_, until| now < *until);
        if gone.len() < MAX_REPLICAS {
            gone.insert(id, now + ALIVE);
        }
        drop(gone);
        self.0.others.rcu(|others| {
            let mut others = HashMap::clone(others);
            others.remove(&id);
            others
        });
    }

    /// Notes whether the store has answered, and says once when that changes.
    pub(super) fn note<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let answers = answer.is_ok();
        if let Err(error) = &answer {
            self.0.counters.store_failures.fetch_add(1, Ordering::Relaxed);
            if self.0.has_answered.swap(false, Ordering::AcqRel) {
                tracing::warn!(name: log_event::STORE_FAILED, %error, "the store of the replicas does not answer: sessions that this replica does not have are refused until it does");
            }
        } else if answers && !self.0.has_answered.swap(true, Ordering::AcqRel) {
            // It may have lost what it had, and sessions that were opened meanwhile are not in it.
            self.0.lapses.fetch_add(1, Ordering::AcqRel);
            tracing::info!(name: log_event::STORE_RECOVERED, "the store of the replicas answers again");
        }
        answer
    }

    async fn register(&self, ttl: Duration) -> Result<(), StoreError> {
        let Some(address) = &self.0.address else {
            return self.0.store.ping().await;
        };
        let record = Record {
            address: (**address).into(),
            is_leaving: self.0.is_leaving.load(Ordering::Acquire),
        };
        let record = serde_json::to_vec(&record).unwrap_or_default();
        self.0.store.put(&key_of(self.this()), record.into(), ttl).await
    }

    async fn look_for_others(&self) -> Result<(), StoreError> {
        let listing = self.0.store.list(&Key::new(KIND, &[]), MAX_REPLICAS).await?;
        let known = self.0.others.load();
        let others = listing.values.iter().filter_map(|(key, value)| {
            let id = key
                .last_part()
                .and_then(|id| u64::from_str_radix(&id, 16).ok())
                .map(ReplicaId)?;
            let mut registered = read_record(id, &value.bytes)?;
            if let Some(known) = known.get(&id) {
                // Its connections are kept.
                registered.replica = known.replica.clone();
            }
            Some((id, registered)).filter(|_| id != self.this())
        });
        let others: HashMap<_, _> = others.collect();
        self.0.others.store(Arc::new(others));
        Ok(())
    }
}

/// The kind of the keys of replicas.
const KIND: &str = "replica";

fn key_of(id: ReplicaId) -> Key {
    Key::new(KIND, &[&format!("{:016x}", id.0)])
}

fn read_record(id: ReplicaId, bytes: &[u8]) -> Option<Registered> {
    let record: Record = serde_json::from_slice(bytes).ok()?;
    let target = target_of(&record.address)?;
    let mut settings = Settings::new(None);
    settings.connect_timeout = CONNECT_TIME;
    settings.idle_time = IDLE_TIME;
    settings.uses_proxy = false;
    let replica = Replica {
        id,
        client: Client::new(&target, settings),
        target: Arc::new(target),
    };
    Some(Registered {
        replica: Arc::new(replica),
        is_leaving: record.is_leaving,
    })
}

impl From<Registered> for Known {
    fn from(registered: Registered) -> Self {
        match registered.is_leaving {
            true => Self::Gone,
            false => Self::Other(registered.replica),
        }
    }
}

/// Where requests for the replica at an address are sent.
fn target_of(address: &str) -> Option<Target> {
    let url = Url::parse(&format!("http://{address}/forward")).ok()?;
    let is_address = url.path() == "/forward"
        && url.username().is_empty()
        && url.query().is_none()
        && url.port_or_known_default().is_some();
    is_address.then_some(url).and_then(|url| Target::new(url).ok())
}

/// A text that is no address of a replica.
#[derive(Debug, Clone, thiserror::Error)]
#[error("`{0}` is no address at which other replicas reach this one; write a host and a port, such as `10.0.0.7:7338`")]
pub struct BadReplicaAddress(String);

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
