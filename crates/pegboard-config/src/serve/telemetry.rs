//! Where the gateway sends traces, metrics and log records, and how much of them.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    choice::words,
    duration_text,
    field::ValueKind,
    key::{choice, flag, limit, map, required_text, text, unless},
    setting::Text,
    settings::settings,
};
use pegboard_base::secret::Secret;

settings! {
    /// Where traces, metrics and log records are sent (OTLP over HTTP), and how much of them. The variables of OpenTelemetry, `OTEL_…`, go before
    /// these settings.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ServeTelemetry in serve_telemetry = "serve.telemetry" {
        /// The URL of the collector, such as `http://localhost:4318`; `/v1/traces` and so on are added to it. Without one, and without a variable
        /// that names one, nothing is sent.
        endpoint: Option<String> = text().syntax(wrong_url, "write `http://localhost:4318`").aka(&["url"]);
        /// Headers of the requests to the collector, such as a key of its provider.
        headers: BTreeMap<String, Text> => BTreeMap<String, Secret> = map(&ValueKind::Secret);
        /// How long a request to the collector may take. Calls do not wait for it.
        timeout: Duration as "duration_text" = limit(10);
        /// How requests to the collector are compressed.
        compression: Compression = choice();
        /// Which traces are recorded.
        sampler: TraceSampler = choice();
        /// The share of traces that the samplers with `ratio` record: a number from 0 to 1 in quotes, such as `"0.01"`, or a percentage, `"1%"`.
        ratio: Option<String> = text().syntax(wrong_ratio, "write `ratio = \"0.01\"` or `ratio = \"1%\"`");
        /// The name of the service in telemetry.
        service_name: String = required_text(|| ServeTelemetry::SERVICE.to_owned())
            .shown(crate::field::DefaultValue::Text(ServeTelemetry::SERVICE));
        /// Further attributes of the service, such as `deployment.environment.name`.
        resource: BTreeMap<String, String> = map(&ValueKind::Text).aka(&["resource_attributes"]);
        /// Whether traces are sent.
        traces: bool = flag(true);
        /// Whether metrics are sent.
        metrics: bool = flag(true);
        /// Whether log records are sent.
        logs: bool = flag(true);
        /// How often metrics are sent.
        metrics_interval: Duration as "duration_text" = limit(60);
        /// Whether traces have the arguments and results of calls, masked and truncated, and the texts of errors.
        content: bool = flag(false);
    }
}

words! {
    /// How requests to a collector are compressed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Compression as "compression" default None {
        /// Not at all.
        None = "none" | "off",
        /// With gzip.
        Gzip = "gzip",
    }
}

words! {
    /// Which traces are recorded. Those with `parentbased` follow the decision of the client, if it sent one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum TraceSampler as "sampler" default ParentBasedAlwaysOn {
        /// All that the client records, and all that begin here.
        ParentBasedAlwaysOn = "parentbased_always_on",
        /// All that the client records.
        ParentBasedAlwaysOff = "parentbased_always_off",
        /// All that the client records, and a share of those that begin here.
        ParentBasedRatio = "parentbased_traceidratio" | "parentbased_ratio",
        /// All.
        AlwaysOn = "always_on",
        /// None.
        AlwaysOff = "always_off",
        /// A share of all.
        Ratio = "traceidratio" | "ratio",
    }
}

impl ServeTelemetry {
    /// The default of `service_name`.
    #[doc(hidden)]
    pub const SERVICE: &str = "pegboard";

    /// The share of traces that the samplers with a ratio record.
    pub fn share(&self) -> f64 {
        self.ratio.as_deref().and_then(parse_ratio).unwrap_or(1.0)
    }
}

fn wrong_url(text: &str) -> Option<String> {
    let is_http =
        |url: Url| matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    unless(
        Url::parse(text).is_ok_and(is_http),
        "must be an http or https URL without query and fragment",
    )
}

fn wrong_ratio(text: &str) -> Option<String> {
    unless(
        parse_ratio(text).is_some(),
        "must be a number from 0 to 1, or a percentage",
    )
}

fn parse_ratio(text: &str) -> Option<f64> {
    let ratio = match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.trim().parse().ok()?,
    };
    (0.0..=1.0).contains(&ratio).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_share_or_a_percentage() {
        for (text, ratio) in [("0.01", 0.01), ("1 %", 0.01), ("1", 1.0), ("0", 0.0), ("100%", 1.0)] {
            let telemetry = ServeTelemetry {
                ratio: Some(text.to_owned()),
                ..ServeTelemetry::default()
            };
            assert!((telemetry.share() - ratio).abs() < 1e-9, "{text}");
        }
        for text in ["", "1.1", "-0.1", "101%", "NaN", "half"] {
            assert!(wrong_ratio(text).is_some(), "{text}");
        }
    }
}
