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

impl Family {
    /// The name without the suffix of counters.
    pub fn base_name(&self) -> &'static str {
        self.name.strip_suffix("_total").unwrap_or(self.name)
    }

    /// The unit at the end of the name.
    pub fn unit(&self) -> Option<&'static str> {
        let name = self.base_name();
        ["seconds", "bytes"].into_iter().find(|unit| {
            let before = name.strip_suffix(unit);
            before.is_some_and(|before| before.ends_with('_'))
        })
    }
}
