//! A program with a hostile server and another one, and what the hostile one attacks.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{PermissionsExt as _, chown},
            net::{SocketAddr, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{Answer, EscapeTargets, FakeServer, Tool, fake_server_binary};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kernel::{Need, accept_refusal};

/// The user that the program runs as if the tests run as root.
const NOBODY: u32 = 65534;

/// Files, sockets and a home directory for one program.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _socket: UnixListener,
    _abstract_socket: UnixListener,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for inner in [
            "bin",
            "home/.ssh",
            "home/.kube",
            "work",
            "foreign",
            "extra",
            "out",
            "tmp",
        ] {
            fs::create_dir_all(path.join(inner)).unwrap();
        }
        for file in ["home/.ssh/id_test", "home/.kube/config", "foreign/secret", "extra/file"] {
            fs::write(path.join(file), "legible").unwrap();
        }
        for (from, name) in [(executable(), "shimmed"), (fake_server_binary(), "fake")] {
            fs::copy(from, path.join("bin").join(name)).unwrap();
        }
        let socket = UnixListener::bind(path.join("socket")).unwrap();
        fs::set_permissions(path.join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
        if is_root() {
            for inner in [
                "home",
                "home/.ssh",
                "home/.ssh/id_test",
                "home/.kube",
                "home/.kube/config",
                "work",
                "foreign",
                "foreign/secret",
                "extra",
                "out",
                "tmp",
            ] {
                chown(path.join(inner), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let address = SocketAddr::from_abstract_name(abstract_name(&path)).unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _socket: socket,
            _abstract_socket: UnixListener::bind_addr(&address).unwrap(),
            folder,
        }
    }

    pub(crate) fn path(&self, inner: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(inner)
    }

    pub(crate) fn tcp_port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    /// The settings of a fake server.
    fn fake(&self, fake: &FakeServer) -> Value {
        let (_, args) = fake.command();
        json!({ "command": self.path("bin/fake"), "args": args, "cwd": self.path("work"), "restart": false })
    }

    /// The settings of the hostile server with this sandbox.
    pub(crate) fn hostile(&self, sandbox: &Value) -> Value {
        let mut server = self.fake(&FakeServer::new("fx").tool(Tool::new("escape").answers(Answer::Escape)));
        server["sandbox"] = sandbox.clone();
        server
    }

    /// The settings of a script that writes to its stderr and exits.
    pub(crate) fn script(&self, text: &str, sandbox: &Value) -> Value {
        let text = format!("read line; exec >&2; {text}; exit 1").replace('$', "$$");
        let args = ["-c", text.as_str()];
        json!({ "command": "/bin/sh", "args": args, "era": "legacy", "restart": false, "cwd": self.path("work"), "sandbox": sandbox })
    }

    /// Starts the program with one server `fx` with these settings and a server `other`.
    pub(crate) fn start(&self, server: &Value, is_hooked: bool) -> Program {
        let mut other = self.fake(&FakeServer::new("other"));
        other["env"] = json!({ "TOKEN_OF_OTHER": "canary" });
        let config = self.path("config.json");
        fs::write(
            &config,
            json!({ "servers": { "fx": server, "other": other } }).to_string(),
        )
        .unwrap();
        let mut command = Command::new(self.path("bin/shimmed"));
        command.arg(config).args((!is_hooked).then_some("--unhooked"));
        command.env("HOME", self.path("home"));
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
        ] {
            command.env(name, "canary");
        }
        // Not for the server, which gets a private folder in it.
        command.env("TMPDIR", self.path("tmp"));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Program { child, input, output };
        program.read();
        program
    }

    /// Makes all attempts of the hostile server, and returns their results.
    pub(crate) fn attempts(&self, program: &mut Program) -> Value {
        let sibling = program.server("other")["pid"].as_u64().expect("the other server runs");
        let sibling = u32::try_from(sibling).unwrap();
        let targets = EscapeTargets {
            home: self.path("home"),
            foreign_file: self.path("foreign/secret"),
            program: program.child.id(),
            guard: parent(sibling),
            sibling,
            tcp: self.tcp_port(),
            udp: self.udp.local_addr().unwrap().port(),
            abstract_socket: abstract_name(&self.path("")),
            socket: self.path("socket"),
        };
        fs::write(self.path("work/targets.json"), serde_json::to_string(&targets).unwrap()).unwrap();
        let reply = program.tell("call fx.escape");
        let text = reply["text"].as_str().expect("a text");
        let (start, end) = (text.find('{'), text.rfind('}'));
        let (Some(start), Some(end)) = (start, end) else {
            panic!("no table: {text}");
        };
        serde_json::from_str(&text[start..=end]).unwrap()
    }
}

/// A running program.
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn read(&mut self) -> Value {
        let line = self.output.next().expect("the program runs").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a command to the program, and waits until it is done.
    pub(crate) fn tell(&mut self, what: &str) -> Value {
        writeln!(self.input, "{what}").unwrap();
        self.read()
    }

    /// The status of a server.
    pub(crate) fn server(&mut self, name: &str) -> Value {
        let status = self.tell("status");
        let mut servers = status["servers"].as_array().unwrap().iter();
        servers.find(|server| server["name"] == name).unwrap().clone()
    }

    /// What a script wrote to its stderr.
    pub(crate) fn stderr(&mut self) -> String {
        let server = self.server("fx");
        server["last_error"]["stderr"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the server does not run because this kernel does not offer what its sandbox needs. Panics if the kernel offers it.
    pub(crate) fn is_refused(&mut self, need: Need) -> bool {
        let server = self.server("fx");
        let message = server["last_error"]["message"].as_str().unwrap_or_default();
        let is_refused = message.contains("is not in force");
        if is_refused {
            accept_refusal(need, is_root().then_some(NOBODY), message);
        }
        is_refused
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether no process has this folder on its command line after a while.
pub(crate) fn is_left_by_all(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap().as_bytes();
    let is_named = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(folder.len()).any(|part| part == folder)
    };
    for _ in 0..1000 {
        let processes = fs::read_dir("/proc").unwrap();
        let mut pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        if !pids.any(|pid| is_named(&pid)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

fn abstract_name(folder: &Path) -> String {
    format!("pegboard-test{}", folder.display())
        .trim_end_matches('/')
        .to_owned()
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The executable of the example, next to the running test.
fn executable() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/shimmed");
    assert!(path.is_file(), "run `cargo build -p pegboard --example shimmed` first");
    path
}
