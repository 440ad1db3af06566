//! Turns finished spans, snapshots of metrics and log records into OTLP, and sends them to a collector over HTTP.
//!
//! ```text
//! Exporter: spans, durations, log records ──▶ Queue (bounded) ──▶ worker: batches ──▶ Sender ──▶ collector
//!           metrics ────────────────────────── snapshot at each interval ───────────────┘
//! ```
//!
//! What the collector does costs the program nothing: the queues drop what does not fit, and count it. It knows nothing of boards or MCP servers.

mod backoff;
mod durations;
mod encode;
mod exporter;
mod gzip;
mod health;
mod log_record;
mod metric;
mod proto;
mod queue;
mod recorder;
mod resource;
mod sampler;
mod sender;
mod settings;
mod signal;
mod worker;

pub use durations::Durations;
pub use exporter::Exporter;
pub use log_record::{LogRecord, Severity};
pub use metric::{HistogramPoint, Metric, MetricKind, NumberPoint, Points};
pub use recorder::Recorder;
pub use sampler::{Sampler, UnknownSampler};
pub use settings::{Options, Resolved, Settings, SignalSettings};
pub use signal::{Counts, Signal};
