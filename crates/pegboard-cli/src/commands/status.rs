//! `pegboard status`: one row per server.

use pegboard::{BoardStatus, ServerStatus, State};
use serde_json::{Value, json};

use super::{Ending, Stage, interrupted, time_up};
use crate::{
    exit::Exit,
    output::{self, Report, Table, one_line},
    settings::{self, Settings},
};

pub(super) async fn run(mut stage: Stage<'_>) -> Exit {
    let settings = stage.settings();
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => {
            let report = match stage.output.is_json() {
                true => Report::json(Exit::Usage, &empty(&settings)),
                false => Report::new(Exit::Usage),
            };
            return stage.print(complaint.report(report)).await;
        }
    };
    let board = settings::board(config).open();
    stage.output.waiting("asking the servers");
    let patience = stage.deadline.remaining();
    let report = match stage.work(board.settle(patience)).await {
        Ending::Interrupted => interrupted(),
        Ending::TimeUp => time_up(),
        Ending::Done(()) => {
            let status = board.status();
            let any_ready = status.servers.iter().any(|server| server.state == State::Ready);
            let exit = match stage.is_late() && !any_ready {
                true => Exit::Timeout,
                false => Exit::Done,
            };
            match stage.output.is_json() {
                true => Report::json(exit, &document(&status, &settings)),
                false => text(exit, &status),
            }
        }
    };
    stage.close(&board, report).await
}

/// The promised document, with the problems of the config among its warnings.
fn document(status: &BoardStatus, settings: &Settings) -> Value {
    let mut document = json!(status);
    if let Some(warnings) = document["warnings"].as_array_mut() {
        warnings.extend(config_warnings(settings));
    }
    document
}

fn empty(settings: &Settings) -> Value {
    let warnings: Vec<Value> = config_warnings(settings).collect();
    json!({"servers": [], "healthy": false, "ready": false, "warnings": warnings})
}

fn config_warnings(settings: &Settings) -> impl Iterator<Item = Value> {
    let now = jiff::Timestamp::now();
    settings.loaded.problems.iter().map(move |problem| {
        json!({
            "id": format!("config:{}:{}", problem.file, problem.field),
            "category": "config",
            "message": problem.message,
            "details": problem.to_string(),
            "server": settings::server_of(problem),
            "created_at": now,
        })
    })
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
        if let Some(error) = &server.last_error {
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
    let era = server.era.map(|era| match era {
        pegboard::Era::Modern => "modern".to_owned(),
        pegboard::Era::Legacy => "legacy".to_owned(),
    });
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
