//! A budget for retries: a share of a server's calls plus a few per second, so that retries do not make an outage worse.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

/// Tokens are counted in thousandths, so that a fraction of one is an integer.
const TOKEN: u64 = 1000;
/// Every call earns a fifth of a retry.
const PER_CALL: u64 = TOKEN / 5;
/// Every second earns three retries, so that a server with few calls has some too.
const PER_SECOND: u64 = 3 * TOKEN;
/// The capacity: what ten seconds without retries earn.
const MOST: u64 = 10 * PER_SECOND;
const FULL_AFTER: Duration = Duration::from_secs(10);

/// The retry budget of one server's calls.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    tokens: AtomicU64,
    /// The time up to which elapsed time has been credited.
    counted: Mutex<Instant>,
}

impl RetryBudget {
    /// A full budget.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            tokens: AtomicU64::new(MOST),
            counted: Mutex::new(now),
        }
    }

    /// Credits a first attempt.
    pub(crate) fn deposit(&self) {
        // The budget is usually full, and then nothing is written.
        if self.tokens.load(Ordering::Relaxed) < MOST {
            self.earn(PER_CALL);
        }
    }

    /// Takes one retry from the budget; `false` if there is not enough left.
    pub(crate) fn withdraw(&self, now: Instant) -> bool {
        self.pay(now);
        let spent = |tokens: u64| tokens.checked_sub(TOKEN);
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .is_ok()
    }

    /// Credits the time since the last credit.
    fn pay(&self, now: Instant) {
        let mut counted = self.counted.lock();
        let passed = now.saturating_duration_since(*counted);
        if passed >= FULL_AFTER {
            *counted = now;
            self.earn(MOST);
            return;
        }
        // No overflow: less time has passed than fills the budget.
        let earned = passed.as_micros() as u64 * PER_SECOND / 1_000_000;
        self.earn(earned);
        // Advances only by the credited time. The remainder counts next time; otherwise frequent withdrawals would never earn a token.
        *counted += Duration::from_micros(earned * 1_000_000 / PER_SECOND);
    }

    fn earn(&self, tokens: u64) {
        let saved = |had: u64| Some((had + tokens).min(MOST));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, saved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(budget: &RetryBudget) -> usize {
        (0..1000).take_while(|_| budget.withdraw(Instant::now())).count()
    }

    #[tokio::test(start_paused = true)]
    async fn an_unused_budget_earns_three_retries_a_second_for_ten_seconds() {
        let budget = RetryBudget::new(Instant::now());
        assert_eq!(spend(&budget), 30);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(spend(&budget), 3);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(spend(&budget), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn every_fifth_call_earns_one() {
        let budget = RetryBudget::new(Instant::now());
        spend(&budget);
        for _ in 0..50 {
            budget.deposit();
        }
        assert_eq!(spend(&budget), 10);
        for _ in 0..10_000 {
            budget.deposit();
        }
        assert_eq!(spend(&budget), 30, "what is saved up has a bound");
    }

    #[tokio::test(start_paused = true)]
    async fn frequent_withdrawals_earn_as_much_as_rare_ones() {
        let budget = RetryBudget::new(Instant::now());
        spend(&budget);
        let mut got = 0;
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_micros(300)).await;
            got += usize::from(budget.withdraw(Instant::now()));
        }
        assert_eq!(got, 9, "three seconds");
    }
}
