//! What a daemon in the background shares with the command that starts it, and what commands do while one stops, is lost, or has no place.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Child, Command, Stdio},
};

use pegboard_testkit::is_alive;

use super::{
    daemon::RUN,
    daemon_default::Desk,
    home::{Ran, until},
    pty::Terminal,
};

/// A script for the shell, in which `$0` is the program. It is killed if it hangs.
fn script(desk: &Desk, script: &str) -> Ran {
    let usual = desk.command(&[]);
    let mut command = Command::new("timeout");
    command
        .args(["60", "sh", "-c", script])
        .arg(usual.get_program())
        .env_clear()
        .current_dir(desk.0.path(""));
    for (name, value) in usual.get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    Ran::of(command)
}

fn start(desk: &Desk, args: &[&str]) -> Child {
    let mut command = desk.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A command at a terminal of the desk.
fn at_terminal(desk: &Desk, args: &[&str]) -> Terminal {
    let home = desk.0.path("").display().to_string();
    Terminal::start_with(&desk.0, args, &[("CI", ""), ("HOME", home.trim_end_matches('/'))])
}

/// The servers of `fx` that run.
fn running(desk: &Desk) -> usize {
    let spawned = desk.0.log("fx").spawned;
    spawned.into_iter().filter(|pid| is_alive(*pid)).count()
}

/// A daemon that is stopping: a call that never ends is in flight for the five seconds that it has.
fn stopping(desk: &Desk) -> (u64, [Child; 2]) {
    desk.run(&["call", "fx.read"]).ends_with(0);
    let pid = desk.pid();
    let call = start(desk, &["call", "fx.mute"]);
    until("the call has arrived", || desk.0.log("fx").count("tools/call") == 2);
    let stop = start(desk, &["daemon", "stop"]);
    until("it is stopping", || desk.daemons()[0]["answers"] == false);
    (pid, [call, stop])
}

#[test]
fn a_file_that_a_command_has_locked_is_free_when_the_command_has_ended() {
    let desk = Desk::new("");
    let ran = script(
        &desk,
        "( flock 9; \"$0\" call fx.read ) 9> my.lock; flock -n my.lock echo free || echo LOCKED",
    );
    assert_eq!(ran.ends_with(0).out, "read it\nfree\n");
    assert_eq!(desk.daemons().len(), 1);
}

#[test]
fn a_pipe_that_a_command_has_inherited_ends_with_the_command() {
    let desk = Desk::new("");
    let ran = script(&desk, "{ \"$0\" call fx.read 1>&2; } 3>&1 | cat");
    ran.ends_with(0).says("read it");
    assert_eq!(desk.daemons().len(), 1);
}

#[test]
fn a_call_during_the_stop_of_the_daemon_waits_for_it_and_uses_the_next_one() {
    let desk = Desk::new("");
    let (old, children) = stopping(&desk);
    let terminal = at_terminal(&desk, &["call", "fx.read"]);
    terminal.shows(&format!("waiting for the daemon (process {old})"), 1);
    assert_eq!(running(&desk), 1, "only the server of the daemon runs");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("read it") && !shown.contains("without"), "{shown}");
    assert_ne!(desk.pid(), old);
    assert_eq!((desk.starts(), running(&desk)), (2, 1));
    for child in children {
        Ran::end_of(child);
    }
}

#[test]
fn a_call_that_has_less_time_than_the_daemon_needs_to_stop_starts_no_second_server() {
    let desk = Desk::new("");
    let (_, children) = stopping(&desk);
    desk.run(&["call", "fx.read", "--timeout", "500ms"]).ends_with(124);
    assert_eq!(desk.starts(), 1);
    for child in children {
        Ran::end_of(child);
    }
}

#[test]
fn restarts_and_calls_at_once_leave_one_daemon_and_one_server() {
    let desk = Desk::new("");
    desk.run(&["call", "fx.read"]).ends_with(0);
    let restarts: Vec<Child> = (0..5).map(|_| start(&desk, &["daemon", "restart"])).collect();
    let calls: Vec<Child> = (0..5).map(|_| start(&desk, &["call", "fx.read"])).collect();
    for child in calls {
        let ran = Ran::end_of(child);
        assert_eq!(ran.ends_with(0).out, "read it\n");
    }
    for child in restarts {
        Ran::end_of(child).ends_with(0);
    }
    desk.run(&["call", "fx.read"]).ends_with(0);
    assert_eq!(desk.daemons().len(), 1);
    until("one server runs", || running(&desk) == 1);
}

#[test]
fn a_daemon_whose_socket_was_removed_ends_once_its_calls_have_ended() {
    let desk = Desk::new("");
    desk.run(&["call", "fx.read"]).ends_with(0);
    let old = u32::try_from(desk.pid()).unwrap();
    let mut call = start(&desk, &["call", "fx.mute"]);
    until("the call has arrived", || desk.0.log("fx").count("tools/call") == 2);
    fs::remove_dir_all(desk.0.path(RUN)).unwrap();
    desk.run(&["call", "fx.read"]).ends_with(0);
    let new = desk.pid();
    assert_ne!(u64::from(old), new);
    let log = || fs::read_to_string(desk.daemons()[0]["log"].as_str().unwrap()).unwrap();
    assert!(is_alive(old) && !log().contains("the gateway stops"), "it has a call");
    call.kill().unwrap();
    call.wait().unwrap();
    until("it has ended", || !is_alive(old));
    assert!(log().contains("its socket or its lock was removed"), "{}", log());
    desk.run(&["call", "fx.write"]).ends_with(0);
    assert_eq!(desk.pid(), new, "the socket of the next daemon stays");
}

#[test]
fn a_person_is_told_why_there_is_no_daemon_and_what_to_do() {
    let desk = Desk::new("");
    let run = desk.0.path(RUN);
    fs::create_dir_all(run.parent().unwrap()).unwrap();
    let elsewhere = desk.0.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    let told = |says: &str| {
        let (code, shown) = at_terminal(&desk, &["call", "fx.read"]).ends();
        let line: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, Some(0), "{shown}");
        assert!(
            line.contains("the servers are started without a daemon") && line.contains(says),
            "{shown}"
        );
        let quiet = desk.run(&["call", "fx.read"]);
        assert_eq!((quiet.ends_with(0).out.as_str(), quiet.err.as_str()), ("read it\n", ""));
    };
    fs::write(&run, "").unwrap();
    told("is no folder; remove it");
    fs::remove_file(&run).unwrap();
    symlink(&elsewhere, &run).unwrap();
    told("is a symbolic link; remove it");
    fs::remove_file(&run).unwrap();
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).unwrap();
    told("is open to other users; `chmod 700` closes it");
}
