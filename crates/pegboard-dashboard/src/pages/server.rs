//! `/ui/servers/{name}`: one server with all of its instances.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use pegboard::{ServerName, metrics::ServerMetrics, pin::PinState, status::ServerStatus};

use super::{recent, server_rows};
use crate::{
    history::quantile_of,
    layout::{self, Page},
    live::{self, Fragment, Wake},
    sparkline::bar,
    text::{ago, bytes, count, count_of, line, millis, segment, shown},
    ui::{TortureScore, Ui},
    visitor::Visitor,
    who::Who,
};

/// How many changes and calls the page lists.
const LISTED: usize = 30;

/// `GET /ui/servers/{name}`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor, Path(name): Path<String>) -> Response {
    ui.note_visit();
    let Some(server) = find(&ui, &visitor, &name) else {
        return not_found();
    };
    let score = read_score(&ui, &server).await;
    let body = html! {
        header.page {
            div {
                p.crumbs { a href="/ui/servers" { "Servers" } }
                h1 { (shown(server.as_str())) }
            }
            p { a href={ "/ui/tools?server=" (segment(server.as_str())) } { "Its tools" } }
        }
        @for (_, fragment) in fragments(&ui, &visitor, &server) { (fragment) }
        (torture(&server, score.as_ref()))
    };
    let page = Page {
        title: server.as_str(),
        section: "/ui/servers",
        live: Some(format!("/ui/live/servers/{}", segment(server.as_str()))),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/servers/{name}`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor, Path(name): Path<String>) -> Response {
    match find(&ui, &visitor, &name) {
        Some(server) => live::stream(ui, visitor, Wake::Calls, move |ui, visitor| {
            fragments(ui, visitor, &server)
        }),
        None => not_found(),
    }
}

/// The server, if the board has or had it and the visitor sees it.
fn find(ui: &Ui, visitor: &Visitor, name: &str) -> Option<ServerName> {
    let name = ServerName::parse(name).ok()?;
    let is_known = ui.api.board().has_server(name.as_str());
    (is_known && ui.api.sees(&visitor.caller, &name)).then_some(name)
}

fn not_found() -> Response {
    let words = "There is no such server, or your token does not see it.";
    layout::problem(StatusCode::NOT_FOUND, "No such server", words, None)
}

fn fragments(ui: &Ui, visitor: &Visitor, server: &ServerName) -> Vec<Fragment> {
    let status = ui.api.status(&visitor.caller);
    let rows: Vec<&ServerStatus> = status.servers.iter().filter(|row| row.name == *server).collect();
    let metrics = ui.api.board().metrics();
    let of = metrics.servers.get(server).cloned().unwrap_or_default();
    let who = visitor.who();
    let changes = recent::seen_changes(ui, visitor, Some(server));
    let mut calls = recent::seen_calls(ui, visitor);
    calls.retain(|call| call.server.as_ref() == Some(server));
    calls.truncate(LISTED);
    vec![
        (
            "instances",
            html! { div #instances { @for row in &rows { (instance(&who, row)) } @if rows.is_empty() { (layout::empty("No instance runs now.")) } } },
        ),
        ("traffic", traffic(&of)),
        ("definitions", definitions(ui, visitor, server)),
        (
            "life",
            html! {
                section #life aria-labelledby="life-title" {
                    h2 #life-title { "Its life" }
                    @if changes.is_empty() { (layout::empty("Its state has not changed since the start.")) } @else { (recent::timeline(&changes[..changes.len().min(LISTED)], false)) }
                }
            },
        ),
        (
            "calls",
            html! {
                section #calls aria-labelledby="calls-title" {
                    h2 #calls-title { "Calls" }
                    @if calls.is_empty() { (recent::nothing(ui, "No call was recorded yet.")) } @else { (recent::table(&calls)) }
                }
            },
        ),
    ]
}

fn instance(who: &Who<'_>, row: &ServerStatus) -> Markup {
    let key = server_rows::key(row);
    html! {
        section.boxed id={ "instance-" (key) } {
            div.line {
                (layout::state(row.state)) span.soft { (ago(row.since)) }
                @if let Some(owner) = server_rows::owner(row) { span { (line(&owner)) } }
                span.push {}
                div.actions { (server_rows::actions(who, row, "instance")) }
            }
            @if let Some(description) = &row.description { p { (line(description)) } }
            @if let Some(error) = &row.last_error {
                div class={ "notice " (if row.is_troubled() { "bad" } else { "rest" }) } {
                    p { b { "Last error" } " " (ago(error.at)) @if let Some(code) = error.code { " · " code { (code.as_str()) } } }
                    p { (shown(&error.message)) }
                    @if let Some(hint) = &error.hint { p.hint { (shown(hint)) } }
                }
                @if let Some(stderr) = &error.stderr {
                    details id={ "stderr-" (key) } open { summary { "End of its stderr" } pre tabindex="0" { (shown(stderr.trim_end())) } }
                }
            }
            (facts(row))
        }
    }
}

fn facts(row: &ServerStatus) -> Markup {
    let info = row.server_info.as_ref();
    let fact = |name: &str, value: Option<String>| {
        html! { @if let Some(value) = value { div { dt { (name) } dd { (line(&value)) } } } }
    };
    let version = row.protocol_version.as_ref();
    let speaks = match (row.era, version) {
        (Some(era), Some(version)) => Some(format!("{} ({version})", era.as_str())),
        (Some(era), None) => Some(era.as_str().to_owned()),
        _ => None,
    };
    html! {
        dl.facts {
            (fact("Transport", Some(row.transport.to_owned())))
            (fact("Protocol", speaks))
            (fact("Describes itself as", info.map(|info| format!("{} {}", info.name, info.version))))
            (fact("Scope", Some(row.scope.to_owned())))
            (fact("Process", row.pid.map(|pid| pid.to_string())))
            (fact("Started in", row.ready_after_ms.map(millis)))
            (fact("Restarts", Some(row.restarts.to_string())))
            (fact("Tools", Some(count_of(row.tools))))
            (fact("Hidden by the config", (row.hidden > 0).then(|| count_of(row.hidden))))
            (fact("Held until accepted", (row.held > 0).then(|| count_of(row.held))))
            (fact("Resources", Some(count_of(row.resources))))
            (fact("Prompts", Some(count_of(row.prompts))))
            (fact("In flight", Some(count_of(row.in_flight))))
            (fact("Queued", Some(count_of(row.queued))))
            (fact("Circuit breaker", Some(row.breaker.replace('_', " "))))
            (fact("Connections", row.pool.as_ref().map(|pool| format!("{} of {} ready, {} busy", pool.ready, pool.size, pool.busy))))
            @if let Some(at) = row.checked_at {
                div { dt { "Checked" } dd { @if row.check_error.is_some() { "failed " } @else { "healthy " } (ago(at)) } }
            }
        }
    }
}

/// What the server did since the start.
fn traffic(of: &ServerMetrics) -> Markup {
    let known = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), millis);
    #[expect(clippy::cast_precision_loss, reason = "a share for people is not exact")]
    let (ok, failed) = (
        (of.calls.total - of.calls.failed.min(of.calls.total)) as f64,
        of.calls.failed as f64,
    );
    html! {
        section #traffic aria-labelledby="traffic-title" {
            h2 #traffic-title { "Since the start" }
            dl.facts {
                div { dt { "Calls" } dd { (count(of.calls.total)) } }
                div { dt { "Failed" } dd { (count(of.calls.failed)) } }
                div { dt { "Latency p50" } dd { (known(quantile_of(&of.calls.latency, 0.5))) } }
                div { dt { "Latency p99" } dd { (known(quantile_of(&of.calls.latency, 0.99))) } }
                div { dt { "Queue p99" } dd { (known(quantile_of(&of.queue_wait, 0.99))) } }
                div { dt { "Retries" } dd { (count(of.retries)) } }
                div { dt { "From the cache" } dd { (count(of.cached)) } }
                div { dt { "Secrets masked" } dd { (count(of.masked)) } }
                div { dt { "Received" } dd { (bytes(usize::try_from(of.bytes_received).unwrap_or(usize::MAX))) } }
                div { dt { "Failed starts" } dd { (count(of.failed_starts)) } }
            }
            @if of.calls.total > 0 {
                (bar("Share of calls that succeeded and that failed", &[("ok", ok), ("failed", failed)], ok + failed))
                p.legend { @for (kind, number) in &of.calls.by_kind { span { (kind.as_str().replace('_', " ")) ": " b { (count(*number)) } } } }
            }
        }
    }
}

/// The definitions of the server that are not as they were pinned, or look like attacks.
fn definitions(ui: &Ui, visitor: &Visitor, server: &ServerName) -> Markup {
    let may_see = super::definition::are_shown_to(visitor);
    let mut changes = ui.api.board().pin_changes();
    changes.retain(|change| {
        may_see && change.server == *server && (change.state != PinState::Unchanged || !change.findings.is_empty())
    });
    html! {
        section #definitions aria-labelledby="definitions-title" {
            h2 #definitions-title { "Pinned definitions" }
            @if !may_see { (layout::empty("They are shown with the scope `admin` and without a view.")) }
            @else if changes.is_empty() { (layout::empty("Every definition that is known is as it was pinned, and none looks like an attack.")) } @else {
                (super::policy::pin_changes(&changes))
            }
        }
    }
}

/// The newest result of `pegboard torture`. It is read when the page is opened, not while it is.
async fn read_score(ui: &Ui, server: &ServerName) -> Option<TortureScore> {
    let read = ui.sources.score.clone()?;
    let server = server.clone();
    tokio::task::spawn_blocking(move || read(&server)).await.ok().flatten()
}

fn torture(server: &ServerName, score: Option<&TortureScore>) -> Markup {
    let command = format!("pegboard torture {server}");
    html! {
        section aria-labelledby="torture" {
            h2 #torture { "Protocol and faults" }
            @match score {
                None => { (layout::empty("It was not tried yet.")) }
                Some(score) => {
                    dl.facts {
                        div { dt { "Grade" } dd { (layout::badge(if matches!(score.grade, 'A' | 'B') { "good" } else { "wait" }, &score.grade.to_string())) } }
                        div { dt { "Passed" } dd { (count_of(score.passed)) " of " (count_of(score.passed + score.failed)) } }
                        div { dt { "Do not apply" } dd { (count_of(score.skipped)) } }
                        div { dt { "Tried" } dd { (ago(score.at)) } }
                    }
                    @if !score.is_of_these_settings { p.hint { "Its settings have changed since." } }
                    @for failure in &score.failures { p { b { (line(&failure.title)) } " " span.soft { (line(&failure.mend)) } } }
                    @if score.failed > score.failures.len() { p.soft { "The first " (score.failures.len()) " of " (count_of(score.failed)) " failed cases." } }
                }
            }
            p.soft { code { (command) } " tries how it keeps to the protocol and stands faults." }
        }
    }
}
