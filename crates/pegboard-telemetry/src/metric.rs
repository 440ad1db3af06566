//! [`Metric`]: a snapshot of one counter, gauge or histogram.

use std::borrow::Cow;

use pegboard_base::telemetry::Exemplar;

/// A snapshot of one metric. Counters and histograms count from the start of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it counts.
    pub description: Cow<'static, str>,
    /// Its unit, as UCUM writes it: `s`, `By`, `{call}`.
    pub unit: Cow<'static, str>,
    /// Its values.
    pub points: Points,
}

/// Whether a number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The values of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// Numbers.
    Numbers(MetricKind, Vec<NumberPoint>),
    /// Histograms.
    Histograms(Vec<HistogramPoint>),
}

impl Points {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(_, points) => points.len(),
            Self::Histograms(points) => points.len(),
        }
    }
}

/// A number, and what tells it apart from the others of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberPoint {
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// The number.
    pub value: f64,
}

/// A histogram, and what tells it apart from the others of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramPoint {
    /// Names and values.
    pub attributes: Vec<(String, String)>,
    /// The sum of all values.
    pub sum: f64,
    /// The upper bounds of all buckets but the last.
    pub bounds: Vec<f64>,
    /// How many values are in each bucket.
    pub counts: Vec<u64>,
    /// One recorded operation of each bucket. Empty if no bucket has one.
    pub exemplars: Vec<Option<Exemplar>>,
}
