//! The durations of requests on the page: the histograms of OpenTelemetry's conventions for MCP, under the names that a Prometheus exporter gives them.

use std::collections::BTreeMap;

use pegboard::metrics::{Family, MetricsPage, PageBucket, PageHistogram};
use pegboard_telemetry::{HistogramPoint, Metric, Points};

use super::families;

/// The histograms, by the names of the conventions.
const HISTOGRAMS: [(&str, &Family); 2] = [
    ("mcp.server.operation.duration", &families::SERVER_OPERATIONS),
    ("mcp.client.operation.duration", &families::CLIENT_OPERATIONS),
];

/// Writes the durations. Series that differ only in what has no label, such as the name of a tool, are added together.
pub(super) fn write(page: &mut MetricsPage, metrics: &[Metric]) {
    for (name, family) in HISTOGRAMS {
        let metric = metrics.iter().find(|metric| metric.name == name);
        let Some(Points::Histograms(points)) = metric.map(|metric| &metric.points) else {
            continue;
        };
        let mut series: BTreeMap<Vec<&str>, PageHistogram> = BTreeMap::new();
        for point in points {
            add(series.entry(labels(family, point)).or_default(), point);
        }
        page.exemplified(family, series);
    }
}

/// The values of the family's labels. Those of a point that has no such attribute are empty.
fn labels<'p>(family: &Family, point: &'p HistogramPoint) -> Vec<&'p str> {
    let value = |label: &&str| {
        let mut attributes = point.attributes.iter();
        let found = attributes.find(|(name, _)| is_label(name, label));
        found.map_or("", |(_, value)| value.as_str())
    };
    family.labels.iter().map(value).collect()
}

/// Whether this is the label of an attribute: the same with underscores for dots.
fn is_label(attribute: &str, label: &str) -> bool {
    attribute.len() == label.len()
        && attribute
            .bytes()
            .zip(label.bytes())
            .all(|(a, b)| a == b || (a, b) == (b'.', b'_'))
}

/// Adds the values of a point.
fn add(sum: &mut PageHistogram, point: &HistogramPoint) {
    if sum.buckets.is_empty() {
        let bounds = point.bounds.iter().copied().map(Some).chain([None]);
        let bucket = |le| PageBucket {
            le,
            count: 0,
            exemplar: None,
        };
        sum.buckets = bounds.map(bucket).collect();
    }
    sum.sum += point.sum;
    let mut below = 0;
    for (at, (bucket, count)) in sum.buckets.iter_mut().zip(&point.counts).enumerate() {
        below += count;
        bucket.count += below;
        let exemplar = point.exemplars.get(at).copied().flatten();
        let newest = [bucket.exemplar, exemplar].into_iter().flatten();
        bucket.exemplar = newest.max_by_key(|exemplar| exemplar.at);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pegboard::telemetry::{Attribute, Telemetry as _, TraceContext, Value};
    use pegboard_telemetry::Recorder;

    use super::*;

    #[test]
    fn tools_are_added_together_and_servers_are_not() {
        let recorder = Recorder::new(None);
        let span = TraceContext::root();
        for (server, tool, millis) in [("a", "x", 15), ("a", "y", 30), ("b", "x", 400_000)] {
            let attributes = || -> Vec<Attribute<'static>> {
                vec![
                    ("mcp.method.name", "tools/call".into()),
                    ("gen_ai.tool.name", Value::from(tool)),
                    ("pegboard.server", Value::from(server)),
                ]
            };
            let took = Duration::from_millis(millis);
            let span = (server == "a").then_some(&span);
            recorder.record(HISTOGRAMS[1].0, &[server, tool], &attributes, took, span);
        }
        let mut page = MetricsPage::default();
        write(&mut page, &recorder.durations().read());
        let page = page.into_text();
        let name = "mcp_client_operation_duration_seconds";
        for line in [
            "_bucket{pegboard_server=\"a\",mcp_method_name=\"tools/call\",le=\"0.01\"} 0",
            "_bucket{pegboard_server=\"a\",mcp_method_name=\"tools/call\",le=\"0.02\"} 1",
            "_bucket{pegboard_server=\"a\",mcp_method_name=\"tools/call\",le=\"0.05\"} 2",
            "_count{pegboard_server=\"a\",mcp_method_name=\"tools/call\"} 2",
            "_bucket{pegboard_server=\"b\",mcp_method_name=\"tools/call\",le=\"300.0\"} 0",
            "_bucket{pegboard_server=\"b\",mcp_method_name=\"tools/call\",le=\"+Inf\"} 1",
        ] {
            let line = format!("{name}{line}");
            assert!(page.lines().any(|written| written == line), "{line}: {page}");
        }
        assert_eq!(
            page.lines().filter(|line| line.contains("_count{")).count(),
            2,
            "{page}"
        );
    }
}
