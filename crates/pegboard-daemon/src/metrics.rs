//! `GET /metrics`: what the board, the gateway and the process count, for Prometheus.
//!
//! The labels are bounded: names of servers come from the config, those of tools and principals are as many as the config allows, and everything
//! else is from fixed lists. No path or header becomes a label, and no name of a tool that no server has.

mod collected;
mod families;
mod negotiate;
mod operations;
mod process;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap,
    header::{CONTENT_TYPE, VARY},
};
use pegboard::{
    Pegboard,
    metrics::{MetricsPage, MetricsSink, PageFormat, number, write_metrics, write_status},
    status::BoardStatus,
};
use pegboard_gateway::Caller;
use pegboard_telemetry::{Exporter, Metric, Recorder};

use crate::{access, overview::Overview};
use collected::CollectedMetrics;

/// Answers a scrape.
pub(crate) async fn get(
    State(overview): State<Overview>,
    caller: Option<axum::Extension<Caller>>,
    headers: HeaderMap,
) -> Response {
    if let Err(refusal) = access::may_read_all(caller.as_deref()) {
        return refusal.into_response();
    }
    let format = negotiate::choose(&headers);
    let about = [(CONTENT_TYPE, format.media_type()), (VARY, "accept")];
    (about, page(&overview, format)).into_response()
}

/// The page of a daemon: first the metrics of its board, which the library writes.
fn page(overview: &Overview, format: PageFormat) -> String {
    let mut page = MetricsPage::new(format);
    write_all(&mut page, overview);
    // The exporter sends these itself.
    if let Some(recorder) = &overview.recorder {
        operations::write(&mut page, &recorder.durations().read());
    }
    page.into_text()
}

fn write_all(page: &mut impl MetricsSink, overview: &Overview) {
    let status = overview.board.status();
    write_metrics(page, &overview.board.metrics());
    write_status(page, &status);
    write_readiness(page, overview, &status);
    write_gateway(page, overview);
    write_telemetry(page, overview);
    write_reloads(page, overview);
    write_process(page, overview);
}

/// The same metrics for a collector of OpenTelemetry.
pub(crate) fn collect(overview: &Overview) -> Vec<Metric> {
    let mut metrics = CollectedMetrics::default();
    write_all(&mut metrics, overview);
    metrics.into_metrics()
}

/// The metrics of a board alone, for a collector of OpenTelemetry.
pub fn board_metrics(board: &Pegboard) -> Vec<Metric> {
    let mut metrics = CollectedMetrics::default();
    write_metrics(&mut metrics, &board.metrics());
    write_status(&mut metrics, &board.status());
    metrics.into_metrics()
}

fn write_telemetry(page: &mut impl MetricsSink, overview: &Overview) {
    let exporter = overview.recorder.as_ref().and_then(Recorder::exporter);
    let counts = exporter.map(Exporter::counts).unwrap_or_default();
    let exported = counts
        .iter()
        .map(|(signal, counts)| (vec![signal.as_str()], number(counts.exported)));
    page.family(&families::EXPORTED, exported);
    let dropped = counts
        .iter()
        .map(|(signal, counts)| (vec![signal.as_str()], number(counts.dropped)));
    page.family(&families::DROPPED, dropped);
}

fn write_readiness(page: &mut impl MetricsSink, overview: &Overview, status: &BoardStatus) {
    let is_ready = overview.sign_in_waits().is_ready(&overview.board, status);
    page.single(&families::READY, f64::from(is_ready && !overview.is_stopping()));
}

fn write_gateway(page: &mut impl MetricsSink, overview: &Overview) {
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
    if let Some(limits) = counts.limits {
        page.single(&families::HTTP_IN_FLIGHT_LIMIT, number(limits.in_flight as u64));
        page.single(&families::CONNECTIONS_LIMIT, number(limits.connections as u64));
        page.single(&families::SESSIONS_LIMIT, number(limits.sessions as u64));
    }
    page.single(&families::ACCEPTED, number(counts.connections.accepted));
    page.single(&families::UNDELIVERED, number(counts.undelivered));
    page.single(&families::ACCESS_LOG_DROPPED, number(counts.access_log_lost));
    page.single(&families::SESSIONS, number(counts.sessions as u64));
    if let Some(replicas) = counts.replicas {
        page.single(&families::REPLICAS, number(replicas.replicas as u64));
        page.single(&families::REPLICA_FORWARDED, number(replicas.forwarded));
        page.single(&families::REPLICA_RECEIVED, number(replicas.received));
        page.single(&families::REPLICA_LOST, number(replicas.lost));
        page.single(&families::SESSIONS_ADOPTED, number(replicas.adopted));
        page.single(&families::STORE_ANSWERS, number(u64::from(replicas.store_answers)));
        page.single(&families::STORE_FAILURES, number(replicas.store_failures));
    }
}

fn write_reloads(page: &mut impl MetricsSink, overview: &Overview) {
    let last = overview.reloads.last();
    let outcomes = [("applied", last.applied), ("failed", last.failures)];
    page.family(
        &families::RELOADS,
        outcomes.map(|(outcome, count)| (vec![outcome], number(count))),
    );
    page.single(&families::RELOAD_OK, f64::from(last.failed.is_none()));
    page.single(&families::CONFIG_IN_EFFECT, f64::from(last.is_in_effect()));
    page.single(&families::APPLIED_AT, timestamp(last.applied_at));
}

fn write_process(page: &mut impl MetricsSink, overview: &Overview) {
    page.family(&families::BUILD, [(vec![env!("CARGO_PKG_VERSION")], 1.0)]);
    page.single(&families::STARTED_AT, timestamp(overview.started_at));
    for (family, value) in [
        (&families::MEMORY, process::resident_bytes()),
        (&families::FILES, process::open_files()),
        (&families::FILES_LIMIT, process::max_open_files()),
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
        let before = lines(&page(&overview, PageFormat::Prometheus));
        for name in 0..10_000 {
            tools.call(ToolCall::new(format!("tool_{name}"))).await;
        }
        let after = page(&overview, PageFormat::Prometheus);
        assert_eq!(lines(&after), before);
        assert!(
            after.contains("pegboard_unrouted_calls_total{kind=\"unknown_tool\"} 10001\n"),
            "{after}"
        );
    }
}
