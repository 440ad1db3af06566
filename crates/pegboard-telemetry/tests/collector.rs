//! What becomes of spans while a collector hangs, refuses, answers garbage or is away.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard_base::telemetry::{OpenSpan, SpanKind, Telemetry, TraceContext};
use pegboard_telemetry::{Counts, Exporter, LogRecord, Options, Settings, Severity, Signal};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Whatever should happen happens within this time.
const SOON: Duration = Duration::from_secs(30);

const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A collector that gives each request an answer of its own.
struct Collector {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
struct Request {
    at: Instant,
    head: String,
    body: Vec<u8>,
}

impl Collector {
    /// `answer` gets the number of the request, from 0. `None` is no answer, on a connection that stays open.
    async fn start(answer: impl Fn(usize) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), answer)
    }

    fn on(listener: TcpListener, answer: impl Fn(usize) -> Option<String> + Send + Sync + 'static) -> Self {
        let collector = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
        };
        let (requests, answer) = (collector.requests.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, requests.clone(), answer.clone()));
            }
        });
        collector
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    requests: Arc<Mutex<Vec<Request>>>,
    answer: Arc<impl Fn(usize) -> Option<String>>,
) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|part| part == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        let length: usize = length.parse().unwrap();
        while read.len() < end + length {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let body = read[end..end + length].to_vec();
        read.drain(..end + length);
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(Request {
                at: Instant::now(),
                head,
                body,
            });
            requests.len() - 1
        };
        match answer(number) {
            Some(answer) => {
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// An exporter of spans only, with a queue of 100 and batches of 10.
fn exporter(endpoint: &str, variables: &'static [(&str, &str)]) -> Exporter {
    let options = Options {
        endpoint: Some(endpoint.to_owned()),
        signals: vec![Signal::Traces],
        ..Options::default()
    };
    let settings = Settings::resolve(&options, |name| {
        let value = match name {
            "OTEL_BSP_MAX_QUEUE_SIZE" => Some("100"),
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" => Some("10"),
            "OTEL_BSP_SCHEDULE_DELAY" => Some("1"),
            _ => variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value),
        };
        value.map(str::to_owned)
    });
    assert_eq!(settings.warnings, Vec::<String>::new());
    Exporter::start(settings.settings.unwrap())
}

fn push(exporter: &Exporter, count: usize) {
    for _ in 0..count {
        let telemetry: Arc<dyn Telemetry> = Arc::new(exporter.clone());
        OpenSpan::begin(telemetry, SpanKind::Client, "tools/call t", TraceContext::root(), None).finish();
    }
}

fn counts(exporter: &Exporter) -> Counts {
    exporter.counts()[0].1
}

async fn until(is: impl Fn() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(SOON, waiting).await.expect("it happens soon");
}

/// Collects the lines of the log that warn.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{value:?}"));
            }
        }
        if *event.metadata().level() <= tracing::Level::WARN {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }
    }
}

impl Lines {
    /// Collects the lines of this thread while the guard is held.
    fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let lines = Self::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn spans_are_sent_in_batches_and_the_last_ones_at_the_end() {
    let collector = Collector::start(|_| Some(TAKEN.to_owned())).await;
    let exporter = exporter(&collector.endpoint(), &[("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k")]);
    push(&exporter, 10);
    until(|| counts(&exporter).exported == 10).await;
    push(&exporter, 3);
    exporter.stop().await;
    assert_eq!(
        counts(&exporter),
        Counts {
            exported: 13,
            dropped: 0
        }
    );
    let first = &collector.requests()[0];
    assert!(first.head.starts_with("post /v1/traces http/1.1\r\n"), "{}", first.head);
    assert!(first.head.contains("content-type: application/x-protobuf\r\n"));
    assert!(first.head.contains("api-key: k\r\n"));
    assert!(first.body.windows(12).any(|part| part == b"tools/call t"));
}

#[tokio::test]
async fn a_collector_that_hangs_costs_one_line_and_no_more_than_the_queue() {
    let (lines, _collecting) = Lines::collect();
    let collector = Collector::start(|_| None).await;
    let exporter = exporter(&collector.endpoint(), &[("OTEL_EXPORTER_OTLP_TIMEOUT", "20")]);
    push(&exporter, 10);
    until(|| collector.requests().len() >= 2).await;
    push(&exporter, 5000);
    assert_eq!(
        counts(&exporter),
        Counts {
            exported: 0,
            dropped: 4900
        },
        "100 wait, and 10 are being sent"
    );
    assert_eq!(lines.read().len(), 1, "{:?}", lines.read());
    assert!(
        lines.read()[0].contains("it does not answer within 0.02 s"),
        "{:?}",
        lines.read()
    );
    exporter.stop().await;
}

#[tokio::test]
async fn a_collector_that_is_away_for_an_hour_gets_the_newest_spans_when_it_is_back() {
    let (lines, _collecting) = Lines::collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let exporter = exporter(&format!("http://{address}"), &[]);
    push(&exporter, 10);
    until(|| lines.read().len() == 1).await;
    tokio::time::pause();
    for _minute in 0..60 {
        push(&exporter, 50);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(lines.read().len(), 1, "{:?}", lines.read());
    assert_eq!(
        counts(&exporter),
        Counts {
            exported: 0,
            dropped: 2900
        }
    );
    tokio::time::resume();
    let back = Collector::on(TcpListener::bind(address).await.unwrap(), |_| Some(TAKEN.to_owned()));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(80)).await;
    tokio::time::resume();
    until(|| counts(&exporter).exported == 110).await;
    assert_eq!(back.requests().len(), 11);
    let lines = lines.read();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].ends_with("takes telemetry again"), "{lines:?}");
    exporter.stop().await;
}

#[tokio::test]
async fn garbage_is_no_answer_and_garbage_in_an_answer_says_nothing() {
    let (lines, _collecting) = Lines::collect();
    let collector = Collector::start(|number| {
        Some(match number {
            0 => "\u{1}\u{2} nonsense\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\u{7f}xx".to_owned(),
        })
    })
    .await;
    let exporter = exporter(&collector.endpoint(), &[]);
    push(&exporter, 10);
    until(|| counts(&exporter).exported == 10).await;
    assert_eq!(collector.requests().len(), 2);
    assert_eq!(lines.read().len(), 2, "{:?}", lines.read());
    exporter.stop().await;
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_when_it_says() {
    let collector = Collector::start(|number| {
        Some(match number {
            0 => "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => TAKEN.to_owned(),
        })
    })
    .await;
    let exporter = exporter(&collector.endpoint(), &[]);
    push(&exporter, 10);
    until(|| counts(&exporter).exported == 10).await;
    let requests = collector.requests();
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(2));
    assert_eq!(requests[0].body, requests[1].body);
    exporter.stop().await;
}

#[tokio::test]
async fn what_a_collector_refuses_is_not_sent_again() {
    let answers = AtomicUsize::new(0);
    let collector = Collector::start(move |_| {
        answers.fetch_add(1, Ordering::Relaxed);
        Some("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned())
    })
    .await;
    let exporter = exporter(&collector.endpoint(), &[]);
    push(&exporter, 10);
    until(|| counts(&exporter).dropped == 10).await;
    push(&exporter, 10);
    until(|| counts(&exporter).dropped == 20).await;
    assert_eq!(collector.requests().len(), 2);
    exporter.stop().await;
}

#[tokio::test]
async fn what_a_collector_rejects_in_part_is_counted() {
    // ExportTraceServiceResponse { partial_success { rejected_spans: 4 } }
    let collector =
        Collector::start(|_| Some("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\u{a}\u{2}\u{8}\u{4}".to_owned())).await;
    let exporter = exporter(&collector.endpoint(), &[]);
    push(&exporter, 10);
    until(|| counts(&exporter).exported > 0).await;
    assert_eq!(
        counts(&exporter),
        Counts {
            exported: 6,
            dropped: 4
        }
    );
    exporter.stop().await;
}

#[tokio::test]
async fn a_program_ends_although_its_collector_hangs() {
    let collector = Collector::start(|_| None).await;
    let exporter = exporter(&collector.endpoint(), &[]);
    push(&exporter, 10);
    until(|| !collector.requests().is_empty()).await;
    tokio::time::pause();
    let begun = Instant::now();
    exporter.stop().await;
    assert!(begun.elapsed() <= Duration::from_secs(11), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_compressed_request_says_so() {
    let collector = Collector::start(|_| Some(TAKEN.to_owned())).await;
    let exporter = exporter(&collector.endpoint(), &[("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")]);
    push(&exporter, 10);
    until(|| counts(&exporter).exported == 10).await;
    let request = &collector.requests()[0];
    assert!(request.head.contains("content-encoding: gzip\r\n"), "{}", request.head);
    assert_eq!(request.body[..3], [0x1f, 0x8b, 8]);
    exporter.stop().await;
}

#[tokio::test]
async fn logs_are_sent_only_if_they_are_on() {
    let record = LogRecord {
        at: std::time::SystemTime::now(),
        severity: Severity::Warn,
        body: "something is odd".to_owned(),
        attributes: Vec::new(),
        span: None,
    };
    let collector = Collector::start(|_| Some(TAKEN.to_owned())).await;
    let without = exporter(&collector.endpoint(), &[]);
    without.log(record.clone());
    without.stop().await;
    assert_eq!(collector.requests().len(), 0);
    let with = exporter(&collector.endpoint(), &[("OTEL_LOGS_EXPORTER", "otlp")]);
    with.log(record);
    with.stop().await;
    let requests = collector.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].head.starts_with("post /v1/logs "));
    assert!(requests[0].body.windows(16).any(|part| part == b"something is odd"));
}
