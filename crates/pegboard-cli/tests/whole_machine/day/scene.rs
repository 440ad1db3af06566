//! What a day is played with: a home folder, the config of the gateway, a program that is not there yet, and a remote server behind TLS.

use std::{fs, time::Duration};

use pegboard::config::TokenDigest;
use pegboard_base::sync::{Mutex, MutexGuard};
use pegboard_testkit::{FakeServer, NetHandle, Tool, is_alive};
use tokio::{runtime::Runtime, time::Instant};

use crate::{
    day::tls_front::{Authority, Front},
    gateway::Served,
    home::Home,
};

/// How long a step may take. Only a failing test waits that long: a step that succeeds takes seconds, most of them intervals of the config.
const PATIENCE: Duration = Duration::from_secs(100);

/// How long a condition that is not met yet is left alone.
const POLL: Duration = Duration::from_millis(100);

/// The things of one day.
pub(crate) struct Scene {
    pub(crate) preset: &'static str,
    pub(crate) scope: &'static str,
    pub(crate) home: Home,
    runtime: Runtime,
    authority: Authority,
    front: Mutex<Front>,
    /// The plain server behind the front.
    _web: NetHandle,
}

impl Scene {
    pub(crate) fn new(preset: &'static str, scope: &'static str, number: u8) -> Self {
        let home = Home::new();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let web = FakeServer::new("web").tool(Tool::new("read").answers_text("read it"));
        let web = runtime.block_on(web.serve_http()).unwrap();
        let front = runtime.block_on(Front::new(number, web.address()));
        let authority = Authority::new();
        authority.write(&home.path("ca.pem"));
        let scene = Self {
            preset,
            scope,
            home,
            runtime,
            authority,
            front: Mutex::new(front),
            _web: web,
        };
        scene.write_config("");
        scene
    }

    /// The setting with a tenth of the preset's backoff, which in a day would be reset by minutes of health. None if restarts have no backoff.
    fn short_backoff(&self) -> &'static str {
        match self.preset {
            "ai-agent" => "restart = { backoff = ['0s', '100ms', '200ms', '500ms', '1s', '3s', '6s'] }",
            "goat" | "minion" => "restart = { backoff = ['100ms', '200ms', '400ms', '800ms', '1600ms', '3s'] }",
            _ => "",
        }
    }

    /// Writes the config, with more servers at its end. Intervals are short, and tools have the same names under every preset.
    pub(crate) fn write_config(&self, more: &str) {
        let (preset, scope, home) = (self.preset, self.scope, &self.home);
        let digest = TokenDigest::compute("pgb_day");
        let gate = home.path("gate");
        let proc = FakeServer::new("proc")
            .tool(Tool::new("work").shows_pid())
            .tool(Tool::new("slow").waits_at(gate.display().to_string()));
        let command = home.command_of("proc", proc);
        let (file, attempts) = (home.path("installed"), home.path("attempts"));
        let script = format!(
            "echo start >> {}; [ -e {} ] || exit 7; exec {command}",
            attempts.display(),
            file.display()
        );
        let url = format!("https://{}/mcp", self.front().address);
        let ca = home.path("ca.pem");
        home.config(&format!(
            "preset = '{preset}'\nnaming = 'dunder'\nhealth_interval = '2s'\nstop_timeout = '500ms'\n{}\n\
             [serve.tokens.day]\nsha256 = '{digest}'\nscopes = ['read', 'call', 'admin']\n\
             [servers.proc]\ncommand = '/bin/sh'\nargs = ['-c', {script:?}]\nera = 'legacy'\nscope = '{scope}'\nrequired = true\n\
             [servers.web]\nurl = '{url}'\ntls = {{ ca = '{}' }}\nscope = '{scope}'\nrequired = true\n{more}\n",
            self.short_backoff(),
            ca.display(),
        ));
    }

    /// Installs the program of the process.
    pub(crate) fn install(&self) {
        fs::write(self.home.path("installed"), "").unwrap();
    }

    /// How often the program of the process was started, with and without success.
    pub(crate) fn attempts(&self) -> usize {
        fs::read_to_string(self.home.path("attempts")).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn stop_web(&self) {
        let _inside = self.runtime.enter();
        self.front().stop();
    }

    pub(crate) fn open_web(&self) {
        let mut front = self.front();
        let identity = self.authority.identity(front.address);
        self.runtime.block_on(front.open(identity));
    }

    /// Opens the remote server with a certificate of an untrusted authority.
    pub(crate) fn open_web_with_wrong_certificate(&self) {
        let mut front = self.front();
        let identity = Authority::new().identity(front.address);
        self.runtime.block_on(front.open(identity));
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock()
    }

    /// The processes of a server that run.
    pub(crate) fn running(&self, server: &str) -> Vec<u32> {
        let spawned = self.home.log(server).spawned;
        spawned.into_iter().filter(|pid| is_alive(*pid)).collect()
    }

    /// The processes that were started in this home, by anyone: the gateway, its guard, and servers.
    pub(crate) fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.home.path("").display());
        let home = home.trim_end_matches('/');
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|one| one == home.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                found.push(format!("{} {line}", entry.file_name().display()));
            }
        }
        found
    }

    /// Polls until a condition holds. The condition says why it does not yet.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut check: impl FnMut() -> Result<(), String>) {
        let began = Instant::now();
        loop {
            let Err(reason) = check() else { return };
            let (preset, scope) = (self.preset, self.scope);
            assert!(
                began.elapsed() < PATIENCE,
                "{preset}/{scope}: it never came to this: {what}: {reason}"
            );
            std::thread::sleep(POLL);
        }
    }

    /// Prints how long a step took.
    #[expect(clippy::print_stdout, reason = "explains how long a day is")]
    pub(crate) fn say(&self, step: &str, took: Duration) {
        println!("{}/{}, {step}: {} s", self.preset, self.scope, took.as_secs());
    }

    /// Prints what a failed step may be explained by.
    #[expect(clippy::print_stdout, reason = "explains a failure")]
    pub(crate) fn describe(&self, served: &Served, step: &str) {
        let err = served.err();
        let lines: Vec<&str> = err.lines().collect();
        let last = &lines[lines.len().saturating_sub(40)..];
        let (preset, scope, processes) = (self.preset, self.scope, self.processes());
        println!(
            "--- {preset}/{scope}, {step}: processes {processes:#?}, the last lines of the gateway:\n{}\n---",
            last.join("\n")
        );
    }
}
