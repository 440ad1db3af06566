//! [`Settings`]: where telemetry goes and how much of it, from the config of the program and the variables that OpenTelemetry defines.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use pegboard_base::{secret::Secret, telemetry::Propagation};
use pegboard_http::Target;
use url::Url;

use crate::{sampler::Sampler, signal::Signal};

/// The default of a collector on this machine.
const LOCAL: &str = "http://localhost:4318";

/// The defaults of `OTEL_BSP_MAX_QUEUE_SIZE`, `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` and `OTEL_BSP_SCHEDULE_DELAY`.
const QUEUE: usize = 2048;
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
/// The longest queue that can be set: each span takes a few KiB.
const MAX_QUEUE: usize = 65_536;

/// What the config of a program says about telemetry.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The URL of the collector, to which the paths of the signals are added. Without one, the variables decide whether telemetry is sent.
    pub endpoint: Option<String>,
    /// Headers of all requests.
    pub headers: BTreeMap<String, Secret>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// The name of the service.
    pub service_name: String,
    /// Further attributes of the resource.
    pub resource: BTreeMap<String, String>,
    /// Whether spans have the arguments and results of calls.
    pub content: bool,
    /// The signals that are sent.
    pub signals: Vec<Signal>,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            timeout: Duration::from_secs(10),
            gzip: false,
            sampler: Sampler::default(),
            service_name: "pegboard".to_owned(),
            resource: BTreeMap::new(),
            content: false,
            signals: Signal::ALL.into(),
            metrics_interval: Duration::from_secs(60),
        }
    }
}

/// Where telemetry goes, and how much of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The collector of spans.
    pub traces: Option<SignalSettings>,
    /// The collector of metrics.
    pub metrics: Option<SignalSettings>,
    /// The collector of log records.
    pub logs: Option<SignalSettings>,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// The attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Whether spans have the arguments and results of calls.
    pub content: bool,
    /// What is taken from clients and sent to servers.
    pub propagation: Propagation,
    /// The most spans, and the most log records, that wait.
    pub queue: usize,
    /// How many of them are sent at once.
    pub batch: usize,
    /// How long they wait for others.
    pub delay: Duration,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
}

/// Where one signal goes.
#[derive(Debug, Clone)]
pub struct SignalSettings {
    /// The URL.
    pub target: Arc<Target>,
    /// The headers of each request. They are never printed.
    pub headers: HeaderMap,
    /// How long a request may take.
    pub timeout: Duration,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// The certificate authorities that are trusted instead of those of the system, as a PEM file.
    pub certificate: Option<PathBuf>,
}

/// The settings, and what could not be used of them.
#[derive(Debug)]
pub struct Resolved {
    /// `None` if nothing is sent.
    pub settings: Option<Settings>,
    /// What could not be used, each as a sentence for people.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the variables, which go before the config. `variable` returns the value of one.
    pub fn resolve(options: &Options, variable: impl Fn(&str) -> Option<String>) -> Resolved {
        let mut reader = Reader {
            options,
            variable: &variable,
            warnings: Vec::new(),
        };
        let settings = reader.settings();
        Resolved {
            settings,
            warnings: reader.warnings,
        }
    }
}

struct Reader<'a> {
    options: &'a Options,
    variable: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<Settings> {
        if self.is_true("OTEL_SDK_DISABLED") {
            return None;
        }
        let [traces, metrics, logs] = Signal::ALL.map(|signal| self.signal(signal));
        if traces.is_none() && metrics.is_none() && logs.is_none() {
            return None;
        }
        let queue = self.number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE, MAX_QUEUE);
        Some(Settings {
            traces,
            metrics,
            logs,
            sampler: self.sampler(),
            resource: self.resource(),
            content: self.options.content,
            propagation: self.propagation(),
            queue,
            batch: self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH.min(queue), queue),
            delay: self.millis("OTEL_BSP_SCHEDULE_DELAY").unwrap_or(DELAY),
            metrics_interval: self
                .millis("OTEL_METRIC_EXPORT_INTERVAL")
                .unwrap_or(self.options.metrics_interval),
        })
    }

    /// Where a signal goes; `None` if it is not sent.
    fn signal(&mut self, signal: Signal) -> Option<SignalSettings> {
        let upper = signal.as_str().to_ascii_uppercase();
        let exporter = format!("OTEL_{upper}_EXPORTER");
        let is_wanted = match self.get(&exporter).as_deref() {
            Some("otlp") => true,
            Some("none") => return None,
            Some(other) => {
                self.warn(format!(
                    "`{exporter}` is `{other}`, and only `otlp` and `none` are known: {signal} are not sent"
                ));
                return None;
            }
            None => false,
        };
        let named = |what: &str| {
            [
                format!("OTEL_EXPORTER_OTLP_{upper}_{what}"),
                format!("OTEL_EXPORTER_OTLP_{what}"),
            ]
        };
        let [own, common] = named("ENDPOINT");
        // That of a signal is used as it is; the path of the signal is added to others.
        let base = |text: &str| match Url::parse(text) {
            Ok(mut url) if url.has_host() => {
                url.set_path(&format!("{}/v1/{signal}", url.path().trim_end_matches('/')));
                url.into()
            }
            // It is said to be none below.
            _ => text.to_owned(),
        };
        let (name, url) = match (self.get(&own), self.get(&common)) {
            (Some(url), _) => (own, url),
            (None, Some(url)) => (common, base(&url)),
            (None, None) => match &self.options.endpoint {
                Some(url) => ("serve.telemetry.endpoint".to_owned(), base(url)),
                None if is_wanted => (exporter, base(LOCAL)),
                None => return None,
            },
        };
        if !is_wanted && !self.options.signals.contains(&signal) {
            return None;
        }
        let target = Url::parse(&url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some(target) = target.and_then(|url| Target::new(url).ok()) else {
            self.warn(format!("`{name}` is no http or https URL: {signal} are not sent"));
            return None;
        };
        self.check_protocol(&named("PROTOCOL"));
        self.check_client_certificate(&named("CLIENT_CERTIFICATE"));
        let timeout = named("TIMEOUT").iter().find_map(|name| self.millis(name));
        Some(SignalSettings {
            target: Arc::new(target),
            headers: self.headers(&named("HEADERS")),
            timeout: timeout.unwrap_or(self.options.timeout),
            gzip: self.gzip(&named("COMPRESSION")),
            certificate: self.first(&named("CERTIFICATE")).map(|(_, path)| path.into()),
        })
    }

    fn check_protocol(&mut self, names: &[String]) {
        if let Some((name, protocol)) = self.first(names)
            && protocol != "http/protobuf"
        {
            self.warn(format!(
                "`{name}` is `{protocol}`, and only `http/protobuf` is supported: that is used"
            ));
        }
    }

    fn check_client_certificate(&mut self, names: &[String]) {
        if let Some((name, _)) = self.first(names) {
            self.warn(format!(
                "`{name}` is not supported: no client certificate is sent to the collector"
            ));
        }
    }

    fn gzip(&mut self, names: &[String]) -> bool {
        match self.first(names) {
            None => self.options.gzip,
            Some((name, word)) => match &*word {
                "gzip" => true,
                "none" => false,
                _ => {
                    self.warn(format!(
                        "`{name}` is `{word}`, and only `gzip` and `none` are known: nothing is compressed"
                    ));
                    false
                }
            },
        }
    }

    /// The headers of the config, and those of the variable in place of them where they have the same name.
    fn headers(&mut self, names: &[String]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let options = self.options;
        for (name, value) in &options.headers {
            self.add_header(&mut headers, "serve.telemetry.headers", name, value.expose());
        }
        if let Some((variable, text)) = self.first(names) {
            for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
                match pair.split_once('=') {
                    Some((name, value)) => {
                        let value = percent_decoded(value.trim());
                        self.add_header(&mut headers, &variable, name.trim(), &value);
                    }
                    // Not quoted, because it may be a secret.
                    None => self.warn(format!("`{variable}` has an entry without `=`, which is left out")),
                }
            }
        }
        headers
    }

    fn add_header(&mut self, headers: &mut HeaderMap, source: &str, name: &str, value: &str) {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            (Ok(name), Err(_)) => self.warn(format!("`{source}` has a value of `{name}` that HTTP does not allow")),
            // Not quoted, because it may be a secret.
            (Err(_), _) => self.warn(format!("`{source}` has a header with a name that HTTP does not allow")),
        }
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.get("OTEL_TRACES_SAMPLER") else {
            return self.options.sampler;
        };
        let ratio = match self.get("OTEL_TRACES_SAMPLER_ARG").map(|text| text.parse::<f64>()) {
            None => 1.0,
            Some(Ok(ratio)) if (0.0..=1.0).contains(&ratio) => ratio,
            Some(_) => {
                self.warn("`OTEL_TRACES_SAMPLER_ARG` is no number from 0 to 1: 1 is used".to_owned());
                1.0
            }
        };
        Sampler::new(&name, ratio).unwrap_or_else(|error| {
            self.warn(format!("`OTEL_TRACES_SAMPLER`: {error}; that of the config is used"));
            self.options.sampler
        })
    }

    fn resource(&mut self) -> Vec<(String, String)> {
        let mut resource = self.options.resource.clone();
        for pair in self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default().split(',') {
            if let Some((name, value)) = pair.split_once('=') {
                resource.insert(percent_decoded(name.trim()), percent_decoded(value.trim()));
            } else if !pair.trim().is_empty() {
                self.warn(format!(
                    "`OTEL_RESOURCE_ATTRIBUTES` has an entry without `=`: `{}`",
                    pair.escape_debug()
                ));
            }
        }
        let service = self.get("OTEL_SERVICE_NAME");
        if let Some(name) = service {
            resource.insert("service.name".to_owned(), name);
        }
        let mut default = |name: &str, value: &str| {
            resource.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        };
        default("service.name", &self.options.service_name);
        default("service.version", env!("CARGO_PKG_VERSION"));
        default("telemetry.sdk.language", "rust");
        default("telemetry.sdk.name", "pegboard");
        default("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
        default("process.pid", &std::process::id().to_string());
        resource.into_iter().collect()
    }

    fn propagation(&mut self) -> Propagation {
        let Some(text) = self.get("OTEL_PROPAGATORS") else {
            return Propagation::default();
        };
        let mut propagation = Propagation {
            trace_context: false,
            baggage: false,
        };
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "tracecontext" => propagation.trace_context = true,
                "baggage" => propagation.baggage = true,
                "none" => {}
                _ => self.warn(format!(
                    "`OTEL_PROPAGATORS` has `{}`, and only `tracecontext`, `baggage` and `none` are known",
                    word.escape_debug()
                )),
            }
        }
        propagation
    }

    /// The value of a variable. An empty one counts as one that is not set.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// The first of these variables that is set.
    fn first(&self, names: &[String]) -> Option<(String, String)> {
        names.iter().find_map(|name| Some((name.clone(), self.get(name)?)))
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    fn number(&mut self, name: &str, default: usize, most: usize) -> usize {
        match self.get(name).map(|text| text.parse()) {
            None => default,
            Some(Ok(number)) if (1..=most).contains(&number) => number,
            Some(_) => {
                self.warn(format!("`{name}` is no number from 1 to {most}: {default} is used"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str) -> Option<Duration> {
        match self.get(name)?.parse() {
            Ok(millis) if (1..=86_400_000).contains(&millis) => Some(Duration::from_millis(millis)),
            _ => {
                self.warn(format!(
                    "`{name}` is no number of milliseconds from 1 to 86400000, and is not used"
                ));
                None
            }
        }
    }

    fn warn(&mut self, warning: String) {
        // What holds for all signals is said once.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Replaces `%20` and the like.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let is_hex = |digits: &&str| bytes[at] == b'%' && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = text.get(at + 1..at + 3).filter(is_hex);
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(options: &Options, variables: &[(&str, &str)]) -> Resolved {
        Settings::resolve(options, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn url(signal: Option<&SignalSettings>) -> Option<&str> {
        signal.map(|signal| signal.target.url().as_str())
    }

    #[test]
    fn nothing_is_sent_unless_it_is_configured() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=b")],
            &[
                ("OTEL_SDK_DISABLED", "true"),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ],
            &[("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let resolved = resolve(&Options::default(), variables);
            assert!(
                resolved.settings.is_none() && resolved.warnings.is_empty(),
                "{resolved:?}"
            );
        }
    }

    #[test]
    fn the_endpoint_of_a_signal_is_used_as_it_is_and_a_path_is_added_to_the_common_one() {
        let options = Options {
            endpoint: Some("https://config.example.com".to_owned()),
            ..Options::default()
        };
        let settings = resolve(&options, &[]).settings.unwrap();
        assert_eq!(
            url(settings.traces.as_ref()),
            Some("https://config.example.com/v1/traces")
        );
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/"),
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l:1/in"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ];
        let settings = resolve(&options, &variables).settings.unwrap();
        assert_eq!(url(settings.traces.as_ref()), Some("http://c:4318/base/v1/traces"));
        assert_eq!(url(settings.logs.as_ref()), Some("http://l:1/in"));
        assert_eq!(url(settings.metrics.as_ref()), None);
        let settings = resolve(&Options::default(), &[("OTEL_TRACES_EXPORTER", "otlp")])
            .settings
            .unwrap();
        assert_eq!(url(settings.traces.as_ref()), Some("http://localhost:4318/v1/traces"));
        assert!(settings.logs.is_none() && settings.metrics.is_none());
    }

    #[test]
    fn variables_go_before_the_config_and_complete_it() {
        let options = Options {
            endpoint: Some("http://c:4318".to_owned()),
            headers: BTreeMap::from([
                ("api-key".to_owned(), Secret::from("of config")),
                ("tenant".to_owned(), Secret::from("a")),
            ]),
            resource: BTreeMap::from([("deployment.environment.name".to_owned(), "prod".to_owned())]),
            ..Options::default()
        };
        let variables = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=two%20words,x=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=tools,service.name=ignored"),
            ("OTEL_SERVICE_NAME", "gateway"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "700"),
            ("OTEL_PROPAGATORS", "tracecontext"),
        ];
        let Resolved { settings, warnings } = resolve(&options, &variables);
        let settings = settings.unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let (traces, logs) = (settings.traces.unwrap(), settings.logs.unwrap());
        let headers: Vec<(&str, &str)> = logs
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, [("api-key", "two words"), ("tenant", "a"), ("x", "1")]);
        assert!(!format!("{logs:?}").contains("two words"), "headers are never printed");
        assert_eq!((traces.timeout.as_millis(), logs.timeout.as_millis()), (250, 1500));
        assert!(traces.gzip);
        let resource: BTreeMap<_, _> = settings.resource.into_iter().collect();
        assert_eq!((&*resource["service.name"], &*resource["team"]), ("gateway", "tools"));
        assert_eq!(resource["deployment.environment.name"], "prod");
        assert_eq!(settings.sampler, Sampler::new("traceidratio", 0.25).unwrap());
        assert_eq!((settings.queue, settings.batch), (100, 100));
        assert_eq!(settings.delay, Duration::from_millis(50));
        assert_eq!(settings.metrics_interval, Duration::from_millis(700));
        assert!(settings.propagation.trace_context && !settings.propagation.baggage);
    }

    #[test]
    fn what_cannot_be_used_is_said_once_and_in_words() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_LOGS_EXPORTER", "console"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            ("OTEL_PROPAGATORS", "b3"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ];
        let Resolved { settings, warnings } = resolve(&Options::default(), &variables);
        assert!(settings.unwrap().logs.is_none());
        let text = warnings.join("\n");
        for part in [
            "`OTEL_EXPORTER_OTLP_PROTOCOL` is `grpc`, and only `http/protobuf` is supported",
            "`zstd`",
            "an entry without `=`",
            "`OTEL_EXPORTER_OTLP_TIMEOUT` is no number",
            "`OTEL_LOGS_EXPORTER` is `console`",
            "`jaeger_remote` is no sampler",
            "`OTEL_PROPAGATORS` has `b3`",
            "`OTEL_BSP_MAX_QUEUE_SIZE` is no number from 1 to 65536",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{part} in:\n{text}");
        }
        assert!(!text.contains("s3cret"), "{text}");
    }
}
