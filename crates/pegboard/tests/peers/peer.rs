//! The servers of `scripts/peers`: their location, the command of each, and how to wait for one that listens on a port.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use pegboard::{
    ServerConfig,
    config::{Command, Endpoint, EraChoice, Transport},
};
use pegboard_base::sync::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Child,
    sync::mpsc,
};

use crate::support::*;

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.join("../..").canonicalize().unwrap()
}

/// The folder in which the peers are installed.
pub(crate) fn home() -> PathBuf {
    let home = repository().join("target/peers");
    assert!(home.join("npm/.stamp").exists(), "run scripts/peers first");
    home
}

/// A command line: the program, then its arguments.
pub(crate) type Words = Vec<String>;

fn words<const N: usize>(words: [&Path; N]) -> Words {
    words.map(|word| word.to_str().unwrap().to_owned()).into()
}

fn node() -> PathBuf {
    home().join("npm/node_modules/.bin/node")
}

fn reference(package: &str) -> Words {
    let program = format!("npm/node_modules/@modelcontextprotocol/{package}/dist/index.js");
    words([&node(), &home().join(program)])
}

pub(crate) fn everything() -> Words {
    reference("server-everything")
}

pub(crate) fn filesystem(folder: &Path) -> Words {
    let mut command = reference("server-filesystem");
    command.push(folder.to_str().unwrap().to_owned());
    command
}

/// It keeps its graph in the file that `MEMORY_FILE_PATH` names.
pub(crate) fn memory() -> Words {
    reference("server-memory")
}

pub(crate) fn time() -> Words {
    let program = home().join("python-modern/bin/mcp-server-time");
    words([&program, Path::new("--local-timezone"), Path::new("Etc/UTC")])
}

pub(crate) fn git(repository: &Path) -> Words {
    let program = home().join("python-modern/bin/mcp-server-git");
    words([&program, Path::new("--repository"), repository])
}

pub(crate) fn python_modern() -> Words {
    let program = repository().join("tests/peers/python_modern.py");
    words([&home().join("python-modern/bin/python"), &program])
}

pub(crate) fn typescript_modern() -> Words {
    let program = repository().join("tests/peers/typescript_modern.mjs");
    words([&node(), &program])
}

pub(crate) fn python_features() -> Words {
    let program = repository().join("tests/peers/python_features.py");
    words([&home().join("python-modern/bin/python"), &program])
}

pub(crate) fn typescript_features() -> Words {
    let program = repository().join("tests/peers/typescript_features.mjs");
    words([&node(), &program])
}

#[cfg(feature = "oauth")]
fn python(program: &str) -> Words {
    let program = repository().join("tests/peers").join(program);
    words([&home().join("python-modern/bin/python"), &program])
}

fn python_websocket() -> Words {
    let program = repository().join("tests/peers/python_websocket.py");
    words([&home().join("python-legacy/bin/python"), &program])
}

pub(crate) fn command(words: &[String]) -> Command {
    Command::new(&words[0]).args(&words[1..])
}

/// A server on stdio. A busy machine may make it slow, which is no reason to try the other era.
pub(crate) fn stdio(words: &[String]) -> ServerConfig {
    patient(command(words))
}

fn patient(command: Command) -> ServerConfig {
    let mut config = ServerConfig::new(Transport::Stdio(command));
    config.limits.era_silence = PATIENCE;
    config
}

pub(crate) fn memory_in(file: &Path) -> ServerConfig {
    patient(command(&memory()).env("MEMORY_FILE_PATH", file.to_str().unwrap()))
}

pub(crate) fn in_era(mut config: ServerConfig, era: EraChoice) -> ServerConfig {
    config.era = era;
    config
}

/// A server that listens on a port, and its output. It is killed when dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) url: String,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Listening {
    pub(crate) async fn everything_http() -> Self {
        let ready = "MCP Streamable HTTP Server listening on port";
        Self::on_free_port("streamableHttp", ready, "mcp").await
    }

    pub(crate) async fn everything_sse() -> Self {
        Self::on_free_port("sse", "Server is running on port", "sse").await
    }

    pub(crate) async fn python_modern() -> Self {
        Self::on_any_port(python_modern(), "--http").await
    }

    pub(crate) async fn typescript_modern() -> Self {
        Self::on_any_port(typescript_modern(), "--http").await
    }

    pub(crate) async fn python_features() -> Self {
        Self::on_any_port(python_features(), "--http").await
    }

    pub(crate) async fn typescript_features() -> Self {
        Self::on_any_port(typescript_features(), "--http").await
    }

    pub(crate) async fn python_websocket() -> Self {
        Self::on_any_port(python_websocket(), "--port").await
    }

    #[cfg(feature = "oauth")]
    pub(crate) async fn python_sdk_oauth() -> Self {
        Self::on_any_port(python("python_sdk_oauth.py"), "--http").await
    }

    #[cfg(feature = "oauth")]
    pub(crate) async fn fastmcp_oauth() -> Self {
        Self::on_any_port(python("fastmcp_oauth.py"), "--http").await
    }

    /// A server that does not print its port is given a free one. Another process may take that port first, so the start is retried.
    async fn on_free_port(mode: &str, ready: &str, path: &str) -> Self {
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = everything();
            command.push(mode.to_owned());
            let started = Self::start(&command, &[("PORT", port.to_string())], ready).await;
            if let Some(mut server) = started {
                server.url = format!("http://127.0.0.1:{port}/{path}");
                return server;
            }
        }
        panic!("no port was free for {mode}");
    }

    /// A server that prints its address chooses a port by itself.
    async fn on_any_port(mut command: Words, option: &str) -> Self {
        command.extend([option.to_owned(), "0".to_owned()]);
        let ready = "listening on ";
        let mut server = Self::start(&command, &[], ready).await.expect("it starts");
        let line = server.line_with(ready).expect("it was waited for");
        server.url = line.trim_start_matches(ready).to_owned();
        server
    }

    /// Starts a server and waits for a line that contains `ready`. Returns `None` if it exits before.
    async fn start(command: &[String], env: &[(&str, String)], ready: &str) -> Option<Self> {
        let mut child = tokio::process::Command::new(&command[0])
            .args(&command[1..])
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (tell, mut told) = mpsc::channel(1);
        drain(child.stdout.take().unwrap(), lines.clone(), tell.clone());
        drain(child.stderr.take().unwrap(), lines.clone(), tell);
        let server = Self {
            url: String::new(),
            child,
            lines,
        };
        let waiting = async {
            loop {
                if server.line_with(ready).is_some() {
                    return true;
                }
                if told.recv().await.is_none() {
                    return false;
                }
            }
        };
        let started = tokio::time::timeout(PATIENCE, waiting).await;
        let started = started.unwrap_or_else(|_| panic!("{command:?} is not ready: {:?}", server.lines));
        started.then_some(server)
    }

    /// The first line of output that contains `part`.
    pub(crate) fn line_with(&self, part: &str) -> Option<String> {
        let lines = self.lines.lock();
        lines.iter().find(|line| line.contains(part)).cloned()
    }

    /// Waits until the output has a line that contains `part`.
    pub(crate) async fn says(&self, part: &str) {
        until(part, || self.line_with(part).is_some()).await;
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        endpoint(&self.url)
    }

    /// The server at this address, with its transport left open.
    pub(crate) fn config(&self) -> ServerConfig {
        at(&self.url)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }
}

/// Reads a stream to its end, so that the server is never blocked by a full pipe.
fn drain(stream: impl AsyncRead + Send + Unpin + 'static, lines: Arc<Mutex<Vec<String>>>, tell: mpsc::Sender<()>) {
    tokio::spawn(async move {
        let mut reading = BufReader::new(stream).lines();
        while let Ok(Some(line)) = reading.next_line().await {
            lines.lock().push(line);
            // A full channel means that the reader is woken already.
            let _ = tell.try_send(());
        }
    });
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain until: {what}"));
}
