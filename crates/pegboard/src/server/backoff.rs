//! The backoff between restarts of a server, and the detection of crash loops.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::Instant;

/// How long a session must have lived for the schedule to start over after it.
const HEALTHY: Duration = Duration::from_secs(60);
/// The longest wait that a schedule may have.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The most waits that a schedule may have.
const MOST_STEPS: usize = 64;

/// The waits before each restart of a server. The last one repeats.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    waits: Vec<Duration>,
    jitter: Jitter,
    noise: Noise,
    step: usize,
}

/// By how much waits vary, so that servers that failed together do not restart together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Jitter {
    /// No variation.
    Off,
    /// Up to this fraction of the wait, in both directions.
    Uniform(f64),
}

/// Why a restart schedule is invalid.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSchedule {
    /// The schedule has no waits.
    #[error("a schedule of waits has no waits; give at least one")]
    Empty,
    /// The schedule has too many waits.
    #[error("a schedule of waits has {0} of them; {MOST_STEPS} are enough for anything")]
    TooMany(usize),
    /// The last wait is zero.
    #[error(
        "the last wait of a schedule is zero, so a broken server would be started without a pause; end with a longer one"
    )]
    NeverPauses,
    /// A wait is too long.
    #[error("a wait of {} s is too long; the longest is a day", .0.as_secs())]
    TooLong(Duration),
    /// A wait is shorter than the one before it.
    #[error("the waits of a schedule go from {} ms down to {} ms; they may only grow", .0.as_millis(), .1.as_millis())]
    Shrinks(Duration, Duration),
    /// The jitter is out of range.
    #[error("waits cannot be varied by {0}; use a number from 0 to less than 1")]
    Jitter(f64),
}

impl Backoff {
    /// Creates a schedule of waits.
    pub(crate) fn new(waits: Vec<Duration>, jitter: Jitter) -> Result<Self, BadSchedule> {
        let last = *waits.last().ok_or(BadSchedule::Empty)?;
        if waits.len() > MOST_STEPS {
            return Err(BadSchedule::TooMany(waits.len()));
        }
        if let Some(pair) = waits.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(BadSchedule::Shrinks(pair[0], pair[1]));
        }
        if last.is_zero() {
            return Err(BadSchedule::NeverPauses);
        }
        if last > LONGEST {
            return Err(BadSchedule::TooLong(last));
        }
        if let Jitter::Uniform(part) = jitter
            && !(0.0..1.0).contains(&part)
        {
            return Err(BadSchedule::Jitter(part));
        }
        Ok(Self {
            waits,
            jitter,
            noise: Noise::random(),
            step: 0,
        })
    }

    /// Returns a schedule with other waits and the same jitter; an unchanged one if the waits are invalid.
    pub(crate) fn with_waits(&self, waits: &[Duration]) -> Self {
        Self::new(waits.to_vec(), self.jitter).unwrap_or_else(|_| self.clone())
    }

    /// Replaces the jitter.
    #[must_use]
    pub(crate) fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Makes the jitter deterministic.
    #[cfg(test)]
    fn with_seed(mut self, seed: u64) -> Self {
        self.noise = Noise::from_seed(seed);
        self
    }

    /// Returns the next wait and advances the schedule.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.waits[self.step.min(self.waits.len() - 1)];
        self.step = (self.step + 1).min(self.waits.len());
        match self.jitter {
            Jitter::Off => wait,
            Jitter::Uniform(part) => wait.mul_f64(1.0 + part * (2.0 * self.noise.unit() - 1.0)),
        }
    }

    /// The last and longest wait, without jitter.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.waits.last().copied().unwrap_or_default()
    }

    /// Starts the schedule over.
    pub(crate) fn reset(&mut self) {
        self.step = 0;
    }
}

impl Default for Backoff {
    /// 0, 1, 2, 5, 10, 30 and then 60 seconds, with 20 % jitter.
    fn default() -> Self {
        Self {
            waits: pegboard_config::RESTART_WAITS.into(),
            jitter: Jitter::Uniform(0.2),
            noise: Noise::random(),
            step: 0,
        }
    }
}

/// Whether a session was healthy, so that the schedule starts over after it.
///
/// It must have lived for [`HEALTHY`] and been `listed`: a server that cannot be listed is useless, and one that exits soon after its listing
/// is a crash loop.
pub(crate) fn was_healthy(lived: Duration, listed: bool) -> bool {
    listed && lived >= HEALTHY
}

/// Detects a crash loop: too many exits within a time window.
#[derive(Debug, Clone)]
pub(crate) struct CrashLoop {
    /// How many exits within `window` are a crash loop.
    limit: usize,
    /// The time window in which exits are counted.
    window: Duration,
    /// The shortest wait before a restart in a crash loop.
    pause: Duration,
    exits: VecDeque<Instant>,
    looping: bool,
}

impl CrashLoop {
    /// `limit` exits (at least two) within `window` are a crash loop, in which the server is restarted every `pause`.
    pub(crate) fn new(limit: usize, window: Duration, pause: Duration) -> Self {
        Self {
            limit: limit.clamp(2, 1000),
            window,
            pause,
            exits: VecDeque::new(),
            looping: false,
        }
    }

    /// Records an exit of the server. Returns whether it is in a crash loop now.
    ///
    /// A crash loop lasts until [`CrashLoop::reset`]: its slow restarts would otherwise look like its end.
    pub(crate) fn record_exit(&mut self, now: Instant) -> bool {
        self.exits.push_back(now);
        while self.exits.len() > self.limit {
            self.exits.pop_front();
        }
        let oldest = self.exits.front().copied().unwrap_or(now);
        if self.exits.len() == self.limit && now.saturating_duration_since(oldest) <= self.window {
            self.looping = true;
        }
        self.looping
    }

    /// How long to wait before the next restart: the long pause in a crash loop, otherwise as scheduled.
    pub(crate) fn wait(&self, scheduled: Duration) -> Duration {
        if self.looping {
            self.pause.max(scheduled)
        } else {
            scheduled
        }
    }

    /// Forgets earlier exits, because the server was healthy or was changed.
    pub(crate) fn reset(&mut self) {
        self.exits.clear();
        self.looping = false;
    }
}

impl Default for CrashLoop {
    /// Five exits in 60 seconds; then a restart every 60 seconds.
    fn default() -> Self {
        Self::new(5, Duration::from_secs(60), Duration::from_secs(60))
    }
}

/// A small pseudorandom number generator (xorshift64) for jitter. Not for cryptography.
#[derive(Debug, Clone)]
pub(crate) struct Noise(u64);

impl Noise {
    /// A generator with a fixed seed.
    pub(crate) fn from_seed(seed: u64) -> Self {
        // Xorshift cannot leave zero.
        Self(if seed == 0 { 0x9E37_79B9_7F4A_7C15 } else { seed })
    }

    /// A generator with a random seed, taken from the standard library's hasher.
    pub(crate) fn random() -> Self {
        Self::from_seed(RandomState::new().hash_one(0))
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // An `f64` holds exactly 53 bits.
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: &[u64]) -> Vec<Duration> {
        seconds.iter().copied().map(Duration::from_secs).collect()
    }

    fn take(backoff: &mut Backoff, count: usize) -> Vec<Duration> {
        (0..count).map(|_| backoff.next()).collect()
    }

    #[test]
    fn waits_grow_along_the_schedule_and_stay_at_its_end() {
        let mut backoff = Backoff {
            jitter: Jitter::Off,
            ..Backoff::default()
        };
        assert_eq!(take(&mut backoff, 9), secs(&[0, 1, 2, 5, 10, 30, 60, 60, 60]));
        backoff.reset();
        assert_eq!(take(&mut backoff, 2), secs(&[0, 1]));
    }

    #[test]
    fn nonsense_is_refused() {
        let check = |waits: &[u64], jitter, expected| {
            assert_eq!(Backoff::new(secs(waits), jitter).err(), expected, "{waits:?}");
        };
        check(&[], Jitter::Off, Some(BadSchedule::Empty));
        check(&[1; 65], Jitter::Off, Some(BadSchedule::TooMany(65)));
        check(&[0, 0], Jitter::Off, Some(BadSchedule::NeverPauses));
        check(
            &[1, 86_401],
            Jitter::Off,
            Some(BadSchedule::TooLong(Duration::from_secs(86_401))),
        );
        let (five, two) = (Duration::from_secs(5), Duration::from_secs(2));
        check(&[1, 5, 2], Jitter::Off, Some(BadSchedule::Shrinks(five, two)));
        check(&[1], Jitter::Uniform(1.0), Some(BadSchedule::Jitter(1.0)));
        check(&[1], Jitter::Uniform(-0.1), Some(BadSchedule::Jitter(-0.1)));
        check(&[0, 1, 1, 86_400], Jitter::Uniform(0.0), None);
        let not_a_number = Backoff::new(secs(&[1]), Jitter::Uniform(f64::NAN));
        assert!(matches!(not_a_number, Err(BadSchedule::Jitter(_))));
    }

    #[test]
    fn jitter_stays_within_its_part_and_reaches_both_sides() {
        let mut backoff = Backoff::new(secs(&[10]), Jitter::Uniform(0.2)).unwrap().with_seed(7);
        let waits = take(&mut backoff, 1000);
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(
            *least >= Duration::from_secs(8) && *least < Duration::from_millis(8100),
            "{least:?}"
        );
        assert!(
            *most <= Duration::from_secs(12) && *most > Duration::from_millis(11_900),
            "{most:?}"
        );
    }

    #[test]
    fn two_schedules_do_not_wait_in_step() {
        let mut pair = [Backoff::default(), Backoff::default()];
        let [first, second] = pair.each_mut().map(|backoff| take(backoff, 7));
        assert_ne!(first, second);
        let mut same = [Noise::from_seed(0), Noise::from_seed(0)];
        let [first, second] = same.each_mut().map(Noise::unit);
        assert_eq!(first, second);
    }

    #[test]
    fn only_a_listed_session_of_a_minute_was_healthy() {
        for (lived, listed, expected) in [(60, true, true), (59, true, false), (600, false, false)] {
            assert_eq!(
                was_healthy(Duration::from_secs(lived), listed),
                expected,
                "{lived} {listed}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn five_exits_in_a_minute_are_a_crash_loop() {
        let mut crashes = CrashLoop::default();
        for exit in 1..=5 {
            assert_eq!(crashes.record_exit(Instant::now()), exit == 5, "exit {exit}");
            tokio::time::advance(Duration::from_secs(15)).await;
        }
        assert!(crashes.looping);
    }

    #[tokio::test(start_paused = true)]
    async fn five_exits_in_a_longer_time_are_not() {
        let mut crashes = CrashLoop::default();
        for _ in 0..50 {
            assert!(!crashes.record_exit(Instant::now()));
            tokio::time::advance(Duration::from_millis(15_100)).await;
        }
        assert_eq!(crashes.wait(Duration::from_secs(5)), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_loop_is_tried_every_minute_until_it_is_over() {
        let mut crashes = CrashLoop::default();
        for _ in 0..5 {
            crashes.record_exit(Instant::now());
        }
        assert_eq!(crashes.wait(Duration::ZERO), Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(600)).await;
        assert!(
            crashes.record_exit(Instant::now()),
            "a slow try that fails changes nothing"
        );
        crashes.reset();
        assert!(!crashes.record_exit(Instant::now()));
        assert_eq!(crashes.wait(Duration::ZERO), Duration::ZERO);
    }
}
