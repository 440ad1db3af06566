//! How the tests of `scripts/explore` are run: one program, thousands of orders of its threads.

use std::{sync::Arc, time::Duration};

use shuttle::{
    Config, FailurePersistence, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};
use tokio::runtime::Runtime;

/// How many orders are tried with each scheduler, and how long that may take.
const ORDERS: usize = 3_000;
const LIMIT: Duration = Duration::from_secs(3);
/// How many times a rare order may have to switch threads in just the right place.
const DEPTH: usize = 3;

/// Runs a program in many orders of its threads: first in random ones, then in those that make few but nasty switches. A thread that
/// is never woken is a failure like any other; the order that failed is printed, and `shuttle::replay` takes it.
pub(crate) fn explore(program: impl Fn() + Send + Sync + 'static) {
    let program = Arc::new(program);
    try_orders(RandomScheduler::new(ORDERS), program.clone());
    try_orders(PctScheduler::new(DEPTH, ORDERS), program);
}

fn try_orders(scheduler: impl Scheduler + 'static, program: Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.stack_size = 512 << 10;
    config.failure_persistence = FailurePersistence::Print;
    config.max_time = Some(LIMIT);
    // All atomics count as sequentially consistent here; weaker orders are not explored.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || program());
}

/// A runtime that nobody drives, for code that wants a clock or spawns what does not matter here. Enter it in the first thread.
pub(crate) fn idle_runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}
