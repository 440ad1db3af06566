//! Writes spans, log records and metrics as requests of OTLP.

use std::time::{Duration, SystemTime};

use pegboard_base::telemetry::{Attribute, Exemplar, Span, SpanKind, TraceContext, Value};
use prost::Message;

use crate::{
    log_record::LogRecord,
    metric::{HistogramPoint, Metric, MetricKind, NumberPoint, Points},
    proto::{self, any_value, metric},
    resource::Origin,
};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;
/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;
/// That it is known whether a span's parent is in another process, and that it is.
const REMOTE_IS_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

pub(crate) fn traces(origin: &Origin, spans: Vec<Span>) -> Vec<u8> {
    let request = proto::TracesRequest {
        resource_spans: vec![proto::ResourceSpans {
            resource: Some(origin.resource.clone()),
            scope_spans: vec![proto::ScopeSpans {
                scope: Some(origin.scope.clone()),
                spans: spans.into_iter().map(span).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

pub(crate) fn logs(origin: &Origin, records: Vec<LogRecord>) -> Vec<u8> {
    let request = proto::LogsRequest {
        resource_logs: vec![proto::ResourceLogs {
            resource: Some(origin.resource.clone()),
            scope_logs: vec![proto::ScopeLogs {
                scope: Some(origin.scope.clone()),
                log_records: records.into_iter().map(log_record).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

/// `start` is since when counters and histograms count.
pub(crate) fn metrics(origin: &Origin, metrics: Vec<Metric>, start: SystemTime, now: SystemTime) -> Vec<u8> {
    let times = Times {
        start: nanos(start),
        now: nanos(now),
    };
    let request = proto::MetricsRequest {
        resource_metrics: vec![proto::ResourceMetrics {
            resource: Some(origin.resource.clone()),
            scope_metrics: vec![proto::ScopeMetrics {
                scope: Some(origin.scope.clone()),
                metrics: metrics.into_iter().map(|metric| times.metric(metric)).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn span(span: Span) -> proto::Span {
    let status = span.is_error.then(|| proto::Status {
        message: span.message.unwrap_or_default(),
        code: ERROR,
    });
    let remote = if span.has_remote_parent { IS_REMOTE } else { 0 };
    proto::Span {
        trace_id: span.context.trace.to_bytes().into(),
        span_id: span.context.span.to_bytes().into(),
        trace_state: span.context.state.map(|state| state.to_string()).unwrap_or_default(),
        parent_span_id: span.parent.map(|parent| parent.to_bytes().into()).unwrap_or_default(),
        name: span.name.into_owned(),
        kind: match span.kind {
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.start + span.took),
        attributes: attributes(span.attributes),
        events: span
            .events
            .into_iter()
            .map(|event| proto::Event {
                time_unix_nano: nanos(event.at),
                name: event.name.to_owned(),
                attributes: attributes(event.attributes),
            })
            .collect(),
        links: span.links.into_iter().map(link).collect(),
        status,
        flags: u32::from(span.context.flags) | REMOTE_IS_KNOWN | remote,
    }
}

fn link(context: TraceContext) -> proto::Link {
    proto::Link {
        trace_id: context.trace.to_bytes().into(),
        span_id: context.span.to_bytes().into(),
        trace_state: context.state.map(|state| state.to_string()).unwrap_or_default(),
        flags: u32::from(context.flags) | REMOTE_IS_KNOWN | IS_REMOTE,
    }
}

fn log_record(record: LogRecord) -> proto::LogRecord {
    let (trace, span) = record.span.unzip();
    proto::LogRecord {
        time_unix_nano: nanos(record.at),
        observed_time_unix_nano: nanos(record.at),
        severity_number: record.severity.number(),
        severity_text: record.severity.as_str().to_owned(),
        body: Some(proto::AnyValue {
            value: Some(any_value::Value::Text(record.body)),
        }),
        attributes: record
            .attributes
            .iter()
            .map(|(name, value)| proto::KeyValue::text(name, value))
            .collect(),
        // Only spans of sampled traces have ids here.
        flags: u32::from(trace.is_some()),
        trace_id: trace.map(|id| id.to_bytes().into()).unwrap_or_default(),
        span_id: span.map(|id| id.to_bytes().into()).unwrap_or_default(),
    }
}

/// The times of all points of a request.
#[derive(Clone, Copy)]
struct Times {
    start: u64,
    now: u64,
}

impl Times {
    fn metric(self, metric: Metric) -> proto::Metric {
        let data = match metric.points {
            Points::Numbers(MetricKind::Gauge, points) => metric::Data::Gauge(proto::Gauge {
                data_points: points.iter().map(|point| self.number(point, false)).collect(),
            }),
            Points::Numbers(MetricKind::Counter, points) => metric::Data::Sum(proto::Sum {
                data_points: points.iter().map(|point| self.number(point, true)).collect(),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            Points::Histograms(points) => metric::Data::Histogram(proto::Histogram {
                data_points: points.into_iter().map(|point| self.histogram(point)).collect(),
                aggregation_temporality: CUMULATIVE,
            }),
        };
        proto::Metric {
            name: metric.name.into_owned(),
            description: metric.description.into_owned(),
            unit: metric.unit.into_owned(),
            data: Some(data),
        }
    }

    fn number(self, point: &NumberPoint, has_start: bool) -> proto::NumberDataPoint {
        proto::NumberDataPoint {
            start_time_unix_nano: if has_start { self.start } else { 0 },
            time_unix_nano: self.now,
            as_double: Some(point.value),
            attributes: texts(&point.attributes),
        }
    }

    fn histogram(self, point: HistogramPoint) -> proto::HistogramDataPoint {
        proto::HistogramDataPoint {
            start_time_unix_nano: self.start,
            time_unix_nano: self.now,
            count: point.counts.iter().sum(),
            sum: Some(point.sum),
            bucket_counts: point.counts,
            explicit_bounds: point.bounds,
            exemplars: point.exemplars.into_iter().flatten().map(exemplar).collect(),
            attributes: texts(&point.attributes),
        }
    }
}

fn exemplar(exemplar: Exemplar) -> proto::Exemplar {
    let millis = u64::try_from(exemplar.at.as_millisecond()).unwrap_or_default();
    proto::Exemplar {
        time_unix_nano: millis.saturating_mul(1_000_000),
        as_double: Some(exemplar.seconds),
        span_id: exemplar.span.to_bytes().into(),
        trace_id: exemplar.trace.to_bytes().into(),
    }
}

fn attributes(attributes: Vec<Attribute<'static>>) -> Vec<proto::KeyValue> {
    let one = |(name, value): Attribute<'static>| {
        let value = match value {
            Value::Text(text) => any_value::Value::Text(text.into_owned()),
            Value::Int(number) => any_value::Value::Int(number),
            Value::Float(number) => any_value::Value::Double(number),
            Value::Bool(is) => any_value::Value::Bool(is),
        };
        proto::KeyValue::new(name, value)
    };
    attributes.into_iter().map(one).collect()
}

fn texts(attributes: &[(String, String)]) -> Vec<proto::KeyValue> {
    attributes
        .iter()
        .map(|(name, value)| proto::KeyValue::text(name, value))
        .collect()
}

/// Nanoseconds since 1970, until the year 2554.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
