//! The environment of a server below a shim.

use std::process::Command;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::process_tree::program::{BOTH, Hook, Program, executable, fake, processes, script, stat, within};

/// The error output of a script that exits at once.
fn told(program: &mut Program) -> String {
    let status = program.status();
    let error = &status["servers"][0]["last_error"];
    error["stderr"].as_str().expect("it wrote something").to_owned()
}

#[test]
fn the_status_shows_the_process_of_the_server_itself() {
    for hook in BOTH {
        let mut program = Program::start(hook, |folder| {
            let server = FakeServer::new("fx").tool(Tool::new("t")).log(folder.join("log"));
            json!({ "fx": fake(&server) })
        });
        let shown = program.status()["servers"][0]["pid"].as_u64().unwrap();
        let log = pegboard_testkit::read_log(program.folder.path().join("log")).unwrap();
        assert_eq!(log.spawned.last().map(|pid| u64::from(*pid)), Some(shown), "{hook:?}");
    }
}

#[test]
fn orphans_that_ended_do_not_pile_up() {
    let mut program = Program::start(Hook::Called, |_| {
        let (server, args) = FakeServer::new("fx").command();
        let text = "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'true & setsid true &' </dev/null >/dev/null; done; exec \"$0\" \"$@\"";
        let mut words = vec!["-c".to_owned(), text.to_owned(), server.display().to_string()];
        words.extend(args);
        json!({ "fx": { "command": "/bin/sh", "args": words } })
    });
    let server = program.status()["servers"][0]["pid"].as_u64().expect("it is ready");
    let (shim, _) = stat(u32::try_from(server).unwrap()).unwrap();
    let children = || {
        let all = processes();
        all.into_iter()
            .filter(|pid| stat(*pid).is_some_and(|(parent, _)| parent == shim))
            .count()
    };
    assert!(within(1000, || children() == 1), "{} children", children());
}

#[test]
fn a_server_gets_no_new_privileges_and_no_core_dumps() {
    let text = "read line; grep NoNewPrivs /proc/self/status >&2; ulimit -c >&2; exit 1";
    let mut program = Program::start(Hook::Called, |_| json!({ "fx": script(text) }));
    assert_eq!(told(&mut program), "NoNewPrivs:\t1\n0");
    let mut program = Program::start(Hook::LeftOut, |_| json!({ "fx": script(text) }));
    assert_eq!(told(&mut program).lines().last(), Some("0"));
}

#[test]
fn a_server_inherits_no_open_file() {
    // The program itself inherited open descriptors from its parent.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec 7</dev/null 9</dev/null; exec \"$@\"", "sh"])
        .arg(executable());
    let text = "read line; ls /proc/$$/fd | grep -c '^[79]$' >&2; exit 1";
    let mut program = Program::start_by(command, Hook::Called, |_| json!({ "fx": script(text) }));
    assert_eq!(told(&mut program), "0");
}

#[test]
fn a_server_is_bounded_as_its_config_says() {
    for hook in BOTH {
        let text = "read line; ulimit -n >&2; ulimit -Hn >&2; ulimit -f >&2; exit 1";
        let mut program = Program::start(hook, |_| {
            let mut server = script(text);
            server["rlimits"] = json!({ "open_files": 64, "file_size": "1MiB" });
            json!({ "fx": server })
        });
        // The shell counts file sizes in blocks of 512 bytes.
        assert_eq!(told(&mut program), "64\n64\n2048", "{hook:?}");
    }
}

#[test]
fn a_server_has_default_limits_unless_its_config_switches_them_off() {
    let text = "read line; ulimit -Hn >&2; ulimit -Hf >&2; umask >&2; exit 1";
    for (rlimits, file_blocks) in [(json!({}), "2097152"), (json!({ "file_size": "none" }), "unlimited")] {
        let mut program = Program::start(Hook::Called, |_| {
            let mut server = script(text);
            server["rlimits"] = rlimits;
            json!({ "fx": server })
        });
        assert_eq!(told(&mut program), format!("1024\n{file_blocks}\n0077"));
    }
}

#[test]
fn the_variables_of_a_server_are_those_of_its_policy() {
    let text = "read line; env >&2; exit 1";
    let mut command = Command::new(executable());
    command
        .env("OPENAI_API_KEY", "k")
        .env("PYTHONPATH", "/tmp")
        .env("EDITOR", "ed");
    let mut program = Program::start_by(command, Hook::Called, |_| {
        let mut server = script(text);
        server["env_policy"] = "inherit".into();
        server["env"] = json!({ "MINE": "1" });
        json!({ "fx": server })
    });
    let environment = told(&mut program);
    assert!(
        environment.contains("EDITOR=ed") && environment.contains("MINE=1"),
        "{environment}"
    );
    for name in ["OPENAI_API_KEY", "PYTHONPATH", "PEGBOARD_"] {
        assert!(!environment.contains(name), "{environment}");
    }
}
