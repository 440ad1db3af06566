//! [`MetricsPage`]: writes the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::family::Family;
use crate::metrics::histogram::Histogram;

/// A page of metrics.
#[derive(Debug, Default)]
pub struct MetricsPage(String);

impl MetricsPage {
    /// The media type of the format.
    pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Writes a metric with one value per set of labels. One without values is left out.
    pub fn family<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, f64)>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.head(family);
        }
        for (labels, value) in values {
            self.sample(family, "", &labels, None, value);
        }
    }

    /// Writes a metric without labels.
    pub fn single(&mut self, family: &Family, value: f64) {
        self.family(family, [(Vec::new(), value)]);
    }

    /// Writes the histograms of a metric, without those that have counted nothing.
    pub fn histograms<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, &'v Histogram)>) {
        let mut values = values
            .into_iter()
            .filter(|(_, histogram)| histogram.count > 0)
            .peekable();
        if values.peek().is_some() {
            self.head(family);
        }
        for (labels, histogram) in values {
            for bucket in &histogram.buckets {
                let bound = bucket
                    .le_ms
                    .map_or_else(|| "+Inf".to_owned(), |bound| seconds(bound).to_string());
                self.sample(family, "_bucket", &labels, Some(&bound), number(bucket.count));
            }
            self.sample(family, "_sum", &labels, None, seconds(histogram.sum_ms));
            self.sample(family, "_count", &labels, None, number(histogram.count));
        }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn head(&mut self, family: &Family) {
        let (name, is) = (family.name, family.is.as_str());
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {}\n# TYPE {name} {is}", family.help);
    }

    fn sample(&mut self, family: &Family, suffix: &str, labels: &[&str], bound: Option<&str>, value: f64) {
        let _ = write!(self.0, "{}{suffix}", family.name);
        let named = family.labels.iter().copied().zip(labels.iter().copied());
        for (at, (name, value)) in named.chain(bound.map(|bound| ("le", bound))).enumerate() {
            let _ = write!(self.0, "{}{name}=\"", if at == 0 { '{' } else { ',' });
            self.push_escaped(value);
            self.0.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn push_escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }
}

fn seconds(millis: f64) -> f64 {
    // By division, so that 0.064 ms is 0.000064 s and not a neighbour of it.
    millis / 1000.0
}

/// A count as a sample.
#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus stores doubles, which count exactly up to 2^53"
)]
pub fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::prometheus::FamilyType;

    #[test]
    fn labels_are_escaped() {
        let family = Family {
            name: "calls_total",
            is: FamilyType::Counter,
            labels: &["server", "kind"],
            help: "Calls.",
        };
        let mut page = MetricsPage::default();
        page.family(&family, [(vec!["a\"b\\c\nd", "ok"], 3.0)]);
        let text = page.into_text();
        assert!(
            text.ends_with("calls_total{server=\"a\\\"b\\\\c\\nd\",kind=\"ok\"} 3\n"),
            "{text}"
        );
    }
}
