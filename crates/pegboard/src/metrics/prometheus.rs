//! Writes snapshots of a board in the text format of Prometheus.
//!
//! The labels are bounded: names of servers come from the config, those of tools, principals and views are as many as the program allows, and
//! everything else is from fixed lists. A name that no server has never becomes a label.

mod families;
mod family;
mod labelled;
mod load;
mod page;

pub use families::BOARD_FAMILIES;
pub use family::{Family, FamilyType};
pub use page::{MetricsPage, MetricsSink, PageBucket, PageFormat, PageHistogram, number};

use std::collections::BTreeMap;

use super::{
    histogram::Histogram,
    snapshot::{CallMetrics, Metrics, ServerMetrics},
};
use crate::status::{BoardStatus, State};

impl Metrics {
    /// Returns the metrics in the [text format of Prometheus], to be added to the `/metrics` page of a program. The media type of such a page is
    /// `text/plain; version=0.0.4; charset=utf-8`.
    ///
    /// Every name begins with `pegboard_`; `docs/reference/metrics.md` lists them. [`BoardStatus::to_prometheus`] has the states of the servers. A page
    /// can have the metrics of one board only, because those of two boards have the same names.
    ///
    /// ```
    /// # use pegboard::{Config, Pegboard};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let board = Pegboard::open(Config::default());
    /// let mut page = String::from("# TYPE app_users gauge\napp_users 3\n");
    /// page.push_str(&board.metrics().to_prometheus());
    /// page.push_str(&board.status().to_prometheus());
    /// assert!(page.contains("# TYPE pegboard_views_open gauge\npegboard_views_open 0\n"));
    /// # }
    /// ```
    ///
    /// [text format of Prometheus]: https://prometheus.io/docs/instrumenting/exposition_formats/
    pub fn to_prometheus(&self) -> String {
        let mut page = MetricsPage::default();
        write_metrics(&mut page, self);
        page.into_text()
    }
}

impl BoardStatus {
    /// Returns the states of the servers and of the logs in the text format of Prometheus. See
    /// [`Metrics::to_prometheus`](crate::metrics::Metrics::to_prometheus).
    pub fn to_prometheus(&self) -> String {
        let mut page = MetricsPage::default();
        write_status(&mut page, self);
        page.into_text()
    }
}

/// Writes the counters and histograms of a board.
pub fn write_metrics(page: &mut impl MetricsSink, metrics: &Metrics) {
    let by_kind = metrics.servers.iter().flat_map(|(server, counts)| {
        let kinds = counts.calls.by_kind.iter();
        kinds.map(|(kind, count)| (vec![server.as_str(), kind.as_str()], number(*count)))
    });
    page.family(&families::CALLS, by_kind);
    write_histograms(page, &families::CALL_DURATION, metrics, |server| &server.calls.latency);
    write_histograms(page, &families::QUEUE_WAIT, metrics, |server| &server.queue_wait);
    write_histograms(page, &families::STARTS, metrics, |server| &server.ready_after);
    for (family, read) in PER_SERVER {
        let values = metrics.servers.iter();
        page.family(
            family,
            values.map(|(server, counts)| (vec![server.as_str()], number(read(counts)))),
        );
    }
    labelled::write(page, metrics);
    for (family, counts) in [
        (&families::UNROUTED, &metrics.unrouted),
        (&families::BUILT_IN, &metrics.own_tools),
    ] {
        page.family(family, kinds(counts));
    }
    load::write(page, &metrics.load);
    page.single(&families::VIEWS, number(metrics.views_open));
    page.single(&families::EVENTS_LOST, number(metrics.events_lost));
    page.single(&families::BUFFERED, number(metrics.buffered_bytes));
    page.single(&families::BUFFERED_LIMIT, number(metrics.load.buffered_limit));
    let audit = metrics.audit.unwrap_or_default();
    page.single(&families::AUDIT_REQUIRED, f64::from(audit.is_required));
    page.single(&families::AUDIT_RECORDS, number(audit.written));
    page.single(&families::AUDIT_LOST, number(audit.lost));
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

fn write_histograms<'m>(
    page: &mut impl MetricsSink,
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

/// What the status rows of one server say together. A server that each view or principal has for itself has several rows.
#[derive(Debug, Default)]
struct ServerSummary {
    is_ready: bool,
    is_troubled: bool,
    queued: usize,
}

/// Writes the states of the servers and of the logs.
pub fn write_status(page: &mut impl MetricsSink, status: &BoardStatus) {
    let mut servers: BTreeMap<&str, ServerSummary> = BTreeMap::new();
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &status.servers {
        let server = servers.entry(row.name.as_str()).or_default();
        server.is_ready |= row.state == State::Ready;
        server.is_troubled |= row.is_troubled() && !row.draining;
        server.queued += row.queued;
        *states.entry(row.state.as_str()).or_default() += 1;
    }
    write_summaries(page, &families::SERVER_READY, &servers, |server| {
        f64::from(server.is_ready)
    });
    let states = states.iter().map(|(state, count)| (vec![*state], number(*count)));
    page.family(&families::SERVER_STATES, states);
    write_summaries(page, &families::SERVER_TROUBLED, &servers, |server| {
        f64::from(server.is_troubled)
    });
    write_summaries(page, &families::QUEUED, &servers, |server| number(server.queued as u64));
    load::write_queues(page, &status.queues);
    let mut warnings: BTreeMap<&str, u64> = BTreeMap::new();
    for warning in &status.warnings {
        *warnings.entry(warning.category).or_default() += 1;
    }
    let warnings = warnings
        .iter()
        .map(|(category, count)| (vec![*category], number(*count)));
    page.family(&families::WARNINGS, warnings);
    for (family, category) in [(&families::AUDIT_OK, "audit"), (&families::JOURNAL_OK, "journal")] {
        let is_ok = status.warnings.iter().all(|warning| warning.category != category);
        page.single(family, f64::from(is_ok));
    }
}

fn write_summaries(
    page: &mut impl MetricsSink,
    family: &Family,
    servers: &BTreeMap<&str, ServerSummary>,
    read: impl Fn(&ServerSummary) -> f64,
) {
    page.family(family, servers.iter().map(|(name, server)| (vec![*name], read(server))));
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;
    use crate::metrics::BoardCounters;
    use pegboard_base::name::ServerName;
    use pegboard_tools::outcome::Kind;

    #[test]
    fn the_counts_of_a_server_have_its_name_as_a_label() {
        let counters = BoardCounters::default();
        let server = counters.get_or_insert(&ServerName::parse("fx").unwrap());
        server.begin();
        server.end(Kind::Timeout, Duration::from_millis(3));
        server.begin();
        let page = counters.read(7, 0).to_prometheus();
        for line in [
            "# TYPE pegboard_calls_total counter",
            "pegboard_calls_total{server=\"fx\",kind=\"timeout\"} 1",
            "pegboard_call_duration_seconds_bucket{server=\"fx\",le=\"0.002048\"} 0",
            "pegboard_call_duration_seconds_bucket{server=\"fx\",le=\"0.004096\"} 1",
            "pegboard_call_duration_seconds_bucket{server=\"fx\",le=\"+Inf\"} 1",
            "pegboard_call_duration_seconds_sum{server=\"fx\"} 0.003",
            "pegboard_calls_in_flight{server=\"fx\"} 1",
            "pegboard_events_lost_total 7",
        ] {
            assert!(page.lines().any(|written| written == line), "{line}: {page}");
        }
        assert!(
            !page.contains("pegboard_call_queue_seconds"),
            "nothing was queued: {page}"
        );
    }

    #[test]
    fn every_metric_of_a_page_is_there_once_and_is_declared() {
        let page = BoardCounters::default().read(0, 0).to_prometheus();
        let written = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let declared: BTreeSet<String> = BOARD_FAMILIES
            .iter()
            .map(|family| format!("{} {}", family.name, family.is.as_str()))
            .collect();
        let mut seen = BTreeSet::new();
        for line in written {
            assert!(declared.contains(line), "{line}");
            assert!(seen.insert(line), "twice: {line}");
        }
        assert!(!seen.is_empty());
    }
}
