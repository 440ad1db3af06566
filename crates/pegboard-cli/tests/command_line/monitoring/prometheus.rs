//! A running Prometheus, and its HTTP API.

use std::{
    fs::{self, File},
    io::Write as _,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, SystemTime},
};

use pegboard::url::form_urlencoded;
use serde_json::Value;
use tokio::time::Instant;

use super::{root, succeeds};
use crate::{
    gateway::Response,
    home::{Home, until},
};

/// How long Prometheus may take to see something. It scrapes each second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A Prometheus that scrapes one gateway each second. It is killed when it is dropped.
pub(super) struct Prometheus {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Prometheus {
    /// Starts it with the alerts of `packaging`, and waits until it answers.
    pub(super) fn start(home: &Home, program: &Path, promtool: &Path, gateway: &str) -> Self {
        let token = home.write("prometheus.token", "prometheus");
        let rules = root().join("packaging/prometheus/alerts.yml");
        let config = home.write(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
                 rule_files: [{rules:?}]\n\
                 scrape_configs:\n\
                 - job_name: pegboard\n  \
                   authorization: {{credentials_file: {token:?}}}\n  \
                   static_configs: [{{targets: [{gateway:?}]}}]\n"
            ),
        );
        succeeds(Command::new(promtool).args(["check", "config"]).arg(&config));
        let log = home.path("prometheus.log");
        // The port may be taken in between by another program.
        for _ in 0..5 {
            let address = free_address();
            let child = Command::new(program)
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", home.path("tsdb").display()))
                .arg(format!("--web.listen-address={address}"))
                .arg("--enable-feature=exemplar-storage")
                .stdout(File::create(&log).unwrap())
                .stderr(File::options().append(true).open(&log).unwrap())
                .spawn()
                .unwrap();
            let mut prometheus = Self {
                child,
                address,
                log: log.clone(),
            };
            if prometheus.has_started() {
                return prometheus;
            }
        }
        panic!("it does not start: {}", fs::read_to_string(&log).unwrap());
    }

    fn has_started(&mut self) -> bool {
        let mut has_ended = false;
        until("Prometheus answers or ends", || {
            has_ended = self.child.try_wait().unwrap().is_some();
            has_ended || TcpStream::connect(&self.address).is_ok()
        });
        !has_ended
    }

    /// Polls a condition until it is fulfilled; otherwise it says what is missing.
    #[track_caller]
    pub(super) fn until(&self, what: &str, mut check: impl FnMut() -> Result<(), String>) {
        let begun = Instant::now();
        while let Err(missing) = check() {
            let log = || fs::read_to_string(&self.log).unwrap();
            assert!(begun.elapsed() < PATIENCE, "not yet: {what}: {missing}\n{}", log());
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// The series that a query returns now.
    pub(super) fn query(&self, query: &str) -> Vec<Value> {
        let answer = self.get("/api/v1/query", &[("query", query)]);
        answer["result"].as_array().cloned().unwrap_or_default()
    }

    /// The exemplars of the last ten minutes.
    pub(super) fn exemplars(&self, query: &str) -> Value {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let (from, to) = ((now.as_secs() - 600).to_string(), (now.as_secs() + 60).to_string());
        self.get(
            "/api/v1/query_exemplars",
            &[("query", query), ("start", &from), ("end", &to)],
        )
    }

    /// The data of an answer. A query that is wrong fails the test.
    #[track_caller]
    pub(super) fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let (query, address) = (query.finish(), &self.address);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path}?{query} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let response = Response::read(stream);
        // It says 503 until it has read its storage.
        if response.status == 503 {
            return Value::Null;
        }
        let answer = response.message();
        assert_eq!(answer["status"], "success", "{parameters:?}: {answer:#}");
        answer["data"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nothing listens on.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
