//! [`Server`]: a redis-server of a test, which ends with it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::fixture::eventually;

/// A sentinel writes what it learns into its config file.
const SENTINEL_CONFIG: &str = "sentinel.conf";

/// A process on a port of its own, with a folder of its own and without persistence.
pub(crate) struct Server {
    process: Child,
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    settings: Vec<String>,
}

impl Server {
    /// Starts a server with these settings beside the usual ones, and waits until it listens.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), settings).await
    }

    /// Starts a sentinel with a config file.
    pub(crate) async fn start_sentinel(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SENTINEL_CONFIG), config).unwrap();
        Self::start_in(folder, &["--sentinel"]).await
    }

    async fn start_in(folder: tempfile::TempDir, settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        // Another process may take the free port first, and then this one ends.
        for _ in 0..20 {
            let port = free_port();
            let mut process = spawn(folder.path(), port, &settings);
            if is_up(&mut process, port).await {
                return Self {
                    process,
                    folder,
                    port,
                    settings,
                };
            }
            kill(&mut process);
        }
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        panic!("redis-server does not start: {log}");
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&mut self) {
        kill(&mut self.process);
    }

    /// Starts it again, empty, on the same port.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        // The port may be busy for a moment.
        for _ in 0..100 {
            self.process = spawn(self.folder.path(), self.port, &self.settings);
            if is_up(&mut self.process, self.port).await {
                return;
            }
        }
        panic!("redis-server does not start again");
    }

    /// Stops the server, which keeps its connections and answers nothing.
    pub(crate) fn stop(&self) {
        self.signal("STOP");
    }

    /// Lets a stopped server go on.
    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Sends a command in words, and returns what comes back first. A server closes its connections when its role changes, so it may take two.
    pub(crate) async fn say(&self, words: &str) -> String {
        eventually(|| async { say(self.port, words).await.ok().filter(|reply| !reply.is_empty()) }).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a command in words to a server of this machine.
pub(crate) async fn say(port: u16, words: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{words}\r\n").as_bytes()).await?;
    let mut reply = vec![0; 64 * 1024];
    let length = stream.read(&mut reply).await?;
    Ok(String::from_utf8_lossy(&reply[..length]).into_owned())
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The program, installed if it can be.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/redis");
        let output = Command::new(script).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

fn spawn(folder: &Path, port: u16, settings: &[String]) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .unwrap();
    let program = program();
    // Where the system can, the server ends with this process, however that ends.
    let mut command = match cfg!(target_os = "linux") && Path::new("/usr/bin/setpriv").exists() {
        true => {
            let mut command = Command::new("/usr/bin/setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    let is_sentinel = settings.iter().any(|setting| setting == "--sentinel");
    if is_sentinel {
        command.arg(folder.join(SENTINEL_CONFIG));
    }
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(folder)
        .args(settings)
        .current_dir(folder)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .stdin(Stdio::null());
    if !is_sentinel {
        command.args(["--save", "", "--appendonly", "no"]);
    }
    command.spawn().unwrap()
}

/// Waits until the server listens. `false` if it ends instead.
async fn is_up(process: &mut Child, port: u16) -> bool {
    loop {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        match say(port, "PING").await {
            // It is this server, and not another one on the port, if it still runs.
            Ok(reply) if !reply.starts_with("-LOADING") => return process.try_wait().unwrap().is_none(),
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(3)).await,
        }
    }
}

fn kill(process: &mut Child) {
    // Both fail only if it has ended already.
    let _ = process.kill();
    let _ = process.wait();
}
