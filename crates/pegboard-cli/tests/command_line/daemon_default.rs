//! The daemon that commands start in the background: when they do, and what ends, replaces and shows it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pegboard_testkit::{FakeServer, Fault, Tool, When, is_alive};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, Ran, until},
    mcp::Mcp,
};

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
}

/// A home on a machine of a person. Its daemons end with it.
pub(crate) struct Desk(pub(crate) Home);

impl Desk {
    /// A home with the server `fx`, which has more settings.
    pub(crate) fn new(more: &str) -> Self {
        let home = Home::new();
        home.config(&home.entry("fx", fake(), &format!("stop_timeout = '200ms'\n{more}")));
        Self(home)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.pegboard(args);
        command.env_remove("CI");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args))
    }

    /// The daemons that run, as `pegboard daemon status` shows them.
    pub(crate) fn daemons(&self) -> Vec<Value> {
        let shown = self.run(&["daemon", "status", "-o", "json"]).ends_with(0).json();
        shown["daemons"].as_array().unwrap().clone()
    }

    /// The process id of the only daemon.
    #[track_caller]
    pub(crate) fn pid(&self) -> u64 {
        let daemons = self.daemons();
        assert_eq!(daemons.len(), 1, "{daemons:?}");
        daemons[0]["pid"].as_u64().unwrap()
    }

    /// How often `fx` was started.
    pub(crate) fn starts(&self) -> usize {
        self.0.log("fx").spawned.len()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.run(&["daemon", "stop", "--all"]);
    }
}

#[test]
fn commands_start_a_daemon_and_use_its_servers() {
    let desk = Desk::new("");
    assert_eq!(desk.run(&["call", "fx.read"]).ends_with(0).out, "read it\n");
    let pid = desk.pid();
    assert_eq!(desk.run(&["call", "fx.write"]).ends_with(0).out, "wrote it\n");
    desk.run(&["tools"]).ends_with(0).prints("fx.read");
    desk.run(&["resources"]).ends_with(0);
    desk.run(&["prompts"]).ends_with(0);
    let status = desk.run(&["status", "-o", "json"]).ends_with(0).json();
    assert_eq!(status["daemon"]["pid"], pid);
    assert_eq!(desk.starts(), 1);
    let shown = &desk.daemons()[0];
    assert_eq!(shown["servers"], json!({"ready": 1, "total": 1}));
    assert_eq!(shown["background"], true);
    assert_eq!(shown["this_config"], true);
    assert_eq!(shown["answers"], true);
    assert_eq!(shown["idle_ms"], 600_000);
    assert_eq!(shown["clients"], 0);
    assert_eq!(shown["version"], env!("CARGO_PKG_VERSION"));
    let config = desk.0.path(".config/pegboard/pegboard.toml");
    assert_eq!(shown["config"], json!([config]));
    assert!(Path::new(shown["socket"].as_str().unwrap()).exists());
    assert!(Path::new(shown["log"].as_str().unwrap()).exists());
    desk.run(&["daemon", "status"])
        .ends_with(0)
        .prints(&format!("process {pid}, in the background"))
        .prints("1 of 1 ready");
    let stopped = desk.run(&["daemon", "stop", "-o", "json"]).ends_with(0).json();
    assert_eq!(stopped["stopped"][0]["pid"], pid);
    assert_eq!(stopped["failed"], json!([]));
    desk.0.assert_gone("fx");
    assert!(desk.daemons().is_empty());
    desk.run(&["daemon", "stop"]).ends_with(0).says("no daemon runs");
    desk.run(&["daemon", "status"]).ends_with(0).says("no daemon runs");
}

#[test]
fn a_status_that_starts_the_daemon_starts_its_servers() {
    let desk = Desk::new("");
    let status = desk.run(&["status", "-o", "json"]).ends_with(0).json();
    assert_eq!(status["servers"][0]["state"], "ready", "{status}");
    assert_eq!(status["daemon"]["pid"], desk.pid());
    assert_eq!(desk.starts(), 1);
}

#[test]
fn doctor_asks_the_process_that_runs_instead_of_starting_a_second_one() {
    let desk = Desk::new("");
    desk.run(&["call", "fx.read"]).ends_with(0);
    let checked = desk.run(&["doctor", "fx"]);
    let pid = desk.0.log("fx").spawned[0];
    checked
        .ends_with(0)
        .prints(&format!("it answers, as process {pid} of the daemon"))
        .prints("3 tools");
    assert_eq!(desk.starts(), 1, "{checked:?}");
    desk.run(&["logs", "fx"]).ends_with(0);
    desk.run(&["generate", "ts", "fx"]).ends_with(0).prints("read");
    assert_eq!(desk.starts(), 1);
    // A server that does not run is tried, and stopped again.
    desk.run(&["daemon", "stop"]).ends_with(0);
    desk.run(&["doctor", "fx"]).ends_with(0).prints("it answers");
    assert_eq!(desk.starts(), 2);
    desk.0.assert_gone("fx");
}

#[test]
fn hosts_and_commands_start_a_server_once_on_the_machine() {
    let home = Home::new();
    let command = home.command_of("fx", fake());
    let words: Vec<&str> = command.split(' ').collect();
    let lock = home.path("fx.lock");
    // A second process of it ends at once.
    let args = [&["-n", lock.to_str().unwrap()], &words[..]].concat();
    home.config(&format!("[servers.fx]\ncommand = '/usr/bin/flock'\nargs = {args:?}\n"));
    let desk = Desk(home);
    std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| Mcp::start(&desk.0, &["--daemon"]).0))
            .collect();
        let commands: Vec<_> = [&["call", "fx.read"][..], &["tools"], &["call", "fx.write"]]
            .into_iter()
            .map(|args| scope.spawn(|| desk.run(args)))
            .collect();
        for command in commands {
            command.join().unwrap().ends_with(0);
        }
        for host in hosts {
            let mut host = host.join().unwrap();
            host.ready();
            let answer = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
            assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
        }
    });
    assert_eq!(desk.starts(), 1);
    desk.pid();
}

#[test]
fn no_daemon_is_started_where_none_is_wanted() {
    let desk = Desk::new("");
    let other = format!("--server=other={}", desk.0.command_of("other", fake()));
    for args in [
        &["call", "fx.read", "--no-daemon"][..],
        &["call", "fx.read", "--trust"],
        &["call", "other.read", &other],
    ] {
        desk.run(args).ends_with(0);
        assert!(desk.daemons().is_empty(), "{args:?}");
    }
    for (variable, value) in [("CI", "true"), ("PEGBOARD_NO_DAEMON", "1")] {
        let mut command = desk.command(&["tools"]);
        command.env(variable, value);
        Ran::of(command).ends_with(0);
        assert!(desk.daemons().is_empty(), "{variable}");
    }
    desk.0
        .config(&format!("daemon = false\n{}", desk.0.entry("fx", fake(), "")));
    let quiet = desk.run(&["call", "fx.read"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));
    let (mut host, _) = Mcp::start(&desk.0, &["--daemon"]);
    host.ready();
    drop(host);
    assert!(desk.daemons().is_empty());
}

#[test]
fn a_server_whose_arguments_depend_on_the_folder_stays_with_its_command() {
    let home = Home::new();
    let command = home.command_of("fx", fake());
    let args: Vec<&str> = ["-C", "."].into_iter().chain(command.split(' ')).collect();
    let entry = |more: &str| format!("[servers.fx]\ncommand = '/usr/bin/env'\nargs = {args:?}\n{more}");
    home.config(&entry(""));
    let desk = Desk(home);
    fs::create_dir(desk.0.path("sub")).unwrap();
    let in_sub = || {
        let mut command = desk.command(&["tools"]);
        command.current_dir(desk.0.path("sub"));
        Ran::of(command)
    };
    in_sub().ends_with(0);
    assert!(desk.daemons().is_empty());
    desk.0.config(&entry("cwd = '/tmp'\n"));
    in_sub().ends_with(0);
    desk.pid();
}

#[test]
fn a_project_has_a_daemon_in_its_folder_once_it_is_trusted() {
    let home = Home::new();
    let folder = home.path("repo");
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    home.write(
        "repo/pegboard.toml",
        &home.entry("fx", fake(), "stop_timeout = '200ms'"),
    );
    let desk = Desk(home);
    let run_in = |folder: PathBuf, args: &[&str]| {
        let mut command = desk.command(args);
        command.current_dir(folder);
        Ran::of(command)
    };
    run_in(folder.clone(), &["tools"]).ends_with(5);
    assert!(desk.daemons().is_empty());
    run_in(folder.clone(), &["trust", "accept", "--yes"]).ends_with(0);
    run_in(folder.join("src"), &["call", "fx.read"]).ends_with(0);
    run_in(folder.clone(), &["call", "fx.read"]).ends_with(0);
    assert_eq!(desk.starts(), 1);
    desk.pid();
    let canonical = folder.canonicalize().unwrap();
    assert_eq!(desk.daemons()[0]["folder"], json!(canonical));
    #[cfg(target_os = "linux")]
    {
        let server = desk.0.log("fx").spawned[0];
        assert_eq!(fs::read_link(format!("/proc/{server}/cwd")).unwrap(), canonical);
    }
    run_in(folder.join("src"), &["daemon", "stop"])
        .ends_with(0)
        .prints("has ended");
}

#[test]
fn a_daemon_that_cannot_start_is_told_in_one_line() {
    let desk = Desk::new("[serve]\nlisten = ['nowhere']");
    let ran = desk.run(&["call", "fx.read"]);
    ran.ends_with(0)
        .says("the servers are started without a daemon: the config of the gateway has errors; its log is ");
    assert_eq!(ran.out, "read it\n");
    assert_eq!(ran.err.matches("daemon:").count(), 1, "{ran:?}");
    assert!(desk.daemons().is_empty());
}

#[test]
fn serve_takes_the_place_of_a_daemon_in_the_background_and_hosts_stay_connected() {
    let desk = Desk::new("");
    let (mut host, _) = Mcp::start(&desk.0, &["--daemon"]);
    host.ready();
    let old = desk.pid();
    let took_over = format!("the daemon in the background (process {old}) ends for this one");
    desk.run(&["serve", "--listen", "0", "--timeout", "300ms"])
        .ends_with(124)
        .says(&took_over);
    let served = Served::start(&desk.0, &[]);
    assert_eq!(desk.pid(), u64::from(served.pid()));
    let answer = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
    assert_eq!(desk.daemons()[0]["background"], false);
    desk.run(&["serve", "--listen", "127.0.0.1:0"])
        .ends_with(2)
        .says(&format!(
            "a gateway (`pegboard serve`) serves this config already: process {}",
            served.pid()
        ))
        .says("`pegboard daemon stop --yes` ends it");
    desk.run(&["daemon", "restart"])
        .ends_with(3)
        .says("restart it where it was started");
    desk.run(&["daemon", "logs"]).ends_with(3).says("has no log file");
    desk.run(&["daemon", "stop"])
        .ends_with(5)
        .says("was not started in the background")
        .says("`--yes` ends it");
    desk.run(&["daemon", "stop", "--yes"]).ends_with(0);
    assert_eq!(served.code(), Some(0));
}

#[test]
fn a_daemon_is_restarted_under_its_hosts() {
    let desk = Desk::new("");
    let (mut host, _) = Mcp::start(&desk.0, &["--daemon"]);
    host.ready();
    let old = desk.pid();
    let restarted = desk.run(&["daemon", "restart", "-o", "json"]).ends_with(0).json();
    assert_eq!(restarted["replaced"], old);
    assert_ne!(restarted["pid"], old);
    let answer = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
    assert_eq!(json!(desk.pid()), restarted["pid"]);
    let shown = desk.run(&["daemon", "logs", "-o", "json"]).ends_with(0).json();
    assert!(shown["lines"].is_array(), "{shown}");
    let log = shown["log"].as_str().unwrap();
    assert!(log.contains("/daemon-") && log.ends_with(".log"), "{log}");
}

#[test]
fn a_daemon_whose_program_was_replaced_makes_room_for_the_new_one() {
    let desk = Desk::new("");
    fs::create_dir(desk.0.path("bin")).unwrap();
    let (program, next) = (desk.0.path("bin/pegboard"), desk.0.path("bin/next"));
    // A process of its own has the copy open: one that another test starts meanwhile must not inherit that.
    let copy = |from: &Path, to: &Path| assert!(Command::new("cp").args([from, to]).status().unwrap().success());
    copy(Path::new(env!("CARGO_BIN_EXE_pegboard")), &program);
    let run = |args: &[&str]| {
        let usual = desk.command(args);
        let mut command = Command::new(&program);
        command.args(args).env_clear().current_dir(desk.0.path(""));
        for (name, value) in usual.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        Ran::of(command).ends_with(0);
    };
    run(&["call", "fx.read"]);
    let old = desk.pid();
    // Another path is another installation, which uses the daemon as it is.
    desk.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(desk.pid(), old);
    let (mut host, _) = Mcp::start(&desk.0, &["--daemon"]);
    host.ready();
    copy(&program, &next);
    fs::rename(&next, &program).unwrap();
    run(&["call", "fx.read"]);
    let new = desk.pid();
    assert_ne!(new, old);
    run(&["call", "fx.read"]);
    desk.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(desk.pid(), new);
    let answer = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
}

#[test]
fn a_changed_config_is_used_at_once() {
    let desk = Desk::new("");
    desk.run(&["call", "fx.read"]).ends_with(0);
    let pid = desk.pid();
    let both = [
        desk.0.entry("fx", fake(), "stop_timeout = '200ms'"),
        desk.0.entry("more", fake(), ""),
    ];
    desk.0.config(&both.concat());
    let ran = desk.run(&["call", "more.read"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("read it\n", ""), "{ran:?}");
    assert_eq!(desk.pid(), pid);
    assert_eq!(desk.0.log("more").spawned.len(), 1);
    assert_eq!(desk.starts(), 1, "a server that has not changed goes on");
}

#[test]
fn a_daemon_in_the_background_ends_when_its_config_is_gone() {
    let desk = Desk::new("");
    desk.run(&["call", "fx.read"]).ends_with(0);
    let pid = u32::try_from(desk.pid()).unwrap();
    fs::remove_file(desk.0.path(".config/pegboard/pegboard.toml")).unwrap();
    until("the daemon ends", || !is_alive(pid));
    desk.0.assert_gone("fx");
}

#[test]
fn a_serve_that_was_killed_is_named_when_a_daemon_is_started_in_its_place() {
    let desk = Desk::new("");
    let served = Served::start(&desk.0, &[]);
    served.has_tool("fx__read");
    let pid = served.pid();
    served.signal("KILL");
    served.code();
    let ran = desk.run(&["status"]);
    ran.ends_with(0)
        .says(&format!(
            "`pegboard serve` (process {pid}) is gone without having stopped"
        ))
        .says(&format!(
            "a daemon in the background (process {}) was started",
            desk.pid()
        ));
    let ran = desk.run(&["status"]);
    assert!(!ran.err.contains("is gone"), "it was told: {}", ran.err);
    // One that stops leaves nothing to tell, and neither does a daemon in the background that was killed.
    desk.run(&["daemon", "stop"]).ends_with(0);
    let served = Served::start(&desk.0, &[]);
    served.has_tool("fx__read");
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
    let ran = desk.run(&["status"]);
    assert!(!ran.ends_with(0).err.contains("is gone"), "{}", ran.err);
}
