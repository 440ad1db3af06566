//! Programs that join a daemon over HTTP: one in Rust with the library, one in Python with the official SDK. Each calls a tool whenever it is
//! told to, until it is killed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use pegboard::{Config, Outcome, Pegboard, ServerConfig, ToolCall};
use serde_json::{Value, json};

/// How long an answer may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variable with the endpoint for the program in Rust.
const URL: &str = "PEGBOARD_TEST_AGENT";

/// A running program. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<Value>,
}

/// What became of a call, as the program was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The text of the result.
    Done(String),
    /// It may have run.
    Lost,
    /// It did not run.
    Refused,
}

impl Agent {
    /// The program in Rust: this test binary.
    pub(crate) fn rust(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = concat!(module_path!(), "::the_program_in_rust");
        let (_crate, name) = name.split_once("::").unwrap();
        command.args(["--ignored", "--exact", "--nocapture", name]);
        command.env(URL, url);
        Self::start(command)
    }

    /// The program in Python.
    pub(crate) fn python(url: &str) -> Self {
        let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let peers = repository.join("target/peers/python-modern");
        assert!(peers.join(".stamp").exists(), "run scripts/peers first");
        let mut command = Command::new(peers.join("bin/python"));
        command
            .arg(repository.join(Path::new("tests/peers/clients/python_caller.py")))
            .arg(url)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Self::start(command)
    }

    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test harness writes lines of its own.
                let answer = serde_json::from_str(&line);
                if answer.is_ok_and(|answer| sender.send(answer).is_err()) {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take().unwrap(),
            answers,
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Begins a call of a tool.
    pub(crate) fn call(&mut self, tool: &str) {
        writeln!(self.stdin, "{tool}").unwrap();
    }

    /// Waits for the answer to a call; `None` if the program was killed.
    #[track_caller]
    pub(crate) fn answer(&self) -> Option<Told> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => Some(Told::of(&answer)),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no answer in {PATIENCE:?}: {self:?}"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    /// Reads a message that has a result of a call, or an error.
    #[track_caller]
    pub(crate) fn of(message: &Value) -> Self {
        let result = &message["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        if result.is_object() && result["isError"] != true {
            return Self::Done(text.to_owned());
        }
        match result["_meta"]["pegboard/may_have_executed"].as_bool() {
            Some(false) => Self::Refused,
            Some(true) => Self::Lost,
            None => {
                assert!(!message["error"].is_null(), "nothing is told: {message}");
                Self::Lost
            }
        }
    }
}

/// The program in Rust. It keeps one board, whose only server is the daemon.
#[test]
#[ignore = "the process that other tests start"]
fn the_program_in_rust() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let config = Config::new().server("daemon", ServerConfig::http(url.as_str()).unwrap());
    let board = Pegboard::builder(config.unwrap()).open();
    let tools = board.toolset();
    for tool in std::io::stdin().lines().map_while(Result::ok) {
        let call = ToolCall::new(format!("daemon.{tool}")).timeout(Duration::from_secs(25));
        let reply = runtime.block_on(tools.call(call));
        let meta = match &reply.outcome {
            Outcome::Done(answer) | Outcome::ToolFailed(answer) => json!(answer.meta),
            outcome => json!({"pegboard/may_have_executed": outcome.may_have_executed()}),
        };
        let content = json!([{"type": "text", "text": reply.text()}]);
        println!(
            "\n{}",
            json!({"result": {"content": content, "isError": reply.is_error(), "_meta": meta}})
        );
    }
}
