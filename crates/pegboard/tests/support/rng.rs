//! Reproducible random numbers.

use std::time::Duration;

/// A number from an environment variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// A random number generator with a seed (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator with the seed in `PEGBOARD_SEED`, or a new one. The seed is printed, so that a run can be repeated.
    #[expect(clippy::print_stderr, reason = "a failure is reproduced by its seed")]
    pub(crate) fn new() -> Self {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = number("PEGBOARD_SEED").unwrap_or_else(|| u64::from(now.subsec_nanos()) + now.as_secs());
        eprintln!("PEGBOARD_SEED={seed}");
        Self(seed)
    }

    /// Another generator, for another task.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// The next number of splitmix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns `true` with this probability.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random duration of less than `most` milliseconds.
    pub(crate) fn up_to_ms(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000))
    }
}
