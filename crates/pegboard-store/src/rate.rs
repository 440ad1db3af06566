//! [`Rate`]: how often something may happen, counted by a token bucket.

use std::time::Duration;

use crate::limits::MAX_TTL;

/// How often something may happen: `burst` at once, and `per_second` in the long run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    burst: u32,
    per_second: f64,
}

impl Rate {
    /// The slowest refill: a token in the longest time that anything is kept.
    const SLOWEST: f64 = 1.0 / MAX_TTL.as_secs() as f64;

    /// Creates a rate. `None` if `burst` is 0, or `per_second` is no number from a token per year up to a million per second.
    pub fn new(burst: u32, per_second: f64) -> Option<Self> {
        let is_usable = burst > 0 && (Self::SLOWEST..=1e6).contains(&per_second);
        is_usable.then_some(Self { burst, per_second })
    }

    /// How many tokens a full bucket has.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// How many tokens are added per second until the bucket is full.
    pub fn per_second(self) -> f64 {
        self.per_second
    }

    /// What a draw really takes: not more than a full bucket has, so that a large draw empties it instead of waiting for ever.
    pub(crate) fn amount(self, amount: u32) -> u32 {
        amount.min(self.burst)
    }
}

/// What became of [`Store::draw`](crate::Store::draw).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// The tokens were there, and are taken.
    Drawn,
    /// Nothing is taken. After this time there are enough tokens, unless another process takes some.
    Wait(Duration),
}

/// A token bucket. No bucket is the same as a full one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    pub(crate) tokens: f64,
    pub(crate) at_micros: u64,
}

impl Bucket {
    pub(crate) fn full(rate: Rate, now_micros: u64) -> Self {
        Self {
            tokens: f64::from(rate.burst),
            at_micros: now_micros,
        }
    }

    /// Takes tokens if there are enough.
    pub(crate) fn draw(&mut self, rate: Rate, amount: u32, now_micros: u64) -> Draw {
        // A clock that was set back adds nothing.
        let elapsed = Duration::from_micros(now_micros.saturating_sub(self.at_micros));
        let refilled = self.tokens + elapsed.as_secs_f64() * rate.per_second;
        self.tokens = refilled.min(f64::from(rate.burst));
        self.at_micros = now_micros;
        let amount = f64::from(rate.amount(amount));
        if self.tokens >= amount {
            self.tokens -= amount;
            return Draw::Drawn;
        }
        let missing = (amount - self.tokens) / rate.per_second;
        Draw::Wait(wait_from_micros((missing * 1e6).ceil()))
    }

    /// After how many microseconds the bucket is full, and can be forgotten.
    pub(crate) fn full_after(&self, rate: Rate) -> Duration {
        let missing = (f64::from(rate.burst) - self.tokens).max(0.0) / rate.per_second;
        Duration::try_from_secs_f64(missing).map_or(MAX_TTL, |time| (time + Duration::from_secs(1)).min(MAX_TTL))
    }
}

/// A time to wait, from a number that a store computed. It is never zero, so that no caller spins.
pub(crate) fn wait_from_micros(micros: f64) -> Duration {
    let wait = Duration::try_from_secs_f64(micros / 1e6).map_or(MAX_TTL, |wait| wait.min(MAX_TTL));
    wait.max(Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let rate = Rate::new(3, 2.0).unwrap();
        let mut bucket = Bucket::full(rate, SECOND);
        for _ in 0..3 {
            assert_eq!(bucket.draw(rate, 1, SECOND), Draw::Drawn);
        }
        assert_eq!(bucket.draw(rate, 1, SECOND), Draw::Wait(Duration::from_millis(500)));
        assert_eq!(bucket.draw(rate, 1, 3 * SECOND / 2), Draw::Drawn);
        assert_eq!(bucket.draw(rate, 9, 9 * SECOND), Draw::Drawn, "as many as there can be");
        assert_eq!(bucket.draw(rate, 2, 9 * SECOND), Draw::Wait(Duration::from_secs(1)));
    }

    #[test]
    fn a_clock_that_is_set_back_gives_nothing() {
        let rate = Rate::new(1, 1.0).unwrap();
        let mut bucket = Bucket::full(rate, 10 * SECOND);
        assert_eq!(bucket.draw(rate, 1, 10 * SECOND), Draw::Drawn);
        assert_eq!(bucket.draw(rate, 1, SECOND), Draw::Wait(Duration::from_secs(1)));
    }

    #[test]
    fn a_rate_without_tokens_is_none() {
        for (burst, per_second) in [
            (0, 1.0),
            (1, 0.0),
            (1, -1.0),
            (1, f64::NAN),
            (1, f64::INFINITY),
            (1, 1e-12),
        ] {
            assert_eq!(Rate::new(burst, per_second), None, "{burst} {per_second}");
        }
    }
}
