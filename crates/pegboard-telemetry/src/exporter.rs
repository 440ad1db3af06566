//! [`Exporter`]: what a program gives its spans, durations, metrics and log records to.

use std::{fmt, sync::Arc, time::Duration};

use pegboard_base::{
    sync::Mutex,
    telemetry::{Attribute, Propagation, Span, Telemetry, TraceContext, TraceId},
};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    durations::Durations,
    encode,
    health::Health,
    log_record::LogRecord,
    metric::Metric,
    queue::Queue,
    resource::Origin,
    sender::Sender,
    settings::{Settings, SignalSettings},
    signal::{Counts, Signal, Tally},
    worker::{self, Outlet},
};

/// How long the last telemetry may take when the program stops.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The longest text of a log record, in bytes. With the longest queue, they take 16 MiB.
const MAX_LOG_TEXT: usize = 4 << 10;

/// Sends telemetry to a collector. Clones share everything; its tasks end with the last one.
#[derive(Clone)]
pub struct Exporter(Arc<Shared>);

struct Shared {
    settings: Settings,
    origin: Arc<Origin>,
    spans: Option<Arc<Queue<Span>>>,
    logs: Option<Arc<Queue<LogRecord>>>,
    durations: Option<Arc<Durations>>,
    metrics: Arc<Tally>,
    /// The collectors, each with its health.
    collectors: Mutex<Vec<Arc<Health>>>,
    stop: CancellationToken,
    tasks: Mutex<Vec<AbortOnDropHandle<()>>>,
}

impl Exporter {
    /// Starts the tasks that send spans and log records. Metrics are sent from [`Exporter::collect`] on.
    pub fn start(settings: Settings) -> Self {
        let queue = settings.queue;
        let exporter = Self(Arc::new(Shared {
            origin: Arc::new(Origin::new(&settings.resource)),
            spans: settings
                .traces
                .is_some()
                .then(|| Arc::new(Queue::new(queue, settings.batch))),
            logs: settings
                .logs
                .is_some()
                .then(|| Arc::new(Queue::new(queue, settings.batch))),
            durations: settings.metrics.is_some().then(Arc::default),
            metrics: Arc::default(),
            collectors: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
            settings,
        }));
        let shared = &exporter.0;
        let delay = shared.settings.delay;
        if let (Some(signal), Some(queue)) = (&shared.settings.traces, &shared.spans) {
            let outlet = shared.outlet(Signal::Traces, signal);
            shared.spawn(worker::send_queue(outlet, queue.clone(), encode::traces, delay));
        }
        if let (Some(signal), Some(queue)) = (&shared.settings.logs, &shared.logs) {
            let outlet = shared.outlet(Signal::Logs, signal);
            shared.spawn(worker::send_queue(outlet, queue.clone(), encode::logs, delay));
        }
        exporter
    }

    /// Sends what `collect` returns at each interval, with the recorded durations.
    pub fn collect(&self, collect: impl Fn() -> Vec<Metric> + Send + 'static) {
        let shared = &self.0;
        if let (Some(signal), Some(durations)) = (&shared.settings.metrics, &shared.durations) {
            let outlet = shared.outlet(Signal::Metrics, signal);
            let durations = durations.clone();
            let all = move || {
                let mut metrics = collect();
                metrics.extend(durations.read());
                metrics
            };
            let period = shared.settings.metrics_interval;
            shared.spawn(worker::send_metrics(outlet, shared.metrics.clone(), all, period));
        }
    }

    /// Takes a line of a log. Never waits.
    pub fn log(&self, mut record: LogRecord) {
        if let Some(queue) = &self.0.logs {
            let texts = record.attributes.iter_mut().map(|(_, value)| value);
            for text in texts.chain([&mut record.body]) {
                text.truncate(text.floor_char_boundary(MAX_LOG_TEXT));
            }
            queue.push(record);
        }
    }

    /// Whether log records are sent.
    pub fn takes_logs(&self) -> bool {
        self.0.logs.is_some()
    }

    /// The durations that it sends, if it sends metrics.
    pub(crate) fn durations(&self) -> Option<Arc<Durations>> {
        self.0.durations.clone()
    }

    /// How much was sent of each signal that is on.
    pub fn counts(&self) -> Vec<(Signal, Counts)> {
        let shared = &self.0;
        let spans = shared.spans.as_ref().map(|queue| (Signal::Traces, queue.tally.read()));
        let metrics = shared.durations.as_ref();
        let metrics = metrics.map(|_| (Signal::Metrics, shared.metrics.read()));
        let logs = shared.logs.as_ref().map(|queue| (Signal::Logs, queue.tally.read()));
        [spans, metrics, logs].into_iter().flatten().collect()
    }

    /// Sends what is left, within a few seconds, and ends the tasks. Later telemetry is not sent.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        let tasks = std::mem::take(&mut *self.0.tasks.lock());
        let all = async {
            for task in tasks {
                // A task that has panicked has ended too.
                let _ = task.await;
            }
        };
        // What is left after that is lost: the program must end.
        let _ = timeout(STOP_TIME, all).await;
    }
}

impl Shared {
    fn outlet(&self, signal: Signal, settings: &SignalSettings) -> Outlet {
        let origin = settings.target.url().origin().ascii_serialization();
        let mut collectors = self.collectors.lock();
        let known = collectors.iter().find(|known| known.origin() == origin).cloned();
        let health = known.unwrap_or_else(|| {
            let new = Arc::new(Health::new(origin));
            collectors.push(new.clone());
            new
        });
        Outlet {
            signal,
            sender: Sender::new(settings.clone()),
            health,
            origin: self.origin.clone(),
            stop: self.stop.clone(),
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push(AbortOnDropHandle::new(tokio::spawn(task)));
    }
}

impl Telemetry for Exporter {
    fn samples(&self, trace: TraceId, parent: Option<&TraceContext>) -> bool {
        self.0.spans.is_some() && self.0.settings.sampler.samples(trace, parent)
    }

    fn finish(&self, span: Span) {
        if let Some(queue) = &self.0.spans {
            queue.push(span);
        }
    }

    fn record(
        &self,
        histogram: &'static str,
        series: &[&str],
        attributes: &dyn Fn() -> Vec<Attribute<'static>>,
        took: Duration,
        span: Option<&TraceContext>,
    ) {
        if let Some(durations) = &self.0.durations {
            durations.record(histogram, series, attributes, took, span);
        }
    }

    fn has_content(&self) -> bool {
        self.0.settings.content
    }

    fn propagation(&self) -> Propagation {
        self.0.settings.propagation
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter")
            .field("settings", &self.0.settings)
            .finish_non_exhaustive()
    }
}
