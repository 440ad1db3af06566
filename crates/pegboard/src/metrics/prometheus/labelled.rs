//! The metrics by tool, by principal and by view.

use super::{families, number, page::MetricsSink};
use crate::metrics::snapshot::{CallSums, Metrics};

/// Writes what is counted by names within bounds.
pub(super) fn write(page: &mut impl MetricsSink, metrics: &Metrics) {
    let servers = metrics.servers.iter();
    let tools = servers.flat_map(|(server, counts)| {
        let tools = counts.tools.iter();
        tools.map(|(tool, sums)| (vec![server.as_str(), tool.as_str()], sums))
    });
    page.family(&families::TOOL_CALLS, tools.clone().flat_map(by_kind));
    page.family(&families::TOOL_TIME, tools.map(time));
    let principals = metrics.principals.iter();
    let principals = principals.map(|(principal, sums)| (vec![principal.as_str()], sums));
    page.family(&families::PRINCIPAL_CALLS, principals.clone().flat_map(by_kind));
    page.family(&families::PRINCIPAL_TIME, principals.map(time));
    let views = metrics.views.iter();
    let kinds = views.clone().flat_map(|(view, counts)| {
        let kinds = counts.calls.by_kind.iter();
        kinds.map(|(kind, count)| (vec![view.as_str(), kind.as_str()], number(*count)))
    });
    page.family(&families::VIEW_CALLS, kinds);
    let latencies = views
        .clone()
        .map(|(view, counts)| (vec![view.as_str()], &counts.calls.latency));
    page.histograms(&families::VIEW_DURATION, latencies);
    let in_flight = views.map(|(view, counts)| (vec![view.as_str()], number(counts.in_flight)));
    page.family(&families::VIEW_IN_FLIGHT, in_flight);
}

/// A sample for each kind of outcome.
fn by_kind<'m>((labels, sums): (Vec<&'m str>, &'m CallSums)) -> impl Iterator<Item = (Vec<&'m str>, f64)> {
    let kinds = sums.by_kind.iter();
    kinds.map(move |(kind, count)| ([&labels[..], &[kind.as_str()]].concat(), number(*count)))
}

fn time<'m>((labels, sums): (Vec<&'m str>, &'m CallSums)) -> (Vec<&'m str>, f64) {
    (labels, sums.sum_ms / 1000.0)
}
