//! A running `pegboard serve`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    sync::mpsc,
    time::Duration,
};

use crate::gateway_clients::{
    processes::{Process, descendants},
    scratch::Scratch,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// The gateway, which is killed when dropped.
#[derive(Debug)]
pub(crate) struct Gateway {
    serve: Child,
    /// Without a path.
    address: String,
}

impl Gateway {
    /// Starts the gateway on a free port and waits until it listens.
    pub(crate) fn start(scratch: &Scratch) -> Self {
        let mut command = scratch.command(pegboard());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        let mut serve = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, told) = mpsc::sync_channel(64);
        drain(serve.stdout.take().unwrap(), tell.clone());
        drain(serve.stderr.take().unwrap(), tell);
        let mut gateway = Self {
            serve,
            address: String::new(),
        };
        let mut said = Vec::new();
        while let Ok(line) = told.recv_timeout(PATIENCE) {
            if let Some(at) = line.find("http://127.0.0.1:") {
                let rest = &line[at..];
                let port = rest["http://127.0.0.1:".len()..]
                    .chars()
                    .take_while(char::is_ascii_digit)
                    .count();
                gateway.address = rest[.."http://127.0.0.1:".len() + port].to_owned();
                return gateway;
            }
            said.push(line);
        }
        panic!("it does not listen: {said:#?}");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// The processes of the configured servers, by the program that they run.
    pub(crate) fn servers(&self) -> BTreeMap<String, Vec<u32>> {
        let mut servers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for process in descendants(self.serve.id()) {
            if let Some(program) = server_program(&process) {
                servers.entry(program).or_default().push(process.pid);
            }
        }
        servers
    }

    /// Sends the signal that service managers send, and waits for the end. Panics if it takes long or fails.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.serve);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let deadline = std::time::SystemTime::now() + PATIENCE;
        loop {
            if let Some(status) = self.serve.try_wait().unwrap() {
                assert!(status.success(), "the gateway ends with {status}");
                return;
            }
            assert!(std::time::SystemTime::now() < deadline, "the gateway does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

/// The built program.
pub(crate) fn pegboard() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pegboard"))
}

/// The script that a server's interpreter runs; `None` for other processes.
fn server_program(process: &Process) -> Option<String> {
    let script = process.words.get(1)?;
    let is_server = ["/server-", "/mcp-server-", "_modern."]
        .iter()
        .any(|part| script.contains(part));
    is_server.then(|| script.clone())
}

/// Reads a stream to its end, so that the gateway is never blocked by a full pipe.
fn drain(stream: impl std::io::Read + Send + 'static, tell: mpsc::SyncSender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // After the address, the lines have no reader.
            let _ = tell.try_send(line);
        }
    });
}
