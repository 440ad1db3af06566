//! [`CollectedMetrics`]: the metrics of the page in the form that OpenTelemetry has for them.

use pegboard::metrics::{Family, FamilyType, Histogram, MetricsSink};
use pegboard_telemetry::{HistogramPoint, Metric, MetricKind, NumberPoint, Points};

/// Metrics in the form of OpenTelemetry. A name has no suffix for its unit or for counters there: an exporter for Prometheus adds it again.
#[derive(Debug, Default)]
pub(super) struct CollectedMetrics(Vec<Metric>);

impl CollectedMetrics {
    pub(super) fn into_metrics(self) -> Vec<Metric> {
        self.0
    }

    fn push(&mut self, family: &Family, points: Points) {
        let name = family.base_name();
        let unit = match family.unit() {
            Some("seconds") => "s",
            Some(_) => "By",
            None => "1",
        };
        let suffix = family.unit().unwrap_or_default();
        let name = name.strip_suffix(suffix).unwrap_or(name).trim_end_matches('_');
        self.0.push(Metric {
            name: name.to_owned().into(),
            description: family.help.into(),
            unit: unit.into(),
            points,
        });
    }
}

impl MetricsSink for CollectedMetrics {
    fn family<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, f64)>) {
        let kind = match family.is {
            FamilyType::Counter => MetricKind::Counter,
            FamilyType::Gauge | FamilyType::Histogram => MetricKind::Gauge,
        };
        let point = |(labels, value): (Vec<&str>, f64)| NumberPoint {
            attributes: attributes(family, &labels),
            value,
        };
        let points = values.into_iter().map(point).collect();
        self.push(family, Points::Numbers(kind, points));
    }

    fn histograms<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, &'v Histogram)>) {
        let values = values.into_iter().filter(|(_, histogram)| histogram.count > 0);
        let point = |(labels, histogram): (Vec<&str>, &Histogram)| {
            let mut below = 0;
            // Those of Prometheus count everything below a bound.
            let counts = histogram.buckets.iter().map(|bucket| {
                let own = bucket.count - below;
                below = bucket.count;
                own
            });
            HistogramPoint {
                attributes: attributes(family, &labels),
                sum: histogram.sum_ms / 1000.0,
                counts: counts.collect(),
                exemplars: Vec::new(),
                bounds: histogram
                    .buckets
                    .iter()
                    .filter_map(|bucket| Some(bucket.le_ms? / 1000.0))
                    .collect(),
            }
        };
        let points = values.map(point).collect();
        self.push(family, Points::Histograms(points));
    }
}

fn attributes(family: &Family, labels: &[&str]) -> Vec<(String, String)> {
    let named = family.labels.iter().zip(labels);
    named
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
