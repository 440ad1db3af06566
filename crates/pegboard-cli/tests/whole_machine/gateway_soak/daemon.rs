//! `pegboard serve` as a process with twenty fake servers, and what it holds.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Stdio},
    sync::mpsc,
};

use pegboard_testkit::{Era, FakeServer, Tool, is_alive};

use crate::home::{Home, until};

pub(crate) const SERVERS: usize = 20;

/// The daemon. It is killed when the test is over.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    child: Child,
    pub(crate) address: SocketAddr,
}

/// What the daemon holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Its servers that run.
    pub(crate) servers: usize,
    pub(crate) memory_kb: u64,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        let home = Home::new();
        write_config(&home, 0);
        let mut child = home
            .pegboard(&["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let address = address_of(&mut child);
        Self { home, child, address }
    }

    /// The file that lists the calls that a server executed.
    pub(crate) fn ledger(&self, server: usize) -> PathBuf {
        self.home.path(&format!("ledger{server:02}"))
    }

    /// Kills the process of a server, if it runs.
    pub(crate) fn kill_server(&self, server: usize) -> bool {
        let spawned = self.home.log(&format!("s{server:02}")).spawned;
        let Some(pid) = spawned.last().copied().filter(|pid| is_alive(*pid)) else {
            return false;
        };
        signal("-KILL", pid)
    }

    /// Writes a changed config, and has it loaded.
    pub(crate) fn reload(&self, round: usize) {
        write_config(&self.home, round);
        assert!(signal("-HUP", self.child.id()));
    }

    /// The number of server processes that run, those of earlier starts included.
    fn servers(&self) -> usize {
        let spawned = (0..SERVERS).flat_map(|server| self.home.log(&format!("s{server:02}")).spawned);
        spawned.filter(|pid| is_alive(*pid)).count()
    }

    pub(crate) fn held(&self) -> Held {
        let folder = format!("/proc/{}", self.child.id());
        let count = |name: &str| fs::read_dir(format!("{folder}/{name}")).unwrap().count();
        let status = fs::read_to_string(format!("{folder}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Held {
            descriptors: count("fd"),
            threads: count("task"),
            servers: self.servers(),
            memory_kb: memory.unwrap().trim_end_matches("kB").trim().parse().unwrap(),
        }
    }

    /// Ends the daemon, and checks that it leaves no process.
    pub(crate) fn stop(mut self) {
        assert!(signal("-TERM", self.child.id()));
        assert!(self.child.wait().unwrap().success());
        for server in 0..SERVERS {
            let spawned = self.home.log(&format!("s{server:02}")).spawned;
            until("no server is left", || !spawned.iter().any(|pid| is_alive(*pid)));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(name: &str, pid: u32) -> bool {
    let pid = pid.to_string();
    let sent = std::process::Command::new("kill").args([name, &pid]).status();
    sent.unwrap().success()
}

/// Reads stderr until it names the address. The rest is read and dropped, so that the daemon never waits for it.
fn address_of(child: &mut Child) -> SocketAddr {
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (sender, found) = mpsc::channel();
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            if let Some((_, url)) = line.split_once("http://") {
                let _ = sender.send(url.split('/').next().unwrap().to_owned());
            }
        }
    });
    let address = found.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    address.parse().unwrap()
}

/// Writes the config of all servers. `round` changes one setting of each.
fn write_config(home: &Home, round: usize) {
    let mut text = String::new();
    for server in 0..SERVERS {
        let name = format!("s{server:02}");
        let era = [Era::Legacy, Era::Modern, Era::Both][server % 3];
        let fake = FakeServer::new(&name)
            .era(era)
            .ledger(home.path(&format!("ledger{server:02}")))
            .tool(Tool::new("pay").destructive().echoes_nonce());
        let more = format!(
            "description = \"round {round}\"\ncall_timeout = \"{}s\"\nrestart.backoff = [\"200ms\"]",
            20 + round % 7
        );
        text.push_str(&home.entry(&name, fake, &more));
    }
    home.config(&text);
}
