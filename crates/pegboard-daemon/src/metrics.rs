//! `GET /metrics`: what the board, the gateway and the process count, for Prometheus.
//!
//! The labels are bounded: names of servers come from the config, everything else from fixed lists. No name of a tool, path or header
//! becomes a label.

mod families;
mod process;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::CONTENT_TYPE;
use pegboard::{
    metrics::{MetricsPage, number, write_metrics, write_status},
    status::BoardStatus,
};
use pegboard_gateway::Caller;

use crate::{access, overview::Overview};

/// Answers a scrape.
pub(crate) async fn get(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    if let Err(refusal) = access::may_read_all(caller.as_deref()) {
        return refusal.into_response();
    }
    ([(CONTENT_TYPE, MetricsPage::MEDIA_TYPE)], page(&overview)).into_response()
}

/// The page of a daemon: first the metrics of its board, which the library writes.
fn page(overview: &Overview) -> String {
    let mut page = MetricsPage::default();
    let status = overview.board.status();
    write_metrics(&mut page, &overview.board.metrics());
    write_status(&mut page, &status);
    write_readiness(&mut page, overview, &status);
    write_gateway(&mut page, overview);
    write_reloads(&mut page, overview);
    write_process(&mut page, overview);
    page.into_text()
}

fn write_readiness(page: &mut MetricsPage, overview: &Overview, status: &BoardStatus) {
    let is_ready = overview.sign_in_waits().is_ready(&overview.board, status);
    page.single(&families::READY, f64::from(is_ready && !overview.is_stopping()));
}

fn write_gateway(page: &mut MetricsPage, overview: &Overview) {
    let Some(monitor) = &overview.monitor else { return };
    let counts = monitor.read();
    let requests = counts.requests.iter();
    page.family(
        &families::REQUESTS,
        requests.map(|(path, class, count)| (vec![*path, *class], number(*count))),
    );
    let refused = counts.refused.iter();
    page.family(
        &families::REFUSED,
        refused.map(|(reason, count)| (vec![*reason], number(*count))),
    );
    page.single(&families::HTTP_IN_FLIGHT, number(counts.in_flight as u64));
    page.single(&families::CONNECTIONS, number(counts.connections.open as u64));
    page.single(&families::ACCEPTED, number(counts.connections.accepted));
    page.single(&families::UNDELIVERED, number(counts.undelivered));
    page.single(&families::SESSIONS, number(counts.sessions as u64));
}

fn write_reloads(page: &mut MetricsPage, overview: &Overview) {
    let last = overview.reloads.last();
    let outcomes = [("applied", last.applied), ("failed", last.failures)];
    page.family(
        &families::RELOADS,
        outcomes.map(|(outcome, count)| (vec![outcome], number(count))),
    );
    page.single(&families::RELOAD_OK, f64::from(last.failed.is_none()));
    page.single(
        &families::CONFIG_IN_EFFECT,
        f64::from(last.failed.is_none() && last.notes.is_empty()),
    );
    page.single(&families::APPLIED_AT, timestamp(last.applied_at));
}

fn write_process(page: &mut MetricsPage, overview: &Overview) {
    page.family(&families::BUILD, [(vec![env!("CARGO_PKG_VERSION")], 1.0)]);
    page.single(&families::STARTED_AT, timestamp(overview.started_at));
    for (family, value) in [
        (&families::MEMORY, process::resident_bytes()),
        (&families::FILES, process::open_files()),
    ] {
        if let Some(value) = value {
            page.single(family, number(value));
        }
    }
}

fn timestamp(at: pegboard::Timestamp) -> f64 {
    at.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use pegboard::{Config, Pegboard, ToolCall};

    use super::*;
    use crate::reloads::Reloads;

    /// A model can write any name, and each call counts.
    #[tokio::test]
    async fn ten_thousand_names_of_tools_grow_no_labels() {
        let board = Pegboard::open(Config::default());
        let tools = board.toolset();
        let overview = Overview::new(board.clone(), Reloads::new().0);
        tools.call(ToolCall::new("first")).await;
        let lines = |page: &str| page.lines().count();
        let before = lines(&page(&overview));
        for name in 0..10_000 {
            tools.call(ToolCall::new(format!("tool_{name}"))).await;
        }
        let after = page(&overview);
        assert_eq!(lines(&after), before);
        assert!(
            after.contains("pegboard_unrouted_calls_total{kind=\"unknown_tool\"} 10001\n"),
            "{after}"
        );
    }
}
