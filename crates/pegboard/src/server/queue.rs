//! Named queues: a call gets a permit when its owner has its turn, or is refused when the queue is full or the deadline passes.

mod fair_semaphore;
mod lines;
mod pace;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::status::QueueStatus;
use fair_semaphore::{Admission, BorrowedGrant, FairSemaphore, Grant};
use pegboard_base::sync::Mutex;
use pegboard_base::{caller::QuotaOwner, deadline::Deadline};
use pegboard_config::Policy;
use pegboard_tools::{filter, outcome::millis};

/// The most calls that wait in one queue; those of one owner fill at most half of it. Later ones would wait too long to be useful.
const MAX_WAITING: usize = 512;
/// The queue that is used if the named one is not configured.
const DEFAULT: &str = "default";

/// All queues of a board, by name. There is always one called `default`.
#[derive(Debug)]
pub(crate) struct Queues(Mutex<BTreeMap<String, Queue>>);

impl Queues {
    /// Creates the configured queues. If `default` is not among them, it is created with two permits per core of the machine, at most 64.
    pub(crate) fn new(configured: &BTreeMap<String, pegboard_config::Queue>) -> Self {
        Self::on(configured, cores())
    }

    fn on(configured: &BTreeMap<String, pegboard_config::Queue>, cores: usize) -> Self {
        let queues = sizes(configured, cores).map(|(name, permits)| (name.to_owned(), Queue::new(name, permits)));
        Self(Mutex::new(queues.collect()))
    }

    /// Creates the gate for the calls of `server`: at most `permits` concurrent calls, which also wait in the queues that `policy` names.
    /// Create it once per server and share it.
    pub(crate) fn gate(&self, server: &str, permits: usize, policy: &Policy) -> Gate {
        let gate = Gate {
            own: Queue::new(server, permits),
            reads: Queue::new(server, permits),
            bound: ArcSwap::default(),
        };
        gate.bind(self, policy);
        gate
    }

    /// The queue of that name, or the default one if it is not configured.
    fn find_or_default(&self, name: &str) -> Option<Queue> {
        let queues = self.0.lock();
        queues.get(name).or_else(|| queues.get(DEFAULT)).cloned()
    }

    /// Gives the queues the capacities of a new config, and creates those that are missing. Waiting calls proceed at once where there is more room;
    /// where there is less, calls in flight run on. Queues that are not configured any more stay, and no server names them.
    pub(crate) fn apply(&self, configured: &BTreeMap<String, pegboard_config::Queue>) {
        let mut queues = self.0.lock();
        for (name, permits) in sizes(configured, cores()) {
            match queues.get(name) {
                Some(queue) => queue.0.permits.resize(permits),
                None => {
                    queues.insert(name.to_owned(), Queue::new(name, permits));
                }
            }
        }
    }

    /// The statistics of every queue, by name.
    pub(crate) fn stats(&self) -> Vec<QueueStats> {
        let queues = self.0.lock();
        queues.values().map(Queue::stats).collect()
    }

    /// The statistics of every queue, for status.
    pub(crate) fn status(&self) -> Vec<QueueStatus> {
        let status = |queue: QueueStats| QueueStatus {
            name: queue.name.to_string(),
            capacity: queue.capacity,
            in_use: queue.in_use,
            depth: queue.depth,
            entered: queue.entered,
            waited: queue.waited,
            refused: queue.refused,
            last_wait_ms: millis(queue.last_wait),
            total_wait_ms: millis(queue.total_wait),
        };
        self.stats().into_iter().map(status).collect()
    }
}

/// The queues of a config with their capacities, `default` among them.
fn sizes(configured: &BTreeMap<String, pegboard_config::Queue>, cores: usize) -> impl Iterator<Item = (&str, usize)> {
    let named = configured.iter().map(|(name, queue)| (name.as_str(), queue.concurrent));
    let default = std::iter::once((DEFAULT, cores.saturating_mul(2).clamp(1, 64)));
    named.chain(default.filter(|_| !configured.contains_key(DEFAULT)))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The gate that all calls of one server pass.
#[derive(Debug)]
pub(crate) struct Gate {
    own: Queue,
    /// For requests that are no tool calls. A queue of its own, because the host may read a resource to answer a question of a call in flight.
    reads: Queue,
    bound: ArcSwap<BoundQueues>,
}

/// The shared queues that a server's calls wait in besides the server's own.
#[derive(Debug, Default)]
struct BoundQueues {
    all: Option<Queue>,
    /// The queues of single tools, by name or glob. They apply instead of `all`, so that no call waits in two shared queues.
    tools: BTreeMap<String, Queue>,
}

impl BoundQueues {
    fn queue_of(&self, tool: &str) -> Option<&Queue> {
        let matches = |(glob, _): &(&String, &Queue)| filter::fits(glob, tool);
        let named = || self.tools.get(tool);
        let of_tool = named().or_else(|| self.tools.iter().find(matches).map(|(_, queue)| queue));
        of_tool.or(self.all.as_ref())
    }
}

impl Gate {
    /// Takes a permit for a tool if one is free.
    pub(crate) fn try_enter(&self, tool: &str) -> Option<Permit<'_>> {
        let bound = self.bound.load();
        let shared = bound.queue_of(tool);
        let own_permit = self.own.0.permits.try_acquire()?;
        let shared_permit = match shared {
            None => None,
            Some(queue) => Some(queue.0.permits.try_acquire_owned()?),
        };
        self.own.count(Duration::ZERO);
        if let Some(queue) = shared {
            queue.count(Duration::ZERO);
        }
        Some(Permit {
            waited: Duration::ZERO,
            _shared: shared_permit,
            _own: OwnPermit::Immediate(own_permit),
        })
    }

    /// Waits for a permit for a tool, at most until the deadline. Waiting owners take turns. Dropping the future leaves the queue. A call that
    /// cannot wait is refused at the first poll.
    pub(crate) async fn enter(
        &self,
        tool: &str,
        owner: &QuotaOwner,
        deadline: Deadline,
    ) -> Result<Permit<'_>, Refused> {
        let shared = self.bound.load().queue_of(tool).cloned();
        // In this order, so that calls which wait for one slow server do not fill the queue that it shares with others.
        let (own_permit, mut waited) = self.own.enter(owner, deadline).await?;
        let mut shared_permit = None;
        if let Some(queue) = shared {
            let (permit, more) = queue.enter(owner, deadline).await?;
            shared_permit = Some(permit);
            waited += more;
        }
        Ok(Permit {
            waited,
            _shared: shared_permit,
            _own: OwnPermit::Waited(own_permit),
        })
    }

    /// Waits for a permit for a request that is no tool call, like [`Gate::enter`]. As many of them run at once as calls.
    pub(crate) async fn enter_read(&self, owner: &QuotaOwner, deadline: Deadline) -> Result<Permit<'_>, Refused> {
        let (permit, waited) = self.reads.enter(owner, deadline).await?;
        Ok(Permit {
            waited,
            _shared: None,
            _own: OwnPermit::Waited(permit),
        })
    }

    /// Binds the gate to the queues that `policy` names.
    pub(crate) fn bind(&self, queues: &Queues, policy: &Policy) {
        let of_tools = policy.tool_queues.iter();
        let bound = BoundQueues {
            all: policy.queue.as_deref().and_then(|name| queues.find_or_default(name)),
            tools: of_tools
                .filter_map(|(tool, name)| Some((tool.clone(), queues.find_or_default(name)?)))
                .collect(),
        };
        self.bound.store(Arc::new(bound));
    }

    /// Sets the number of concurrent calls. Calls in flight beyond it continue, and none takes their places.
    pub(crate) fn resize(&self, permits: usize) {
        self.own.0.permits.resize(permits);
        self.reads.0.permits.resize(permits);
    }

    /// The statistics of the server's own queue.
    pub(crate) fn stats(&self) -> QueueStats {
        self.own.stats()
    }
}

/// The permission to have one call in flight. Dropping it returns the permits.
#[derive(Debug)]
#[must_use]
pub(crate) struct Permit<'a> {
    waited: Duration,
    // Dropped in this order, so that the shared permit is free before the server's next call tries to take one.
    _shared: Option<Grant>,
    _own: OwnPermit<'a>,
}

/// A permit of the server's own queue.
#[derive(Debug)]
#[expect(dead_code, reason = "they are held, not read")]
enum OwnPermit<'a> {
    /// Taken without waiting.
    Immediate(BorrowedGrant<'a>),
    Waited(Grant),
}

impl Permit<'_> {
    /// How long the call waited for the permit.
    pub(crate) fn wait_time(&self) -> Duration {
        self.waited
    }
}

/// Why a call got no permit. It was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "{waiting} calls wait in queue `{queue}` already, {of_owner} of them from the same caller; call again when some of them are done"
    )]
    Full {
        queue: Arc<str>,
        waiting: usize,
        of_owner: usize,
        /// An estimate of when the call could be served.
        retry_after: Duration,
    },
    #[error("the call waited in queue `{queue}` until its time was up; allow more time, or make the queue larger")]
    Late { queue: Arc<str>, retry_after: Duration },
}

impl Refused {
    /// An estimate of when the call could be served.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Full { retry_after, .. } | Self::Late { retry_after, .. } => *retry_after,
        }
    }
}

/// The statistics of one queue, for status and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueStats {
    pub(crate) name: Arc<str>,
    /// The most concurrent calls.
    pub(crate) capacity: usize,
    /// Calls in flight.
    pub(crate) in_use: usize,
    /// Waiting calls.
    pub(crate) depth: usize,
    /// The most waiting calls.
    pub(crate) max_depth: usize,
    /// Calls admitted since the queue was created.
    pub(crate) entered: u64,
    /// Admitted calls that had to wait.
    pub(crate) waited: u64,
    /// Refused calls.
    pub(crate) refused: u64,
    /// How long the last admitted call waited.
    pub(crate) last_wait: Duration,
    /// How long all admitted calls waited together.
    pub(crate) total_wait: Duration,
}

#[derive(Debug, Clone)]
struct Queue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    name: Arc<str>,
    permits: Arc<FairSemaphore>,
    entered: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    last_wait: AtomicU64,
    total_wait: AtomicU64,
}

impl Queue {
    fn new(name: &str, permits: usize) -> Self {
        Self(Arc::new(QueueState {
            name: name.into(),
            permits: Arc::new(FairSemaphore::new(permits, MAX_WAITING)),
            entered: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last_wait: AtomicU64::new(0),
            total_wait: AtomicU64::new(0),
        }))
    }

    /// Waits for a permit. Returns it with the time that the call waited.
    async fn enter(&self, owner: &QuotaOwner, deadline: Deadline) -> Result<(Grant, Duration), Refused> {
        let entered = self.wait(owner, deadline).await;
        if entered.is_err() {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
        }
        entered
    }

    async fn wait(&self, owner: &QuotaOwner, deadline: Deadline) -> Result<(Grant, Duration), Refused> {
        let state = &*self.0;
        let late = || Refused::Late {
            queue: state.name.clone(),
            retry_after: state.permits.estimate(),
        };
        if deadline.has_passed() {
            return Err(late());
        }
        let waiter = match state.permits.enter(owner) {
            Admission::Free(permit) => {
                self.count(Duration::ZERO);
                return Ok((permit, Duration::ZERO));
            }
            Admission::Wait(waiter) => waiter,
            Admission::Full(full, retry_after) => {
                return Err(Refused::Full {
                    queue: state.name.clone(),
                    waiting: full.waiting,
                    of_owner: full.of_owner,
                    retry_after,
                });
            }
        };
        let since = Instant::now();
        match deadline.run(waiter).await {
            Ok(Some(permit)) => {
                let waited = since.elapsed();
                tracing::debug!(queue = %state.name, ?waited, "the call waited for its turn");
                state.waited.fetch_add(1, Ordering::Relaxed);
                self.count(waited);
                Ok((permit, waited))
            }
            Ok(None) | Err(_) => Err(late()),
        }
    }

    fn count(&self, waited: Duration) {
        let state = &*self.0;
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        state.entered.fetch_add(1, Ordering::Relaxed);
        // Most calls do not wait, and then the value need not be written.
        if state.last_wait.load(Ordering::Relaxed) != micros {
            state.last_wait.store(micros, Ordering::Relaxed);
        }
        if micros > 0 {
            state.total_wait.fetch_add(micros, Ordering::Relaxed);
        }
    }

    fn stats(&self) -> QueueStats {
        let state = &*self.0;
        let counts = state.permits.counts();
        QueueStats {
            name: state.name.clone(),
            capacity: counts.capacity,
            in_use: counts.in_use,
            depth: counts.waiting,
            max_depth: MAX_WAITING,
            entered: state.entered.load(Ordering::Relaxed),
            waited: state.waited.load(Ordering::Relaxed),
            refused: state.refused.load(Ordering::Relaxed),
            last_wait: Duration::from_micros(state.last_wait.load(Ordering::Relaxed)),
            total_wait: Duration::from_micros(state.total_wait.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests;
