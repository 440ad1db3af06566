//! A program that embeds a board, as its own process: the example `shimmed`.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{FakeServer, is_alive};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Whether the program calls the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    Called,
    LeftOut,
}

pub(crate) const BOTH: [Hook; 2] = [Hook::Called, Hook::LeftOut];

/// A running program and the folder of its files.
pub(crate) struct Program {
    pub(crate) folder: TempDir,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts the program with the servers that `servers` returns for its folder.
    pub(crate) fn start(hook: Hook, servers: impl FnOnce(&Path) -> Value) -> Self {
        Self::start_by(Command::new(executable()), hook, servers)
    }

    /// The same by another command, which gets the program's command line as arguments.
    pub(crate) fn start_by(mut command: Command, hook: Hook, servers: impl FnOnce(&Path) -> Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.json");
        std::fs::write(&config, json!({ "servers": servers(folder.path()) }).to_string()).unwrap();
        command.arg(config);
        if hook == Hook::LeftOut {
            command.arg("--unhooked");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            folder,
            child,
            input,
            output,
        }
    }

    /// Waits for the next status that it prints.
    pub(crate) fn status(&mut self) -> Value {
        let line = self.output.next().expect("the program runs").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a command to the program, and waits until it is done.
    pub(crate) fn tell(&mut self, what: &str) -> Value {
        writeln!(self.input, "{what}").unwrap();
        self.status()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a server is ready, and returns its process id.
    pub(crate) fn ready(&mut self, server: &str) -> u32 {
        self.ready_after(server, 0)
    }

    /// Waits until a server is ready in another process than `before`, and returns its process id.
    pub(crate) fn ready_after(&mut self, server: &str, before: u32) -> u32 {
        for _ in 0..600 {
            let status = self.tell("status");
            let servers = status["servers"].as_array().unwrap().iter();
            let mut found = servers.filter(|found| found["name"] == server && found["state"] == "ready");
            let pid = found.next().and_then(|found| found["pid"].as_u64());
            if let Some(pid) = pid.filter(|pid| *pid != u64::from(before)) {
                return u32::try_from(pid).unwrap();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{server} is not ready: {}", self.tell("status"));
    }

    /// Waits until the file has this many process ids.
    pub(crate) fn pids(&self, file: &str, count: usize) -> Vec<u32> {
        let path = self.folder.path().join(file);
        let read = || pegboard_testkit::read_pids(&path);
        assert!(within(20_000, || read().len() >= count), "{file} has {:?}", read());
        read()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The executable of the example, next to the running test.
pub(crate) fn executable() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let path = folder.join("examples/shimmed");
    assert!(path.is_file(), "run `cargo build -p pegboard --example shimmed` first");
    path
}

/// The settings of a fake as a stdio server.
pub(crate) fn fake(fake: &FakeServer) -> Value {
    let (program, args) = fake.command();
    json!({ "command": program, "args": args })
}

/// The settings of a shell script that is not a server.
pub(crate) fn script(text: &str) -> Value {
    // In a config `$$` is an escaped `$`.
    json!({ "command": "/bin/sh", "args": ["-c", text.replace('$', "$$")], "era": "legacy" })
}

/// Whether a condition becomes true within this many milliseconds.
pub(crate) fn within(millis: u64, mut condition: impl FnMut() -> bool) -> bool {
    let tick = 5;
    for _ in 0..millis / tick {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(tick));
    }
    condition()
}

/// Panics if one of the processes lives longer than this.
pub(crate) fn gone(pids: &[u32], millis: u64, context: &str) {
    let alive = || pids.iter().copied().filter(|pid| is_alive(*pid)).collect::<Vec<_>>();
    if !within(millis, || alive().is_empty()) {
        let left = alive();
        left.iter().for_each(|pid| pegboard_testkit::kill(*pid));
        panic!("{context}: {left:?} of {pids:?} were left behind");
    }
}

/// An unrelated process in our own process group.
pub(crate) struct UnrelatedProcess(Child);

impl UnrelatedProcess {
    pub(crate) fn start() -> Self {
        Self(Command::new("sleep").arg("300").spawn().unwrap())
    }

    pub(crate) fn is_well(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for UnrelatedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The parent of a process and its state.
pub(crate) fn stat(pid: u32) -> Option<(u32, char)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

/// All processes.
pub(crate) fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}
