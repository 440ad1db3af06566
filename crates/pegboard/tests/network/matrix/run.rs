//! Runs cells in parallel, each on its own runtime, and judges their outcomes.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Duration,
};

use futures_util::FutureExt as _;
use pegboard_base::sync::Mutex;
use tokio::runtime::{Builder, Handle};

use crate::matrix::{
    case::{Cell, How},
    known::{self, Known},
    leftovers,
    stage::Stage,
};

/// The number of cells that run at once. Most of them wait most of the time.
const PARALLEL_CELLS: usize = 12;
/// A cell that takes longer is a hang, whatever its bound.
const HANG: Duration = Duration::from_secs(60);
/// A healthy server on the same board answers within this time, on a machine that is busy with other cells.
const PROMPT: Duration = Duration::from_secs(10);
/// Descriptors that the runtimes of this test itself may still hold.
const SLACK: usize = 24;

/// The result of one cell.
pub(crate) struct Verdict {
    pub(crate) cell: Cell,
    pub(crate) what: What,
}

pub(crate) enum What {
    /// The required outcome.
    Right,
    /// A wrong outcome that is listed as a known failure.
    Known(&'static Known),
    /// A wrong outcome.
    Wrong(String),
    /// The required outcome, although the cell is listed as a known failure.
    Mended,
    CannotRun(&'static str),
}

impl Verdict {
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self.what, What::Wrong(_) | What::Mended)
    }

    pub(crate) fn complaint(&self) -> String {
        match &self.what {
            What::Wrong(why) => format!("{}: {why}", self.cell.label()),
            What::Mended => format!("{} is as it must be: take it out of KNOWN", self.cell.label()),
            What::Right | What::Known(_) | What::CannotRun(_) => String::new(),
        }
    }
}

/// Runs these cells.
pub(crate) fn all(cells: Vec<Cell>) -> Vec<Verdict> {
    let servers = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let handle = servers.handle().clone();
    // The first use of clocks, resolvers and random numbers opens descriptors that stay open.
    let before = leftovers::descriptors();
    let todo = Mutex::new(cells.into_iter().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..PARALLEL_CELLS {
            scope.spawn(|| {
                loop {
                    let Some(cell) = todo.lock().pop_front() else {
                        break;
                    };
                    let verdict = judge(cell, &handle);
                    done.lock().push(verdict);
                }
            });
        }
    });
    let mut verdicts = done.into_inner();
    drop(servers);
    let after = leftovers::descriptors();
    assert!(after <= before + SLACK, "{before} descriptors were open, now {after}");
    verdicts.sort_by_key(|verdict: &Verdict| (verdict.cell.case.id, verdict.cell.wire, verdict.cell.era));
    verdicts
}

fn judge(cell: Cell, servers: &Handle) -> Verdict {
    let play = match &cell.case.how {
        How::CannotRun(why) => {
            return Verdict {
                cell,
                what: What::CannotRun(why),
            };
        }
        How::Play(play) => *play,
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let seen = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let mut stage = Stage::new(cell, servers.clone());
            let played = AssertUnwindSafe(play(&mut stage)).catch_unwind();
            let ended = match tokio::time::timeout(HANG, played).await {
                Ok(Ok(ended)) => ended,
                Ok(Err(panic)) => format!("panicked: {}", panic_message(&*panic)),
                Err(_) => "hung".to_owned(),
            };
            observe(stage, ended).await
        })
    }));
    runtime.shutdown_background();
    let seen = seen.unwrap_or_else(|panic| format!("panicked: {}", panic_message(&*panic)));
    let known = known::KNOWN.iter().find(|known| known.covers(&cell));
    let what = match (seen == cell.expected(), known) {
        (true, None) => What::Right,
        (true, Some(_)) => What::Mended,
        (false, Some(known)) if seen == known.seen => What::Known(known),
        (false, _) => What::Wrong(format!("must be `{}`, is `{seen}`", cell.expected())),
    };
    Verdict { cell, what }
}

/// The outcome of the scenario, followed by every violation of what all cells must keep to: the time, the healthy server, and leftovers.
async fn observe(mut stage: Stage, mut seen: String) -> String {
    let mut note = |text: String| {
        seen.push_str("; ");
        seen.push_str(&text);
    };
    if let Some(violation) = stage.violations() {
        note(violation);
    }
    let bound = stage.cell.bound();
    if stage.took > bound {
        note(format!("took {:?}, may take {bound:?}", stage.took));
    }
    match stage.neighbour().await {
        Some(neighbour) if neighbour.failed > 0 => note(format!("the neighbour failed {} times", neighbour.failed)),
        Some(neighbour) if neighbour.slowest > PROMPT => note(format!("the neighbour took {:?}", neighbour.slowest)),
        Some(neighbour) if neighbour.answered == 0 => note("the neighbour was never asked".to_owned()),
        Some(_) | None => {}
    }
    if !stage.close().await {
        note("the shutdown hung".to_owned());
    }
    if let Some(left) = leftovers::behind(stage.folder.path(), &stage.addresses).await {
        note(format!("left behind: {left}"));
    }
    seen
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without words").to_owned()
}
