//! Runs the tests of `scripts/explore` under shuttle, in thousands of thread interleavings.

use std::{sync::Arc, time::Duration};

use shuttle::{
    Config, FailurePersistence, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};
use tokio::runtime::Runtime;

/// How many interleavings are explored with each scheduler, and how long that may take.
const INTERLEAVINGS: usize = 3_000;
const LIMIT: Duration = Duration::from_secs(3);
/// How many ordered thread switches a bug may need to show up (the depth of a PCT scheduler).
const DEPTH: usize = 3;

/// Runs a program in many interleavings of its threads: first random ones, then those of the PCT scheduler. A deadlock is a failure. The
/// failing schedule is printed, and `shuttle::replay` can replay it.
pub fn explore(program: impl Fn() + Send + Sync + 'static) {
    let program = Arc::new(program);
    run_with(RandomScheduler::new(INTERLEAVINGS), program.clone());
    run_with(PctScheduler::new(DEPTH, INTERLEAVINGS), program);
}

fn run_with(scheduler: impl Scheduler + 'static, program: Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.stack_size = 512 << 10;
    config.failure_persistence = FailurePersistence::Print;
    config.max_time = Some(LIMIT);
    // All atomics are sequentially consistent here; weaker orderings are not explored.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || program());
}

/// A runtime that is never driven, for code that needs a clock or spawns irrelevant tasks. Enter it in the first thread. Its clock stands still, so
/// that a machine that stops for a moment changes nothing.
pub fn idle_runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}
