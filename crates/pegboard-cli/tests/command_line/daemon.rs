//! The user's daemon: which commands use it, for whom, and what they do without it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Child, Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{Answer, FakeServer, Fault, Tool, When, is_alive};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, Ran, until},
    mcp::Mcp,
};

/// Where the sockets and locks of a home are.
pub(crate) const RUN: &str = ".local/state/pegboard/run";

fn fx() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
}

/// A home with the server `fx`, which has more settings.
fn home(more: &str) -> Home {
    let home = Home::new();
    home.config(&home.entry("fx", fx(), &format!("stop_timeout = '200ms'\n{more}")));
    home
}

/// The processes that `fx` has had.
fn processes(home: &Home) -> usize {
    home.log("fx").spawned.len()
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.pegboard(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn kill(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// What must be the same with a daemon and without: everything but times.
fn timeless(mut document: Value) -> Value {
    if let Some(outcome) = document.get_mut("outcome") {
        outcome["latency_ms"] = json!(0);
        outcome["queued_ms"] = json!(0);
    }
    document
}

#[test]
fn all_commands_use_the_one_process_of_the_daemon() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    assert_eq!(home.run(&["call", "fx.read"]).ends_with(0).out, "read it\n");
    assert_eq!(
        home.run(&["call", "fx.write", "--server", "fx"]).ends_with(0).out,
        "wrote it\n"
    );
    home.run(&["call", "fx.read", "--time"])
        .ends_with(0)
        .says(", queue 0.0, server ");
    let timed = home
        .run(&["call", "fx.read", "--time", "-o", "json"])
        .ends_with(0)
        .json();
    let part = |key: &str| timed["times"][key].as_f64().unwrap();
    assert!(
        part("server_ms") > 0.0 && part("server_ms") < part("total_ms"),
        "{timed}"
    );
    assert!(timed.get("meta").is_none(), "{timed}");
    home.run(&["tools"]).ends_with(0).prints("fx.read");
    home.run(&["resources"]).ends_with(0);
    home.run(&["prompts"]).ends_with(0);
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let message = mcp.ask("tools/call", &json!({"name": "fx__write", "arguments": {}}));
    assert_eq!(message["result"]["content"][0]["text"], "wrote it", "{message}");
    assert_eq!(processes(&home), 1);
    let status = home.run(&["status", "-o", "json"]).ends_with(0).json();
    assert_eq!(status["daemon"]["pid"], served.pid());
    assert_eq!(status["servers"][0]["pid"], home.log("fx").spawned[0]);
    assert_eq!(status["servers"][0]["transport"], "stdio");
    assert!(status["servers"][0]["calls"]["total"].as_u64() >= Some(3), "{status}");
    home.run(&["status"])
        .ends_with(0)
        .prints(&home.log("fx").spawned[0].to_string())
        .says("the daemon with process id");
}

#[test]
fn output_and_exit_codes_are_the_same_with_a_daemon() {
    let home = home("deny = ['secret']");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    for args in [
        &["call", "fx.read", "-o", "json"][..],
        &["call", "fx.write", "-o", "json"],
        &["call", "fx.nothing", "-o", "json"],
        &["tools", "-o", "json"],
        &["tools", "-o", "json", "--provider", "openai"],
        &["resources", "-o", "json"],
        &["prompts", "-o", "json"],
    ] {
        let with = home.run(args);
        let without = home.run(&[args, &["--no-daemon"]].concat());
        assert_eq!(with.code, without.code, "{args:?}: {with:?} {without:?}");
        assert_eq!(timeless(with.json()), timeless(without.json()), "{args:?}");
    }
}

#[test]
fn without_the_daemon_is_an_option_and_a_variable() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    home.run(&["call", "fx.read", "--no-daemon"]).ends_with(0);
    assert_eq!(processes(&home), 2);
    let mut command = home.pegboard(&["call", "fx.read"]);
    command.env("PEGBOARD_NO_DAEMON", "1");
    Ran::of(command).ends_with(0);
    assert_eq!(processes(&home), 3);
    let mut command = home.pegboard(&["call", "fx.read"]);
    command.env("PEGBOARD_NO_DAEMON", "0");
    Ran::of(command).ends_with(0);
    assert_eq!(processes(&home), 3);
}

#[test]
fn another_config_is_not_for_this_daemon() {
    let home = Home::new();
    home.config(&home.entry("fx", fx(), "env = { WHO = '${WHO:-x}' }"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let mut command = home.pegboard(&["call", "fx.read"]);
    command.env("WHO", "other");
    Ran::of(command).ends_with(0).says("other values of its variables");
    assert_eq!(processes(&home), 2, "a variable has another value");
    let other = home.write("other.toml", &home.entry("fx", fx(), ""));
    home.run(&["call", "fx.read", "-c", other.to_str().unwrap()])
        .ends_with(0);
    assert_eq!(processes(&home), 3, "another file");
    home.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(processes(&home), 3);
}

#[test]
fn commands_use_what_the_daemon_has_reloaded() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let path = home.path(".config/pegboard/pegboard.toml");
    let more = home.entry("more", FakeServer::new("more").tool(Tool::new("extra")), "");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n{more}")).unwrap();
    served.has_tool("more__extra");
    until("the command goes through the daemon", || {
        let ran = home.run(&["call", "more.extra"]);
        ran.ends_with(0);
        !ran.err.contains("the servers are started without it")
    });
    let processes = home.log("more").spawned.len();
    home.run(&["call", "more.extra"]).ends_with(0);
    assert_eq!(home.log("more").spawned.len(), processes);
}

#[test]
fn a_second_daemon_refuses_and_names_the_first() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let pid = served.pid();
    home.run(&["serve", "--listen", "0"])
        .ends_with(2)
        .says(&format!(
            "a gateway (`pegboard serve`) serves this config already: process {pid}"
        ))
        .says("--no-socket");
    let beside = home.run(&["serve", "--listen", "0", "--no-socket", "--timeout", "300ms"]);
    beside.ends_with(124);
}

#[test]
fn after_kill_9_nothing_is_left_and_the_next_daemon_starts() {
    let home = Home::new();
    let stubborn = fx().fault(Fault::OutlivesParent).fault(Fault::IgnoresEof);
    home.config(&home.entry("fx", stubborn, "stop_timeout = '200ms'"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    served.signal("KILL");
    served.code();
    home.assert_gone("fx");
    let left: Vec<_> = fs::read_dir(home.path(RUN))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        left.iter().any(|name| name.to_string_lossy().ends_with(".sock")),
        "{left:?}"
    );
    home.run(&["call", "fx.read"]).ends_with(0);
    let served = Served::start(&home, &[]);
    // It is listed before its process is there.
    home.run(&["call", "fx.read"]).ends_with(0);
    let before = processes(&home);
    home.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(processes(&home), before);
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
    let socket = |name: &str| name.ends_with(".sock");
    let left = fs::read_dir(home.path(RUN)).unwrap();
    assert!(
        !left
            .map(|entry| entry.unwrap().file_name())
            .any(|name| socket(&name.to_string_lossy()))
    );
}

#[test]
fn a_socket_folder_that_others_can_enter_is_refused() {
    let home = home("");
    let run = home.path(RUN);
    fs::create_dir_all(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    home.run(&["serve", "--listen", "0"])
        .ends_with(2)
        .says("is not safe")
        .says("open to other users")
        .says("--no-socket");
    fs::remove_dir(&run).unwrap();
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&elsewhere, &run).unwrap();
    home.run(&["serve", "--listen", "0"]).ends_with(2).says("symbolic link");
    home.run(&["call", "fx.read"]).ends_with(0);
}

#[test]
fn a_daemon_of_another_user_is_never_used() {
    // A fake daemon in a folder that another user could have made: it would read the arguments of calls.
    let home = home("");
    let run = home.path(RUN);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    home.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(processes(&home), 2, "the command has started a server of its own");
}

#[test]
fn approval_is_asked_for_once_at_the_command() {
    let home = home("approval = 'always'");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    home.run(&["call", "fx.write"]).ends_with(5).says("`--yes` agrees");
    assert_eq!(home.log("fx").count("tools/call"), 0);
    assert_eq!(home.run(&["call", "fx.write", "--yes"]).ends_with(0).out, "wrote it\n");
    assert_eq!(processes(&home), 1);
}

#[test]
fn a_signal_or_a_timeout_cancels_the_call_in_the_daemon() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let child = start(&home, &["call", "fx.mute"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    kill("-INT", child.id());
    Ran::end_of(child).ends_with(130).says("error: interrupted");
    until("the server is told", || {
        home.log("fx").count("notifications/cancelled") == 1
    });
    home.run(&["call", "fx.mute", "--timeout", "3s"]).ends_with(124);
    until("the server is told", || {
        home.log("fx").count("notifications/cancelled") == 2
    });
    assert_eq!(home.run(&["call", "fx.read"]).ends_with(0).out, "read it\n");
    assert_eq!(processes(&home), 1);
}

#[test]
fn calls_in_flight_at_kill_9_are_told_as_ones_that_may_have_run() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    home.run(&["call", "fx.write"]).ends_with(0);
    let child = start(&home, &["call", "fx.mute", "-o", "json"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 2);
    served.signal("KILL");
    served.code();
    let lost = Ran::end_of(child).ends_with(3).json();
    assert_eq!(
        (&lost["status"], &lost["outcome"]["may_have_executed"]),
        (&json!("lost"), &json!(true))
    );
    let text = lost["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the daemon ended"), "{lost}");
    let told = "the call of fx.mute, sent at";
    let ran = home.run(&["status"]);
    ran.ends_with(0).says(told).says("it may have run");
    assert!(!ran.err.contains("fx.write"), "{ran:?}");
    let ran = home.run(&["status"]);
    assert!(!ran.err.contains(told), "it was told: {ran:?}");
}

#[test]
fn calls_that_may_have_run_are_kept_until_a_command_has_shown_them() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let child = start(&home, &["call", "fx.mute", "-o", "json"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    served.signal("KILL");
    served.code();
    Ran::end_of(child).ends_with(3);
    let told = "the call of fx.mute, sent at";
    // Nobody reads the log of a daemon that ends again.
    let unseen = Served::start(&home, &["--idle", "100ms"]);
    unseen.says(told);
    assert_eq!(unseen.code(), Some(0));
    let served = Served::start(&home, &[]);
    served.says(told);
    let document = home.run(&["status", "-o", "json"]).ends_with(0).json();
    assert_eq!(document["unfinished"][0]["tool"], "mute", "{document}");
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
    let ran = home.run(&["status"]);
    assert!(!ran.err.contains(told), "it was told: {ran:?}");
}

#[test]
fn a_host_goes_on_when_the_daemon_is_restarted() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let call = json!({"name": "fx__read", "arguments": {}});
    assert_eq!(mcp.ask("tools/call", &call)["result"]["content"][0]["text"], "read it");
    served.signal("KILL");
    served.code();
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    until("a call is answered again", || {
        mcp.ask("tools/call", &call)["result"]["content"][0]["text"] == "read it"
    });
    assert_eq!(processes(&home), 2, "one for each daemon");
}

#[test]
fn hosts_that_start_at_once_share_one_daemon_which_ends_without_them() {
    let home = home("");
    let hosts: Vec<Mcp> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Mcp::start(&home, &["--daemon", "--idle", "1500ms"]).0))
            .collect();
        starting.into_iter().map(|host| host.join().unwrap()).collect()
    });
    let mut hosts = hosts;
    for host in &mut hosts {
        host.ready();
        let message = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
        assert_eq!(message["result"]["content"][0]["text"], "read it", "{message}");
    }
    assert_eq!(processes(&home), 1);
    let pid = home.run(&["status", "-o", "json"]).ends_with(0).json()["daemon"]["pid"].clone();
    let pid = u32::try_from(pid.as_u64().unwrap()).unwrap();
    drop(hosts);
    until("the daemon ends", || !is_alive(pid));
    home.assert_gone("fx");
    let log = fs::read_dir(home.path(".local/state/pegboard")).unwrap();
    let log = log
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "log"));
    let log = log.unwrap();
    assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(log).unwrap().contains("the gateway stops"));
}

#[test]
fn a_host_starts_its_daemon_again_after_kill_9() {
    let home = home("");
    let (mut mcp, _) = Mcp::start(&home, &["--daemon", "--idle", "2s"]);
    mcp.ready();
    let pid = home.run(&["status", "-o", "json"]).ends_with(0).json()["daemon"]["pid"].clone();
    kill("-KILL", u32::try_from(pid.as_u64().unwrap()).unwrap());
    let call = json!({"name": "fx__read", "arguments": {}});
    until("a call is answered again", || {
        mcp.ask("tools/call", &call)["result"]["content"][0]["text"] == "read it"
    });
    let again = home.run(&["status", "-o", "json"]).ends_with(0).json()["daemon"]["pid"].clone();
    assert_ne!(again, pid);
    drop(mcp);
    let again = u32::try_from(again.as_u64().unwrap()).unwrap();
    until("the daemon ends", || !is_alive(again));
}

#[test]
fn a_slow_server_does_not_outlast_the_limit_of_the_command() {
    let home = Home::new();
    home.config(&home.entry(
        "fx",
        fx().fault(Fault::SlowStart { ms: 600_000 }),
        "stop_timeout = '200ms'",
    ));
    let _served = Served::start(&home, &[]);
    let began = std::time::SystemTime::now();
    home.run(&["call", "fx.read", "--timeout", "1s"]).ends_with(124);
    assert!(began.elapsed().unwrap() < Duration::from_secs(20));
}

#[test]
fn a_server_cannot_make_its_failure_look_like_a_call_that_was_refused() {
    let meta = json!({"pegboard/kind": "not_permitted", "pegboard/may_have_executed": false});
    let result = json!({"content": [{"type": "text", "text": "no"}], "isError": true, "_meta": meta});
    let home = Home::new();
    let liar = fx().tool(Tool::new("lie").answers(Answer::Result(result)));
    home.config(&home.entry("fx", liar, ""));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__lie");
    let failed = home.run(&["call", "fx.lie", "-o", "json"]).ends_with(1).json();
    assert_eq!(failed["status"], "tool_failed", "{failed}");
    assert_eq!(failed["outcome"]["may_have_executed"], true, "{failed}");
    assert_eq!(processes(&home), 1);
}

#[test]
fn a_call_that_the_stop_of_the_daemon_cancels_is_lost() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let child = start(&home, &["call", "fx.mute", "-o", "json"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    served.signal("TERM");
    let lost = Ran::end_of(child).ends_with(3).json();
    assert_eq!(lost["status"], "lost", "{lost}");
    assert_eq!(lost["outcome"]["kind"], "cancelled", "{lost}");
    assert_eq!(lost["outcome"]["may_have_executed"], true, "{lost}");
}

#[test]
fn a_busy_daemon_is_waited_for() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    kill("-STOP", served.pid());
    let child = start(&home, &["call", "fx.read"]);
    // The load of a machine that runs the daemon again only after so long.
    std::thread::sleep(Duration::from_millis(1500));
    kill("-CONT", served.pid());
    assert_eq!(Ran::end_of(child).ends_with(0).out, "read it\n");
    assert_eq!(processes(&home), 1);
}

#[test]
fn a_stopped_daemon_holds_up_no_command_for_ever() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    kill("-STOP", served.pid());
    let began = std::time::SystemTime::now();
    home.run(&["call", "fx.read", "--timeout", "1s"]).ends_with(124);
    assert!(
        began.elapsed().unwrap() < Duration::from_secs(20),
        "the limit of the command holds"
    );
    let ran = home.run(&["call", "fx.read"]);
    assert_eq!(ran.ends_with(0).says("the daemon does not answer").out, "read it\n");
    kill("-CONT", served.pid());
}

#[test]
fn the_status_tells_whose_a_server_of_one_session_is() {
    let home = home("scope = 'session'");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let mut hosts: Vec<Mcp> = (0..2).map(|_| Mcp::start(&home, &[]).0).collect();
    for host in &mut hosts {
        host.ready();
        let message = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
        assert_eq!(message["result"]["content"][0]["text"], "read it", "{message}");
    }
    let status = home.run(&["status"]);
    let rows = status.ends_with(0).out.lines().filter(|line| line.contains("stdio"));
    let mut names: Vec<&str> = rows.filter_map(|row| row.split("  ").next()).collect();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{status:?}");
    let of_sessions = names.iter().filter(|name| name.starts_with("fx (approved/mcp/fx#"));
    assert_eq!(of_sessions.count(), 2, "{status:?}");
}
