//! `pegboard status`: one row per server.

use pegboard::{BoardStatus, QueueStatus, ServerStatus, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Ending, Stage, empty, interrupted, time_up};
use crate::{
    exit::Exit,
    output::{self, Report, Table, one_line},
    settings::{self, Settings},
};

pub(super) async fn run(mut stage: Stage<'_>) -> Exit {
    let settings = Settings::load(&stage.global);
    let config = match settings.shown() {
        Ok(config) => config,
        Err(complaint) => {
            let report = empty(&stage.output, Exit::Usage, &Document::without_board(&settings));
            return stage.print(complaint.report(report)).await;
        }
    };
    settings.announce(&stage.output);
    let is_hopeless = config.servers.is_empty() && !config.misconfigured.is_empty();
    let board = settings::whole_board(config).open();
    stage.output.waiting("asking the servers");
    let patience = stage.deadline.remaining();
    let report = match stage.work(board.settle(patience)).await {
        Ending::Interrupted => interrupted(&stage.output, &Document::without_board(&settings)),
        Ending::TimeUp => time_up(&stage.output, &Document::without_board(&settings)),
        Ending::Done(()) => {
            let status = board.status();
            let any_ready = status.servers.iter().any(|server| server.state == State::Ready);
            let exit = match stage.is_late() && !any_ready {
                _ if is_hopeless => Exit::Usage,
                true => Exit::Timeout,
                false => Exit::Done,
            };
            let report = match stage.output.is_json() {
                true => Report::json(exit, &Document::of(&status, &settings)),
                false => text(exit, &status),
            };
            match is_hopeless {
                true => report.error(settings::NOTHING, Some("`pegboard config show` lists what is wrong")),
                false => report,
            }
        }
    };
    stage.close(&board, report).await
}

/// The promised document.
#[derive(Serialize)]
struct Document<'a> {
    servers: &'a [ServerStatus],
    queues: &'a [QueueStatus],
    healthy: bool,
    ready: bool,
    warnings: Vec<Value>,
}

impl<'a> Document<'a> {
    /// The board, with the problems of the config among its warnings.
    fn of(status: &'a BoardStatus, settings: &Settings) -> Self {
        let warnings = status.warnings.iter().map(|warning| json!(warning));
        Self {
            servers: &status.servers,
            queues: &status.queues,
            healthy: status.healthy,
            ready: status.ready,
            warnings: warnings.chain(config_warnings(settings)).collect(),
        }
    }

    /// Only what is wrong with the config.
    fn without_board(settings: &Settings) -> Self {
        Self {
            servers: &[],
            queues: &[],
            healthy: false,
            ready: false,
            warnings: config_warnings(settings).collect(),
        }
    }
}

fn config_warnings(settings: &Settings) -> impl Iterator<Item = Value> {
    let now = jiff::Timestamp::now();
    let note = settings.demo_note().map(move |note| {
        json!({
            "id": "config:demo",
            "category": "config",
            "message": note,
            "details": note,
            "server": "demo",
            "created_at": now,
        })
    });
    let problems = settings.loaded.problems.iter().map(move |problem| {
        json!({
            "id": format!("config:{}:{}", problem.file, problem.field),
            "category": "config",
            "message": problem.message,
            "details": problem.to_string(),
            "server": problem.server(),
            "created_at": now,
        })
    });
    note.into_iter().chain(problems)
}

fn text(exit: Exit, status: &BoardStatus) -> Report {
    let mut table = Table::indented(0);
    let heads = [
        "NAME",
        "STATE",
        "TRANSPORT",
        "ERA",
        "VERSION",
        "TOOLS",
        "PID",
        "RESTARTS",
        "LAST ERROR",
    ];
    table.row(heads.map(str::to_owned));
    let mut report = Report::new(exit);
    for server in &status.servers {
        table.row(row(server));
        // What is wrong with the config is told already.
        let error = server
            .last_error
            .as_ref()
            .filter(|_| server.state != State::Misconfigured);
        if let Some(error) = error {
            let message = format!(
                "server `{}` is {}: {}",
                server.name,
                server.state.as_str(),
                error.message
            );
            report = report.error(&message, error.hint.as_deref());
        }
    }
    report.data = table.render(output::width());
    report
}

fn row(server: &ServerStatus) -> [String; 9] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let era = server.era.map(|era| era.as_str().to_owned());
    [
        server.name.to_string(),
        server.state.as_str().to_owned(),
        server.transport.to_owned(),
        or_dash(era),
        or_dash(server.protocol_version.as_deref().map(one_line)),
        server.tools.to_string(),
        or_dash(server.pid.map(|pid| pid.to_string())),
        server.restarts.to_string(),
        or_dash(server.last_error.as_ref().map(|error| one_line(&error.message))),
    ]
}
