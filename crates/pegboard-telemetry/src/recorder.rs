//! [`Recorder`]: keeps the durations of requests for a page of metrics, whether or not they are sent to a collector too.

use std::{sync::Arc, time::Duration};

use pegboard_base::telemetry::{Attribute, Propagation, Span, Telemetry, TraceContext, TraceId};

use crate::{durations::Durations, exporter::Exporter};

/// Keeps durations, and passes spans to an exporter if there is one. Clones share everything.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// Those of the exporter, if it sends metrics, so that each duration is counted once.
    durations: Arc<Durations>,
    exporter: Option<Exporter>,
}

impl Recorder {
    /// Creates a recorder that also passes on what the exporter sends.
    pub fn new(exporter: Option<Exporter>) -> Self {
        Self {
            durations: exporter.as_ref().and_then(Exporter::durations).unwrap_or_default(),
            exporter,
        }
    }

    /// The durations.
    pub fn durations(&self) -> &Durations {
        &self.durations
    }

    /// What sends telemetry, if anything does.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }
}

impl Telemetry for Recorder {
    fn traces(&self) -> bool {
        self.exporter.is_some()
    }

    fn samples(&self, trace: TraceId, parent: Option<&TraceContext>) -> bool {
        let exporter = self.exporter.as_ref();
        exporter.is_some_and(|exporter| exporter.samples(trace, parent))
    }

    fn finish(&self, span: Span) {
        if let Some(exporter) = &self.exporter {
            exporter.finish(span);
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
        self.durations.record(histogram, series, attributes, took, span);
    }

    fn has_content(&self) -> bool {
        self.exporter.as_ref().is_some_and(Exporter::has_content)
    }

    fn propagation(&self) -> Propagation {
        self.exporter.as_ref().map(Exporter::propagation).unwrap_or_default()
    }
}
