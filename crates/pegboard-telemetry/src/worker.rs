//! The tasks that send: batches of a queue, and snapshots of metrics.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    encode,
    health::Health,
    metric::{Metric, Points},
    queue::Queue,
    resource::Origin,
    sender::{Sender, Sent},
    signal::{Signal, Tally},
};

/// What a task that sends works with.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) signal: Signal,
    pub(crate) sender: Sender,
    pub(crate) health: Arc<Health>,
    pub(crate) origin: Arc<Origin>,
    /// Cancelled when the program stops: what is queued is then sent at once, and once only.
    pub(crate) stop: CancellationToken,
}

/// Sends the items of a queue in batches, until the program stops.
pub(crate) async fn send_queue<T>(
    outlet: Outlet,
    queue: Arc<Queue<T>>,
    encode: fn(&Origin, Vec<T>) -> Vec<u8>,
    delay: Duration,
) {
    loop {
        tokio::select! {
            biased;
            () = outlet.stop.cancelled() => if queue.len() == 0 { return },
            () = queue.wait(delay) => {}
        }
        let items = queue.take();
        if items.is_empty() {
            continue;
        }
        let count = items.len() as u64;
        let body = outlet.sender.pack(encode(&outlet.origin, items));
        outlet.deliver(body, count, &queue.tally).await;
    }
}

impl Outlet {
    /// Sends a batch until the collector has taken or refused it. Nothing else is sent meanwhile: the queue fills, and drops what is too much.
    async fn deliver(&self, body: Bytes, count: u64, tally: &Tally) {
        let mut backoff = Backoff::new();
        loop {
            let is_last = self.stop.is_cancelled();
            let wait = match self.attempt(&body, count, tally).await {
                None => return,
                Some(_) if is_last => return tally.add_dropped(count),
                // A collector that says "at once" is not asked in a loop.
                Some(after) => backoff.next().max(after.unwrap_or_default()),
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Sends a request once. Returns the time to wait that the collector wants if it has to be sent again.
    async fn attempt(&self, body: &Bytes, count: u64, tally: &Tally) -> Option<Option<Duration>> {
        match self.sender.send(body.clone()).await {
            Sent::Taken { rejected } => {
                self.health.note_success(self.signal);
                let rejected = rejected.min(count);
                tally.add_exported(count - rejected);
                tally.add_dropped(rejected);
                None
            }
            Sent::Refused(why) => {
                self.health.note_failure(self.signal, &why);
                tally.add_dropped(count);
                None
            }
            Sent::Later { why, after } => {
                self.health.note_failure(self.signal, &why);
                Some(after)
            }
        }
    }
}

/// Sends a snapshot of all metrics at each interval, and a last one when the program stops. One that fails is not sent again: the next one
/// counts from the same start.
pub(crate) async fn send_metrics(
    outlet: Outlet,
    tally: Arc<Tally>,
    collect: impl Fn() -> Vec<Metric> + Send,
    period: Duration,
) {
    let start = SystemTime::now();
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is at once, when there is nothing to tell.
    ticks.tick().await;
    loop {
        let is_last = tokio::select! {
            biased;
            () = outlet.stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        let mut metrics = collect();
        metrics.retain(|metric| metric.points.len() > 0);
        let count: usize = metrics.iter().map(|metric| Points::len(&metric.points)).sum();
        if count > 0 {
            let count = count as u64;
            let body = encode::metrics(&outlet.origin, metrics, start, SystemTime::now());
            let body = outlet.sender.pack(body);
            if outlet.attempt(&body, count, &tally).await.is_some() {
                tally.add_dropped(count);
            }
        }
        if is_last {
            return;
        }
    }
}
