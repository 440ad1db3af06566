//! Telemetry of `serve` and `mcp`: the config and the variables of OpenTelemetry decide whether it is sent.

use pegboard::{
    Config,
    config::{Compression, ServeTelemetry, TraceSampler},
};
use pegboard_telemetry::{Exporter, Options, Resolved, Sampler, Settings, Signal};

use crate::{
    logging,
    output::{self, Output},
};

/// Starts to send telemetry, if that is configured. What of it cannot be used is said once.
pub(crate) fn start(config: &Config, output: &Output) -> Option<Exporter> {
    let Resolved { settings, warnings } = Settings::resolve(&options(&config.serve.telemetry), |name| {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    });
    for warning in warnings {
        output.say(&output::warning(&format!("telemetry: {warning}")));
    }
    let exporter = Exporter::start(settings?);
    if exporter.takes_logs() {
        logging::export_to(exporter.clone());
    }
    Some(exporter)
}

fn options(config: &ServeTelemetry) -> Options {
    let signals = [
        (Signal::Traces, config.traces),
        (Signal::Metrics, config.metrics),
        (Signal::Logs, config.logs),
    ];
    // A ratio has no other meaning.
    let sampler = match config.sampler {
        TraceSampler::ParentBasedAlwaysOn if config.ratio.is_some() => TraceSampler::ParentBasedRatio,
        sampler => sampler,
    };
    Options {
        endpoint: config.endpoint.clone(),
        headers: config.headers.clone(),
        timeout: config.timeout,
        gzip: config.compression == Compression::Gzip,
        // Both have the names of OpenTelemetry.
        sampler: Sampler::new(sampler.as_str(), config.share()).unwrap_or_default(),
        service_name: config.service_name.clone(),
        resource: config.resource.clone(),
        content: config.content,
        signals: signals
            .into_iter()
            .filter_map(|(signal, is_on)| is_on.then_some(signal))
            .collect(),
        metrics_interval: config.metrics_interval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sampler_of_the_config_is_known() {
        for sampler in [
            TraceSampler::ParentBasedAlwaysOn,
            TraceSampler::ParentBasedAlwaysOff,
            TraceSampler::ParentBasedRatio,
            TraceSampler::AlwaysOn,
            TraceSampler::AlwaysOff,
            TraceSampler::Ratio,
        ] {
            Sampler::new(sampler.as_str(), 0.5).unwrap();
        }
    }
}
