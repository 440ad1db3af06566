//! Random numbers for tests that can be repeated.

use std::time::Duration;

/// A number that the environment sets.
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Random numbers that come out alike for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    /// From a seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// From the seed in the environment, or a new one. It is printed, so that a run can be repeated.
    #[expect(clippy::print_stderr, reason = "a failure is reproduced by its seed")]
    pub(crate) fn new() -> Self {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = number("PEGBOARD_SEED").unwrap_or_else(|| u64::from(now.subsec_nanos()) + now.as_secs());
        eprintln!("PEGBOARD_SEED={seed}");
        Self(seed)
    }

    /// Another source, for another task.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// The steps of splitmix64.
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

    /// Whether something happens that happens in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time of up to so many milliseconds.
    pub(crate) fn up_to_ms(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most * 1000))
    }
}
