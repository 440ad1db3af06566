//! Several processes at one config file.

use std::process::{Child, Stdio};

use crate::{
    home::{Home, Ran},
    servers::{USER, read, screen},
};

/// Starts the commands at once, and asserts that all of them succeed.
#[track_caller]
fn at_once(home: &Home, commands: &[Vec<String>]) {
    let start = |args: &Vec<String>| -> Child {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = home.pegboard(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<Child> = commands.iter().map(start).collect();
    for (args, child) in commands.iter().zip(running) {
        let ran = Ran::end_of(child);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn edits_at_the_same_time_all_succeed_and_none_is_lost() {
    let home = Home::new();
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    let each = |line: &str| -> Vec<Vec<String>> {
        let lines = names.iter().map(|name| words(&line.replace("NAME", name)));
        lines.collect()
    };
    // The first of them makes the folder and the file.
    at_once(&home, &each("add NAME -- echo NAME"));
    let written = read(&home, USER);
    assert_eq!(written.matches("[servers.s").count(), 20, "{written}");
    at_once(&home, &each("disable NAME"));
    assert_eq!(read(&home, USER).matches("enabled = false").count(), 20);
    at_once(&home, &each("remove NAME"));
    assert!(screen(&home, 0, &["list"]).contains("no server is configured"));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_config_file_is_refused_at_once() {
    let home = Home::new();
    let made = std::process::Command::new("mkfifo")
        .arg(home.path("pipe.toml"))
        .status()
        .unwrap();
    assert!(made.success());
    for (code, args) in [
        (2, &["add", "a", "--", "echo"][..]),
        (2, &["remove", "a"]),
        (2, &["get", "a"]),
        (2, &["list"]),
        (2, &["tools"]),
        (1, &["doctor"]),
    ] {
        let said = screen(&home, code, &[&["-c", "pipe.toml"], args].concat());
        assert!(said.contains("not a regular file"), "{args:?}: {said}");
    }
}

/// Locks the folder of the user's config file, as an edit of another process does.
#[cfg(unix)]
fn edit_of_another_process(home: &Home) -> std::fs::File {
    home.config("");
    let folder = std::fs::File::open(home.path(".config/pegboard")).unwrap();
    folder.lock().unwrap();
    folder
}

#[cfg(unix)]
#[test]
fn the_wait_for_another_process_ends_at_the_deadline() {
    let home = Home::new();
    let other = edit_of_another_process(&home);
    home.run(&["--timeout", "100ms", "add", "a", "--", "true"])
        .ends_with(124)
        .says("the timeout passed")
        .says("another process is editing files");
    drop(other);
    assert_eq!(read(&home, USER), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_wait_for_another_process() {
    use rustix::process::{Pid, Signal, kill_process};

    use crate::home::until;

    for (signal, mask) in [(Signal::INT, 1 << 1), (Signal::TERM, 1 << 14)] {
        let home = Home::new();
        let other = edit_of_another_process(&home);
        let mut add = home.pegboard(&["add", "a", "--", "true"]);
        let add = add.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = format!("/proc/{}/status", add.id());
        until("the command handles the signal", || {
            let status = std::fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & mask != 0
        });
        kill_process(Pid::from_child(&add), signal).unwrap();
        Ran::end_of(add).ends_with(130).says("interrupted");
        drop(other);
        assert_eq!(read(&home, USER), "");
    }
}

#[cfg(unix)]
#[test]
fn settings_from_a_pipe_that_has_no_writer_or_from_a_device_without_an_end_are_refused() {
    let home = Home::new();
    let made = std::process::Command::new("mkfifo")
        .arg(home.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    home.run(&["add-json", "a", "@pipe", "--timeout", "100ms"])
        .ends_with(124)
        .says("the timeout passed");
    home.run(&["add-json", "a", "@/dev/zero"])
        .ends_with(2)
        .says("/dev/zero is larger than");
}

#[cfg(unix)]
#[test]
fn a_config_may_come_through_a_pipe_that_somebody_writes_to() {
    let home = Home::new();
    let command = home.pegboard(&["config", "show", "-c", "/dev/stdin"]);
    let ran = Ran::fed(command, "[servers.a]\ncommand = \"x\"\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("servers.a"), "{ran:?}");
}
