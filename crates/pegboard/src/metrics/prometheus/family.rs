//! [`Family`]: a metric as Prometheus knows it.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyType {
    /// It only grows.
    Counter,
    /// It grows and shrinks.
    Gauge,
    /// It counts values in buckets.
    Histogram,
}

impl FamilyType {
    /// The word of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric: a name, and samples with the same labels.
#[derive(Debug)]
pub struct Family {
    /// The name. A program may not have two families of one name.
    pub name: &'static str,
    /// The type.
    pub is: FamilyType,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// What it means, in one sentence.
    pub help: &'static str,
}
