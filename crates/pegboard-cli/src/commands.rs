//! One file per command, and what they share: a board that is ended however the command ends.

mod call;
mod completions;
mod config;
mod listing;
mod mask;
mod prompts;
mod resources;
mod status;
mod tools;
mod waits;

use std::{future::Future, time::Duration};

use pegboard::{Deadline, Failure, Kind, Pegboard};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    cli::{Global, Verb},
    demo,
    exit::Exit,
    output::{Output, Report},
    settings::Complaint,
    signals::Signals,
};
use waits::Waits;

/// How long servers are waited for when nobody set a limit. Their own limits end the wait long before.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How long the end of the board is waited for. Servers that do not end in time are killed.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// A timer that fires so much later than it was due shows that this process was stopped.
const STOPPED: Duration = Duration::from_millis(100);
/// How long the board may take to read what arrived during a stop: longer than it takes itself.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Carries a command out and prints what it has to say.
pub(crate) async fn run(verb: Verb, global: Global, output: Output) -> Exit {
    if let Verb::DemoServer(options) = verb {
        return match demo::run(options).await {
            Ok(()) => Exit::Done,
            Err(error) => output.print(&Report::new(Exit::Usage).error(&format!("{error:#}"), None)),
        };
    }
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let message = format!("signals cannot be listened for: {error}");
            return output.print(&Report::new(Exit::Unavailable).error(&message, None));
        }
    };
    let mut stage = Stage {
        global,
        output,
        signals: &mut signals,
        deadline: Deadline::within(PATIENCE),
    };
    if let Some(limit) = stage.global.timeout {
        stage.deadline = Deadline::within(limit);
    }
    match verb {
        Verb::Tools(tools) => tools::run(stage, tools).await,
        Verb::Call(call) => call::run(stage, call).await,
        Verb::ResourcesList => resources::list(stage).await,
        Verb::ResourcesRead(uri) => resources::read(stage, uri).await,
        Verb::PromptsList => prompts::list(stage).await,
        Verb::PromptsGet(get) => prompts::get(stage, get).await,
        Verb::Status => status::run(stage).await,
        Verb::ConfigShow => config::show(stage).await,
        Verb::ConfigExplain(what) => config::explain(stage, what).await,
        Verb::ConfigSchema => config::schema(stage).await,
        Verb::Mask(mask) => mask::run(stage, mask).await,
        Verb::Completions(shell) => completions::run(stage, shell).await,
        Verb::DemoServer(_) => Exit::Done,
    }
}

/// What every command works with.
struct Stage<'a> {
    global: Global,
    output: Output,
    signals: &'a mut Signals,
    deadline: Deadline,
}

/// How work came to its end.
enum Ending<T> {
    Done(T),
    TimeUp,
    Interrupted,
}

impl Stage<'_> {
    /// Works until done, until the time is up or until a signal. What is not done then is dropped, which cancels it.
    async fn work<T>(&mut self, work: impl Future<Output = T>) -> Ending<T> {
        // The board keeps the time itself and says better what was late; this is for what it does not see.
        let limit = self.deadline.remaining() + Duration::from_millis(500);
        tokio::select! {
            biased;
            () = self.signals.heard() => Ending::Interrupted,
            done = within(limit, work) => match done {
                Some(done) => Ending::Done(done),
                None => Ending::TimeUp,
            },
        }
    }

    /// The same for work on a board, whose starting servers are shown meanwhile.
    async fn waiting<T>(
        &mut self,
        waits: &Waits,
        what: &str,
        board: &Pegboard,
        work: impl Future<Output = T>,
    ) -> Ending<T> {
        let output = self.output.clone();
        self.work(waits.during(what, &output, board, work)).await
    }

    /// Prints a report. A reader that does not read can be left with Ctrl-C.
    async fn print(&mut self, report: Report) -> Exit {
        let output = self.output.clone();
        let printing = tokio::task::spawn_blocking(move || output.print(&report));
        tokio::select! {
            printed = printing => printed.unwrap_or(Exit::Unavailable),
            () = self.signals.heard() => Exit::Interrupted,
        }
    }

    /// Prints a report and ends the board. A second signal ends the wait for that.
    async fn close(mut self, board: &Pegboard, report: Report) -> Exit {
        let exit = self.print(report).await;
        tokio::select! {
            _ = tokio::time::timeout(SHUTDOWN, board.shutdown()) => {}
            () = self.signals.heard() => {}
        }
        exit
    }

    /// Whether the limit that the user set has passed.
    fn is_late(&self) -> bool {
        self.deadline.has_passed()
    }
}

/// The report of a command that has nothing to show. Programs get their document all the same.
fn empty(output: &Output, exit: Exit, document: &impl Serialize) -> Report {
    match output.is_json() {
        true => Report::json(exit, document),
        false => Report::new(exit),
    }
}

/// The report of a command that ended before it had anything to show.
fn interrupted(output: &Output, document: &impl Serialize) -> Report {
    empty(output, Exit::Interrupted, document).error(INTERRUPTED, None)
}

fn time_up(output: &Output, document: &impl Serialize) -> Report {
    empty(output, Exit::Timeout, document).error(TIME_UP, Some(TIMEOUT))
}

const INTERRUPTED: &str = "interrupted";
const TIME_UP: &str = "the time was up";
const TIMEOUT: &str = "`--timeout` sets the limit of the whole command";

/// The end of the work, if it comes within the limit. After a stop of this process the board first reads what arrived meanwhile.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let due = Instant::now() + limit;
    let mut work = Box::pin(work);
    match tokio::time::timeout_at(due, &mut work).await {
        Ok(done) => Some(done),
        Err(_) if due.elapsed() >= STOPPED => tokio::time::timeout(CATCH_UP, work).await.ok(),
        Err(_) => None,
    }
}

/// The same as what became of a question to a server.
fn cancelled() -> Failure {
    Failure::new(Kind::Cancelled, INTERRUPTED)
}

fn late() -> Failure {
    Failure::new(Kind::Timeout, TIME_UP)
}

impl Complaint {
    fn report(&self, report: Report) -> Report {
        report.error(&self.message, self.hint.as_deref())
    }
}
