//! What one owner uses of its limits: its calls in flight and its rates.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    rates::{Limited, RateBuckets},
    shared_rates::{SharedBuckets, SharedRates},
    verdict::Denied,
};
use pegboard_base::caller::Principal;
use pegboard_base::sync::Mutex;
use pegboard_config::Rate;
use pegboard_tools::outcome::{Advice, Failure, Kind};

/// When a call that was one too many may be made again. A call of the same owner must end first, and when that is cannot be known.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How many principals are known before those without views are examined.
const MIN_EXAMINED: usize = 256;
/// The most principals without views whose spent rates are kept. The one that regains its whole rate first is dropped first.
const MAX_SPENT: usize = 4096;

/// What one owner uses of its limits. The owner is a principal with all its views, or a view without a principal.
#[derive(Debug, Default)]
pub(crate) struct OwnerUsage {
    in_flight: AtomicUsize,
    rates: RateBuckets,
    /// Counts in place of `rates`, for several processes together.
    shared: Option<SharedBuckets>,
}

impl OwnerUsage {
    /// Takes a token of every bucket. `tool` is the name of the called tool, for the refusal.
    pub(super) async fn spend<const N: usize>(
        &self,
        limited: [Option<(Limited, Rate)>; N],
        tool: impl FnOnce() -> String,
    ) -> Result<(), Denied> {
        match &self.shared {
            None => self.rates.spend(limited, Instant::now(), tool),
            // Boxed, because few boards share their rates and every call would pay for the space.
            Some(shared) => Box::pin(shared.spend(limited.into_iter().flatten(), tool)).await,
        }
    }

    /// Counts a call in flight, or refuses it if the owner has `most` of them.
    pub(super) fn begin(self: &Arc<Self>, most: usize) -> Result<InFlightSlot, Failure> {
        let more = |now: usize| (now < most).then_some(now + 1);
        match self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(InFlightSlot(self.clone())),
            Err(now) => Err(too_many(now)),
        }
    }
}

fn too_many(now: usize) -> Failure {
    let calls = if now == 1 {
        "1 call is".to_owned()
    } else {
        format!("{now} calls are")
    };
    let message = format!("{calls} in flight, which is the limit of this client");
    Failure::new(Kind::LimitExceeded, message)
        .advice(Advice::AfterAnother)
        .hint("`View::max_in_flight` sets the limit")
        .retry_after(TRY_AGAIN)
}

/// A call in flight, counted until this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct InFlightSlot(Arc<OwnerUsage>);

impl Drop for InFlightSlot {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the principals of a board use of their limits. It outlives their views for as long as a rate is spent, because a client may have a view
/// for each request.
#[derive(Default)]
pub(crate) struct UsageByPrincipal {
    known: Mutex<KnownUsage>,
    shared: Option<Arc<dyn SharedRates>>,
}

#[derive(Debug, Default)]
struct KnownUsage {
    usages: HashMap<Principal, Arc<OwnerUsage>>,
    /// How many entries there are before they are examined again.
    examine_at: usize,
}

impl UsageByPrincipal {
    /// The usage of principals whose rates are counted for several processes together, if `shared` is there.
    pub(crate) fn new(shared: Option<Arc<dyn SharedRates>>) -> Self {
        Self {
            known: Mutex::default(),
            shared,
        }
    }

    /// What a principal uses; for `None` a usage of its own.
    pub(crate) fn get_or_insert(&self, principal: Option<&Principal>) -> Arc<OwnerUsage> {
        let Some(principal) = principal else {
            return Arc::default();
        };
        let mut known = self.known.lock();
        if let Some(usage) = known.usages.get(principal) {
            return usage.clone();
        }
        if known.usages.len() >= known.examine_at.max(MIN_EXAMINED) {
            known.drop_unused(Instant::now());
        }
        let new = || OwnerUsage {
            shared: self.shared.clone().map(|rates| SharedBuckets {
                rates,
                principal: principal.clone(),
            }),
            ..OwnerUsage::default()
        };
        known
            .usages
            .entry(principal.clone())
            .or_insert_with(|| Arc::new(new()))
            .clone()
    }
}

impl fmt::Debug for UsageByPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageByPrincipal")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl KnownUsage {
    /// Drops the principals without views and without spent rates. That many new ones are needed to get here again, so its cost is constant for
    /// each of them.
    fn drop_unused(&mut self, now: Instant) {
        // Usages are cloned from the map only while it is locked, so one that has no other owner gets none meanwhile.
        let is_used = |usage: &Arc<OwnerUsage>| Arc::strong_count(usage) > 1;
        let spent_until = |usage: &Arc<OwnerUsage>| usage.rates.spent_until(now);
        self.usages
            .retain(|_, usage| is_used(usage) || spent_until(usage).is_some());
        let unused = self.usages.values().filter(|usage| !is_used(usage));
        let mut ends: Vec<Instant> = unused.filter_map(spent_until).collect();
        if let Some(surplus) = ends.len().checked_sub(MAX_SPENT).filter(|surplus| *surplus > 0) {
            let (_, last, _) = ends.select_nth_unstable(surplus - 1);
            let last = *last;
            self.usages
                .retain(|_, usage| is_used(usage) || spent_until(usage).is_some_and(|end| end > last));
        }
        self.examine_at = self.usages.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(usage: &OwnerUsage, per: Duration) {
        usage
            .rates
            .spend([Some((Limited::View, Rate::new(1, per)))], Instant::now(), String::new)
            .unwrap();
    }

    fn known(usages: &UsageByPrincipal) -> usize {
        usages.known.lock().usages.len()
    }

    #[tokio::test(start_paused = true)]
    async fn principals_without_views_and_without_spent_rates_are_dropped() {
        let usages = UsageByPrincipal::default();
        let open: Vec<_> = (0..100)
            .map(|n| usages.get_or_insert(Some(&format!("open-{n}").into())))
            .collect();
        for n in 0..10_000 {
            let usage = usages.get_or_insert(Some(&format!("user-{n}").into()));
            spend(&usage, Duration::from_secs(1));
            drop(usage);
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!(known(&usages) <= MIN_EXAMINED, "{}", known(&usages));
        for (n, usage) in open.iter().enumerate() {
            assert!(Arc::ptr_eq(
                usage,
                &usages.get_or_insert(Some(&format!("open-{n}").into()))
            ));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_principals_with_spent_rates_are_bounded() {
        let usages = UsageByPrincipal::default();
        for n in 0..5 * MAX_SPENT {
            let day = Duration::from_secs(24 * 3600);
            spend(&usages.get_or_insert(Some(&format!("user-{n}").into())), day);
        }
        assert!(known(&usages) <= 2 * MAX_SPENT + 1, "{}", known(&usages));
    }

    #[tokio::test(start_paused = true)]
    async fn a_spent_rate_outlives_the_views_of_its_principal() {
        let usages = UsageByPrincipal::default();
        let (alice, day) = (Principal::new("alice"), Duration::from_secs(24 * 3600));
        spend(&usages.get_or_insert(Some(&alice)), day);
        for n in 0..2 * MIN_EXAMINED {
            let _ = usages.get_or_insert(Some(&format!("user-{n}").into()));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        let again = usages.get_or_insert(Some(&alice));
        let limited = [Some((Limited::View, Rate::new(1, day)))];
        assert!(again.rates.spend(limited, Instant::now(), String::new).is_err());
    }
}
