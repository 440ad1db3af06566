//! `/`: what needs attention, and how the calls are.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::HeaderMap;
use maud::{Markup, html};
use pegboard::{State as ServerState, metrics::Metrics, status::ServerStatus};
use pegboard_daemon::{StatusDocument, WarningDocument};
use serde_json::json;

use super::recent;
use crate::{
    history::{Interval, SAMPLES, quantile_of},
    layout::{self, Page},
    live::{self, Fragment, Wake},
    sparkline::sparkline,
    text::{ago, count, count_of, duration, line, millis, segment, shown},
    ui::Ui,
    visitor::{Visitor, takes_html},
    who::Who,
};

/// Over which time the numbers beside the charts are.
const WINDOW: Duration = Duration::from_secs(60);
/// The most warnings, servers and events that the page lists.
const LISTED: usize = 20;
const BUSIEST: usize = 8;
/// The least number of samples that a chart has room for: ten minutes.
const LEAST_SLOTS: usize = 60;

/// `GET /`. Programs get a short description of what is where.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, headers: HeaderMap, visitor: Result<Visitor, Response>) -> Response {
    if !takes_html(&headers) {
        return Json(json!({
            "name": "pegboard", "mcp": "/mcp", "api": "/api/v1/mcp", "openapi": "/openapi.json", "health": "/health",
        }))
        .into_response();
    }
    let visitor = match visitor {
        Ok(visitor) => visitor,
        Err(response) => return response,
    };
    ui.note_visit();
    let body = html! {
        h1.hidden { "Overview" }
        @for (_, fragment) in fragments(&ui, &visitor) { (fragment) }
    };
    let page = Page {
        title: "Overview",
        section: "/",
        live: Some("/ui/live/overview".to_owned()),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/overview`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    live::stream(ui, visitor, Wake::Calls, fragments)
}

fn fragments(ui: &Ui, visitor: &Visitor) -> Vec<Fragment> {
    let status = ui.api.status(&visitor.caller);
    let metrics = ui.api.board().metrics();
    let who = visitor.who();
    vec![
        ("attention", attention(&status, &who)),
        ("numbers", numbers(ui, visitor, &status, &metrics)),
        ("busiest", busiest(&status, &metrics)),
        ("failures", failures(ui, visitor)),
        ("changes", changes(ui, visitor)),
    ]
}

/// What an operator should look at, the worst first.
fn attention(status: &StatusDocument, who: &Who<'_>) -> Markup {
    let mut warnings: Vec<&WarningDocument> = status.warnings.iter().collect();
    warnings.sort_by_key(|warning| warning.category != "mcp_health");
    let rest = warnings.len().saturating_sub(LISTED);
    html! {
        section #attention aria-labelledby="attention-title" {
            h2 #attention-title { "Needs attention" @if !warnings.is_empty() { span.number { (count_of(warnings.len())) } } }
            @if warnings.is_empty() {
                p.notice.good { "Nothing needs attention." }
            }
            ul.cards {
                @for warning in warnings.iter().take(LISTED) { li { (card(warning, status, who)) } }
            }
            @if rest > 0 { p { a href="/ui/servers?show=attention" { (count_of(rest)) " more" } } }
        }
    }
}

/// One condition: what is wrong, and what to do about it.
fn card(warning: &WarningDocument, status: &StatusDocument, who: &Who<'_>) -> Markup {
    let named = |row: &&ServerStatus| Some(&row.name) == warning.server.as_ref();
    let row = status.servers.iter().find(named);
    let of_health = row.filter(|_| warning.category == "mcp_health");
    let error = of_health.and_then(|row| row.last_error.as_ref());
    let details = Some(warning.details.as_str()).filter(|details| *details != warning.message);
    html! {
        div.line {
            @match of_health {
                Some(row) => { (layout::state(row.state)) }
                None => { (layout::badge("wait", &warning.category.replace('_', " "))) }
            }
            @if let Some(server) = &warning.server { a.strong href={ "/ui/servers/" (segment(server.as_str())) } { (shown(server.as_str())) } }
            span.push {}
            span.soft { (ago(warning.created_at)) }
        }
        p { (line(error.map_or(&warning.message, |error| &error.message))) }
        @if let Some(hint) = error.and_then(|error| error.hint.as_deref()).or(details.filter(|_| error.is_none())) { p.hint { (line(hint)) } }
        @if let Some(row) = of_health { div.actions { (super::server_rows::actions(who, row, "attention")) } }
    }
}

fn numbers(ui: &Ui, visitor: &Visitor, status: &StatusDocument, metrics: &Metrics) -> Markup {
    let ready = status
        .servers
        .iter()
        .filter(|row| row.state == ServerState::Ready)
        .count();
    let in_flight: usize = status.servers.iter().map(|row| row.in_flight).sum();
    let queued: usize = status.servers.iter().map(|row| row.queued).sum();
    let gateway = ui.api.gateway_metrics();
    let up = pegboard::Timestamp::now()
        .checked_duration_since(ui.api.started_at())
        .unwrap_or_default();
    html! {
        section #numbers aria-label="Numbers" {
            @if visitor.sees_all() {
                @let now = ui.history.since(WINDOW, metrics).unwrap_or_default();
                (charts(&ui.history.intervals(), &now))
            }
            dl.facts {
                div { dt { "Servers ready" } dd { (count_of(ready)) " of " (count_of(status.servers.len())) } }
                div { dt { "Calls in flight" } dd { (count_of(in_flight)) @if queued > 0 { " + " (count_of(queued)) " queued" } } }
                @if visitor.sees_all() {
                    div { dt { "Calls since the start" } dd { (count(metrics.total.calls.total)) } }
                    div { dt { "Client sessions" } dd { (count_of(gateway.sessions)) } }
                    div { dt { "Connections" } dd { (count_of(gateway.connections.open)) } }
                    div { dt { "Secrets masked" } dd { (count(metrics.total.masked)) } }
                }
                div { dt { "Running for" } dd { (duration(up)) } }
            }
        }
    }
}

/// The four charts of the last hour, with the numbers of the last minute.
fn charts(intervals: &[Interval], now: &Interval) -> Markup {
    let rate: Vec<_> = intervals.iter().map(|one| Some(one.calls_per_second())).collect();
    let errors: Vec<_> = intervals
        .iter()
        .map(|one| Some(one.failed_share().unwrap_or_default() * 100.0))
        .collect();
    let p50: Vec<_> = intervals.iter().map(|one| one.p50_ms).collect();
    let p99: Vec<_> = intervals.iter().map(|one| one.p99_ms).collect();
    let known = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), millis);
    let share = now
        .failed_share()
        .map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    // A process that runs for some minutes has charts that people can read.
    let slots = intervals.len().clamp(LEAST_SLOTS, SAMPLES);
    let tile = |title: &str, value: String, values: &[Option<f64>], unit: &str| {
        let highest = values.iter().flatten().copied().fold(0.0, f64::max);
        let label = format!("{title} in the last hour, at most {highest:.1}{unit}");
        html! {
            div.tile {
                span.title { (title) }
                span.value { (value) }
                (sparkline(&label, values, slots))
            }
        }
    };
    html! {
        div.tiles {
            (tile("Calls per second", format!("{:.1}", now.calls_per_second()), &rate, ""))
            (tile("Failed calls", share, &errors, " %"))
            (tile("Latency p50", known(now.p50_ms), &p50, " ms"))
            (tile("Latency p99", known(now.p99_ms), &p99, " ms"))
        }
        p.soft.note { "Numbers of the last minute; charts since the start of this process, at most of an hour." }
    }
}

fn busiest(status: &StatusDocument, metrics: &Metrics) -> Markup {
    let mut rows: Vec<(&ServerStatus, u64)> = Vec::new();
    for row in &status.servers {
        if rows.iter().all(|(known, _)| known.name != row.name) {
            let calls = metrics.servers.get(&row.name).map_or(0, |server| server.calls.total);
            rows.push((row, calls));
        }
    }
    rows.retain(|(_, calls)| *calls > 0);
    rows.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    rows.truncate(BUSIEST);
    html! {
        section #busiest aria-labelledby="busiest-title" {
            h2 #busiest-title { "Busiest servers" }
            @if rows.is_empty() { (layout::empty("No tool was called yet.")) } @else {
                div.scroll tabindex="0" role="group" aria-label="Busiest servers" { table {
                    thead { tr { th { "Server" } th.n { "Calls" } th.n { "Failed" } th.n { "p50" } th.n { "p99" } th.n { "In flight" } } }
                    tbody { @for (row, _) in rows {
                        @let of = &metrics.servers[&row.name];
                        tr {
                            td { a href={ "/ui/servers/" (segment(row.name.as_str())) } { (shown(row.name.as_str())) } }
                            td.n { (count(of.calls.total)) }
                            td.n { (count(of.calls.failed)) }
                            td.n { (quantile_of(&of.calls.latency, 0.5).map_or_else(|| "–".to_owned(), millis)) }
                            td.n { (quantile_of(&of.calls.latency, 0.99).map_or_else(|| "–".to_owned(), millis)) }
                            td.n { (count(of.in_flight)) }
                        }
                    } }
                } }
            }
        }
    }
}

fn failures(ui: &Ui, visitor: &Visitor) -> Markup {
    let calls = recent::seen_calls(ui, visitor);
    let failed: Vec<_> = calls.into_iter().filter(|call| call.is_error).take(BUSIEST).collect();
    html! {
        section #failures aria-labelledby="failures-title" {
            h2 #failures-title { "Calls that failed" }
            @if failed.is_empty() { (recent::nothing(ui, "No call has failed since calls are recorded.")) } @else { (recent::table(&failed)) }
        }
    }
}

fn changes(ui: &Ui, visitor: &Visitor) -> Markup {
    let changes = recent::seen_changes(ui, visitor, None);
    html! {
        section #changes aria-labelledby="changes-title" {
            h2 #changes-title { "What has changed" }
            @if changes.is_empty() { (layout::empty("No server has changed its state yet.")) } @else { (recent::timeline(&changes[..changes.len().min(12)], true)) }
        }
    }
}
