//! [`Durations`]: histograms of durations, told apart by their attributes.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use pegboard_base::{
    sync::Mutex,
    telemetry::{Attribute, Exemplar, TraceContext, Value},
    timestamp::Timestamp,
};

use crate::metric::{HistogramPoint, Metric, Points};

/// The bounds of the buckets in seconds, as the conventions for MCP want them.
const BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// The most series of a histogram; the durations of further ones are added to one series without attributes of their own. As OpenTelemetry's SDKs have it.
const MAX_SERIES: usize = 2000;
/// The attribute of that series.
const OVERFLOW: &str = "otel.metric.overflow";

/// Histograms of durations, for a collector and for a page of metrics.
#[derive(Debug, Default)]
pub struct Durations {
    hasher: RandomState,
    all: Mutex<AllSeries>,
}

#[derive(Debug, Default)]
struct AllSeries {
    /// By the hash of the name and of what tells the series apart, so that a known one is found without a copy of that.
    by_key: BTreeMap<u64, Series>,
    /// How many series each histogram has.
    counts: Vec<(&'static str, usize)>,
}

#[derive(Debug)]
struct Series {
    name: &'static str,
    attributes: Vec<(String, String)>,
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
    /// The newest recorded operation of each bucket; allocated with the first one.
    exemplars: Option<Box<[Option<Exemplar>; BOUNDS.len() + 1]>>,
}

impl Durations {
    /// Adds a duration to a series, whose attributes are asked for when it is new.
    pub(crate) fn record(
        &self,
        name: &'static str,
        series: &[&str],
        attributes: &dyn Fn() -> Vec<Attribute<'static>>,
        took: Duration,
        span: Option<&TraceContext>,
    ) {
        let key = self.hasher.hash_one((name, series));
        let mut all = self.all.lock();
        let AllSeries { by_key, counts } = &mut *all;
        let series = match by_key.get_mut(&key) {
            Some(series) => series,
            None if is_full(counts, name) => {
                let key = self.hasher.hash_one((name, OVERFLOW));
                let overflow = || Series::new(name, vec![(OVERFLOW, Value::Bool(true))]);
                by_key.entry(key).or_insert_with(overflow)
            }
            None => by_key.entry(key).or_insert_with(|| Series::new(name, attributes())),
        };
        series.add(took.as_secs_f64(), span);
    }

    /// A snapshot of all histograms.
    pub fn read(&self) -> Vec<Metric> {
        let mut metrics: Vec<(&'static str, Vec<HistogramPoint>)> = Vec::new();
        for series in self.all.lock().by_key.values() {
            let point = HistogramPoint {
                attributes: series.attributes.clone(),
                sum: series.sum,
                bounds: BOUNDS.to_vec(),
                counts: series.counts.to_vec(),
                exemplars: series.exemplars.as_deref().map(|all| all.to_vec()).unwrap_or_default(),
            };
            match metrics.iter_mut().find(|(name, _)| *name == series.name) {
                Some((_, points)) => points.push(point),
                None => metrics.push((series.name, vec![point])),
            }
        }
        let metric = |(name, points): (&'static str, _)| Metric {
            name: name.into(),
            description: "The duration of MCP requests.".into(),
            unit: "s".into(),
            points: Points::Histograms(points),
        };
        metrics.into_iter().map(metric).collect()
    }
}

/// Whether a histogram has its series. Counts one more if it has not.
fn is_full(counts: &mut Vec<(&'static str, usize)>, name: &'static str) -> bool {
    match counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) if *count >= MAX_SERIES => true,
        Some((_, count)) => {
            *count += 1;
            false
        }
        None => {
            counts.push((name, 1));
            false
        }
    }
}

impl Series {
    fn new(name: &'static str, attributes: Vec<Attribute<'static>>) -> Self {
        let text = |value| match value {
            Value::Text(text) => text.into_owned(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(is) => is.to_string(),
        };
        Self {
            name,
            attributes: attributes
                .into_iter()
                .map(|(name, value)| (name.to_owned(), text(value)))
                .collect(),
            counts: [0; BOUNDS.len() + 1],
            sum: 0.0,
            exemplars: None,
        }
    }

    fn add(&mut self, seconds: f64, span: Option<&TraceContext>) {
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        self.sum += seconds;
        if let Some(context) = span {
            let exemplars = self.exemplars.get_or_insert_with(Box::default);
            exemplars[bucket] = Some(Exemplar {
                trace: context.trace,
                span: context.span,
                seconds,
                at: Timestamp::now(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(durations: &Durations) -> Vec<HistogramPoint> {
        let mut metrics = durations.read();
        assert_eq!(metrics.len(), 1);
        match metrics.remove(0).points {
            Points::Histograms(points) => points,
            Points::Numbers(..) => unreachable!(),
        }
    }

    #[test]
    fn durations_of_the_same_kind_are_one_series() {
        let durations = Durations::default();
        for millis in [10, 11, 400_000] {
            let attributes = || vec![("m", Value::from("tools/call"))];
            durations.record("d", &["tools/call"], &attributes, Duration::from_millis(millis), None);
        }
        durations.record("d", &["ping"], &|| vec![("m", "ping".into())], Duration::ZERO, None);
        let points = points(&durations);
        let calls = points
            .iter()
            .find(|point| point.attributes[0].1 == "tools/call")
            .unwrap();
        assert_eq!((calls.counts[0], calls.counts[1], calls.counts[14]), (1, 1, 1));
        assert!((calls.sum - 400.021).abs() < 0.001);
        assert_eq!(points.len(), 2);
    }

    #[test]
    fn each_bucket_keeps_the_newest_recorded_operation() {
        let durations = Durations::default();
        let [first, second] = [TraceContext::root(), TraceContext::root()];
        for (millis, span) in [(3, Some(&first)), (4, Some(&second)), (5, None), (700, Some(&first))] {
            durations.record("d", &[], &Vec::new, Duration::from_millis(millis), span);
        }
        let exemplars = points(&durations).remove(0).exemplars;
        let traces: Vec<_> = exemplars.iter().map(|found| found.map(|found| found.trace)).collect();
        assert_eq!((traces[0], traces[6]), (Some(second.trace), Some(first.trace)));
        assert_eq!(traces.iter().flatten().count(), 2);
        assert!((exemplars[0].unwrap().seconds - 0.004).abs() < 1e-9);
    }

    #[test]
    fn one_histogram_leaves_the_others_their_series() {
        let durations = Durations::default();
        for number in 0..2 * MAX_SERIES {
            let attributes = || vec![("n", Value::Int(number as i64))];
            durations.record("full", &[&number.to_string()], &attributes, Duration::ZERO, None);
        }
        durations.record("other", &["x"], &|| vec![("n", "x".into())], Duration::ZERO, None);
        let metrics = durations.read();
        let other = metrics.iter().find(|metric| metric.name == "other").unwrap();
        let Points::Histograms(points) = &other.points else {
            unreachable!()
        };
        assert_eq!(points[0].attributes, [("n".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn further_series_are_added_together() {
        let durations = Durations::default();
        for number in 0..5000 {
            let attributes = || vec![("n", Value::Int(number))];
            durations.record("d", &[&number.to_string()], &attributes, Duration::ZERO, None);
        }
        let points = points(&durations);
        assert_eq!(points.len(), MAX_SERIES + 1);
        let rest = points.iter().find(|point| point.attributes[0].0 == OVERFLOW).unwrap();
        assert_eq!(rest.counts[0], 3000);
    }
}
