//! [`MetricsPage`]: writes the text format of Prometheus, version 0.0.4, or that of OpenMetrics, version 1.0.0.

use std::fmt::Write as _;

use super::family::Family;
use crate::metrics::histogram::Histogram;
use pegboard_base::telemetry::Exemplar;

/// The format of a page of metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageFormat {
    /// The text format of Prometheus.
    #[default]
    Prometheus,
    /// OpenMetrics, which has exemplars.
    OpenMetrics,
}

impl PageFormat {
    /// The media type of the format.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A page of metrics.
#[derive(Debug, Default)]
pub struct MetricsPage {
    format: PageFormat,
    text: String,
}

/// A histogram in seconds, as a page has it.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct PageHistogram {
    /// The sum of all values.
    pub sum: f64,
    /// The buckets in the order of their bounds. The last one has none.
    pub buckets: Vec<PageBucket>,
}

/// One bucket of a histogram.
#[derive(Debug, Clone, Copy)]
pub struct PageBucket {
    /// The largest value that counts here.
    pub le: Option<f64>,
    /// How many values were at most so large.
    pub count: u64,
    /// A recorded operation in this bucket. Only OpenMetrics has a place for it.
    pub exemplar: Option<Exemplar>,
}

impl MetricsPage {
    /// Begins a page of this format.
    pub fn new(format: PageFormat) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// Returns the text.
    pub fn into_text(mut self) -> String {
        if self.format == PageFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes histograms whose buckets have exemplars.
    pub fn exemplified<'v>(
        &mut self,
        family: &Family,
        values: impl IntoIterator<Item = (Vec<&'v str>, PageHistogram)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.head(family);
        }
        for (labels, histogram) in values {
            self.histogram(family, &labels, &histogram);
        }
    }

    fn histogram(&mut self, family: &Family, labels: &[&str], histogram: &PageHistogram) {
        for bucket in &histogram.buckets {
            let bound = bucket.le.map_or_else(|| "+Inf".to_owned(), canonical);
            self.sample(family, "_bucket", labels, Some(&bound), number(bucket.count));
            if let Some(exemplar) = bucket.exemplar.filter(|_| self.format == PageFormat::OpenMetrics) {
                self.exemplar(&exemplar);
            }
            self.text.push('\n');
        }
        self.line(family, "_sum", labels, histogram.sum);
        let count = histogram.buckets.last().map_or(0, |bucket| bucket.count);
        self.line(family, "_count", labels, number(count));
    }

    fn head(&mut self, family: &Family) {
        let is = family.is.as_str();
        let name = match self.format {
            PageFormat::Prometheus => family.name,
            PageFormat::OpenMetrics => family.base_name(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {}\n# TYPE {name} {is}", family.help);
        if let (PageFormat::OpenMetrics, Some(unit)) = (self.format, family.unit()) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    fn line(&mut self, family: &Family, suffix: &str, labels: &[&str], value: f64) {
        self.sample(family, suffix, labels, None, value);
        self.text.push('\n');
    }

    /// Writes a sample without the end of its line. A label without a value is left out, which means the same.
    fn sample(&mut self, family: &Family, suffix: &str, labels: &[&str], bound: Option<&str>, value: f64) {
        let _ = write!(self.text, "{}{suffix}", family.name);
        let named = family.labels.iter().copied().zip(labels.iter().copied());
        let mut between = '{';
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            if value.is_empty() {
                continue;
            }
            let _ = write!(self.text, "{between}{name}=\"");
            self.push_escaped(value);
            self.text.push('"');
            between = ',';
        }
        if between == ',' {
            self.text.push('}');
        }
        let _ = write!(self.text, " {value}");
    }

    fn exemplar(&mut self, exemplar: &Exemplar) {
        let Exemplar {
            trace,
            span,
            seconds,
            at,
        } = exemplar;
        let at = at.as_secs_f64();
        let _ = write!(
            self.text,
            " # {{trace_id=\"{trace}\",span_id=\"{span}\"}} {seconds} {at:.3}"
        );
    }

    fn push_escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                c => self.text.push(c),
            }
        }
    }
}

/// Takes the metrics of a board and of a daemon: as a page for Prometheus, or for another system.
pub trait MetricsSink {
    /// Takes a metric with one value per set of labels. One without values is left out.
    fn family<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, f64)>);

    /// Takes the histograms of a metric, without those that have counted nothing.
    fn histograms<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, &'v Histogram)>);

    /// Takes a metric without labels.
    fn single(&mut self, family: &Family, value: f64) {
        self.family(family, [(Vec::new(), value)]);
    }
}

impl MetricsSink for MetricsPage {
    fn family<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, f64)>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.head(family);
        }
        for (labels, value) in values {
            self.line(family, "", &labels, value);
        }
    }

    fn histograms<'v>(&mut self, family: &Family, values: impl IntoIterator<Item = (Vec<&'v str>, &'v Histogram)>) {
        let counted = values.into_iter().filter(|(_, histogram)| histogram.count > 0);
        self.exemplified(family, counted.map(|(labels, histogram)| (labels, histogram.into())));
    }
}

#[doc(hidden)]
impl From<&Histogram> for PageHistogram {
    fn from(histogram: &Histogram) -> Self {
        let buckets = histogram.buckets.iter().map(|bucket| PageBucket {
            le: bucket.le_ms.map(seconds),
            count: bucket.count,
            exemplar: None,
        });
        Self {
            sum: seconds(histogram.sum_ms),
            buckets: buckets.collect(),
        }
    }
}

/// A bound as both formats want it: Prometheus takes `1` and `1.0` for two series.
fn canonical(bound: f64) -> String {
    match bound.fract() == 0.0 {
        true => format!("{bound:.1}"),
        false => bound.to_string(),
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
    use pegboard_base::{telemetry::TraceContext, timestamp::Timestamp};

    const CALLS: Family = Family {
        name: "calls_total",
        is: FamilyType::Counter,
        labels: &["server", "kind"],
        help: "Calls.",
    };

    const TIMES: Family = Family {
        name: "times_seconds",
        is: FamilyType::Histogram,
        labels: &["server"],
        help: "Times.",
    };

    #[test]
    fn labels_are_escaped_and_empty_ones_left_out() {
        let mut page = MetricsPage::default();
        page.family(&CALLS, [(vec!["a\"b\\c\nd", "ok"], 3.0), (vec!["", "ok"], 1.0)]);
        let text = page.into_text();
        assert!(
            text.ends_with("calls_total{server=\"a\\\"b\\\\c\\nd\",kind=\"ok\"} 3\ncalls_total{kind=\"ok\"} 1\n"),
            "{text}"
        );
    }

    #[test]
    fn only_openmetrics_has_exemplars_units_and_an_end() {
        let context = TraceContext::root();
        let exemplar = Exemplar {
            trace: context.trace,
            span: context.span,
            seconds: 0.25,
            at: Timestamp::from_millisecond(1_500).unwrap(),
        };
        let bucket = |le, count, exemplar| PageBucket { le, count, exemplar };
        let write = |format| {
            let mut page = MetricsPage::new(format);
            page.family(&CALLS, [(vec!["a", "ok"], 3.0)]);
            let histogram = PageHistogram {
                sum: 0.25,
                buckets: vec![bucket(Some(1.0), 1, Some(exemplar)), bucket(None, 1, None)],
            };
            page.exemplified(&TIMES, [(vec!["a"], histogram)]);
            page.into_text()
        };
        assert_eq!(
            write(PageFormat::Prometheus),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{server=\"a\",kind=\"ok\"} 3\n\
             # HELP times_seconds Times.\n# TYPE times_seconds histogram\n\
             times_seconds_bucket{server=\"a\",le=\"1.0\"} 1\ntimes_seconds_bucket{server=\"a\",le=\"+Inf\"} 1\n\
             times_seconds_sum{server=\"a\"} 0.25\ntimes_seconds_count{server=\"a\"} 1\n"
        );
        let (trace, span) = (context.trace, context.span);
        assert_eq!(
            write(PageFormat::OpenMetrics),
            format!(
                "# HELP calls Calls.\n# TYPE calls counter\ncalls_total{{server=\"a\",kind=\"ok\"}} 3\n\
                 # HELP times_seconds Times.\n# TYPE times_seconds histogram\n# UNIT times_seconds seconds\n\
                 times_seconds_bucket{{server=\"a\",le=\"1.0\"}} 1 # {{trace_id=\"{trace}\",span_id=\"{span}\"}} 0.25 1.500\n\
                 times_seconds_bucket{{server=\"a\",le=\"+Inf\"}} 1\n\
                 times_seconds_sum{{server=\"a\"}} 0.25\ntimes_seconds_count{{server=\"a\"}} 1\n# EOF\n"
            )
        );
    }
}
