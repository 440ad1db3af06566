//! `GET /metrics`: what the board, the gateway and the process count, for Prometheus.
//!
//! The labels are bounded: names of servers come from the config, everything else from fixed lists. No name of a tool, path or header
//! becomes a label.

mod families;
mod process;
mod text;

use std::collections::BTreeMap;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::CONTENT_TYPE;
use pegboard::metrics::{CallMetrics, Histogram, Metrics, ServerMetrics};
use pegboard_gateway::Caller;

use crate::{access, health, overview::Overview};
use families::Family;
use text::{MEDIA_TYPE, MetricsPage, number};

/// Answers a scrape.
pub(crate) async fn get(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    if let Err(refusal) = access::may_read_all(caller.as_deref()) {
        return refusal.into_response();
    }
    ([(CONTENT_TYPE, MEDIA_TYPE)], page(&overview)).into_response()
}

/// The page of a daemon.
fn page(overview: &Overview) -> String {
    let mut page = MetricsPage::default();
    let metrics = overview.board.metrics();
    write_calls(&mut page, &metrics);
    write_servers(&mut page, &metrics, overview);
    write_gateway(&mut page, overview);
    write_reloads(&mut page, overview);
    write_process(&mut page, overview);
    page.into_text()
}

fn write_calls(page: &mut MetricsPage, metrics: &Metrics) {
    let by_kind = metrics.servers.iter().flat_map(|(server, counts)| {
        let kinds = counts.calls.by_kind.iter();
        kinds.map(|(kind, count)| (vec![server.as_str(), kind.as_str()], number(*count)))
    });
    page.family(&families::CALLS, by_kind);
    histograms(page, &families::CALL_DURATION, metrics, |server| &server.calls.latency);
    histograms(page, &families::QUEUE_WAIT, metrics, |server| &server.queue_wait);
    for (family, read) in PER_SERVER {
        let values = metrics.servers.iter();
        page.family(
            family,
            values.map(|(server, counts)| (vec![server.as_str()], number(read(counts)))),
        );
    }
    for (family, counts) in [
        (&families::UNROUTED, &metrics.unrouted),
        (&families::BUILT_IN, &metrics.own_tools),
    ] {
        page.family(family, kinds(counts));
    }
    page.single(&families::VIEWS, number(metrics.views_open));
    page.single(&families::EVENTS_LOST, number(metrics.events_lost));
    page.single(&families::BUFFERED, number(metrics.buffered_bytes));
}

/// Reads one counter of a server.
type ReadCount = fn(&ServerMetrics) -> u64;

/// The counters that every server has.
const PER_SERVER: &[(&Family, ReadCount)] = &[
    (&families::IN_FLIGHT, |server| server.in_flight),
    (&families::ATTEMPTS, |server| server.attempts),
    (&families::RETRIES, |server| server.retries),
    (&families::RECEIVED, |server| server.bytes_received),
    (&families::MASKED, |server| server.masked),
    (&families::TRUNCATED, |server| server.truncated),
    (&families::CACHED, |server| server.cached),
    (&families::FAILED_STARTS, |server| server.failed_starts),
    (&families::RESTARTS, |server| server.restarts),
    (&families::FAILED_PROBES, |server| server.failed_probes),
];

fn kinds(counts: &CallMetrics) -> impl Iterator<Item = (Vec<&str>, f64)> {
    let kinds = counts.by_kind.iter();
    kinds.map(|(kind, count)| (vec![kind.as_str()], number(*count)))
}

fn histograms<'m>(
    page: &mut MetricsPage,
    family: &Family,
    metrics: &'m Metrics,
    read: impl Fn(&'m ServerMetrics) -> &'m Histogram,
) {
    let servers = metrics.servers.iter();
    page.histograms(
        family,
        servers.map(|(server, counts)| (vec![server.as_str()], read(counts))),
    );
}

fn write_servers(page: &mut MetricsPage, metrics: &Metrics, overview: &Overview) {
    histograms(page, &families::STARTS, metrics, |server| &server.ready_after);
    let status = overview.board.status();
    // A server that each view or principal has for itself has several rows.
    let mut rows: BTreeMap<&str, (bool, usize, bool)> = BTreeMap::new();
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for server in &status.servers {
        let (is_ready, queued, is_troubled) = rows.entry(server.name.as_str()).or_default();
        *is_ready |= server.state == pegboard::status::State::Ready;
        *queued += server.queued;
        *is_troubled |= health::is_troubled(server) && !server.draining;
        *states.entry(server.state.as_str()).or_default() += 1;
    }
    let ready = rows.iter().map(|(name, (is_ready, ..))| (vec![*name], flag(*is_ready)));
    page.family(&families::SERVER_READY, ready);
    let queued = rows
        .iter()
        .map(|(name, (_, queued, _))| (vec![*name], number(*queued as u64)));
    page.family(&families::QUEUED, queued);
    let troubled = rows.iter();
    let troubled = troubled.map(|(name, (.., is_troubled))| (vec![*name], flag(*is_troubled)));
    page.family(&families::SERVER_TROUBLED, troubled);
    let states = states.iter().map(|(state, count)| (vec![*state], number(*count)));
    page.family(&families::SERVER_STATES, states);
    let is_ready = overview.sign_in_waits().is_ready(&overview.board, &status);
    page.single(&families::READY, flag(is_ready && !overview.is_stopping()));
    for (family, category) in [(&families::AUDIT_OK, "audit"), (&families::JOURNAL_OK, "journal")] {
        let is_ok = status.warnings.iter().all(|warning| warning.category != category);
        page.single(family, flag(is_ok));
    }
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
    page.single(&families::RELOAD_OK, flag(last.failed.is_none()));
    page.single(
        &families::CONFIG_IN_EFFECT,
        flag(last.failed.is_none() && last.notes.is_empty()),
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

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn timestamp(at: jiff::Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
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
