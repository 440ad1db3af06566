//! A strict sandbox where namespaces are denied.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde_json::json;

use crate::{
    kernel::{Need, accept_refusal},
    sandbox::stage::{Program, Stage},
};

/// Starts the program with a filter that denies `unshare`, as containers and AppArmor do.
fn start(stage: &Stage, require: bool) -> Program {
    let server = stage.hostile(&json!({ "level": "strict", "require": require }));
    // A filter holds for the thread and for the processes that it spawns.
    let starting = || {
        deny_namespaces();
        stage.start(&server, true)
    };
    std::thread::scope(|scope| scope.spawn(starting).join().unwrap())
}

fn deny_namespaces() {
    let rules = [(libc::SYS_unshare, Vec::new())].into();
    let errno = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, errno, arch).unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

#[test]
fn where_namespaces_are_denied_a_strict_server_runs_in_a_basic_sandbox_if_that_is_allowed() {
    let stage = Stage::new();
    let mut program = start(&stage, false);
    let sandbox = program.server("fx")["sandbox"].clone();
    if sandbox["in_force"] == "off" {
        return accept_refusal(Need::Files, None, &sandbox.to_string());
    }
    assert_eq!(
        (&sandbox["requested"], &sandbox["in_force"]),
        (&json!("strict"), &json!("basic"))
    );
    let missing = sandbox["missing"][0].as_str().unwrap();
    assert!(
        missing.starts_with("namespaces: they cannot be created: EPERM"),
        "{missing}"
    );
    let attempts = stage.attempts(&mut program);
    for (name, is_allowed) in [
        // Without namespaces.
        ("see_sibling", true),
        ("connect_unix_socket", true),
        // What is left of the level.
        ("read_ssh_key", false),
        ("list_home", false),
        ("write_home", false),
        ("write_shared_tmp", false),
        ("write_own_tmp", true),
        ("read_sibling_environment", false),
        ("connect_tcp", false),
        ("send_udp", false),
        ("use_io_uring", false),
        ("mount", false),
    ] {
        assert_eq!(attempts[name] == "allowed", is_allowed, "{name}: {}", attempts[name]);
    }
}

#[test]
fn where_namespaces_are_denied_a_strict_server_is_not_started_by_default() {
    let stage = Stage::new();
    let mut program = start(&stage, true);
    let server = program.server("fx");
    assert_eq!(server["state"], "down");
    let error = &server["last_error"];
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`strict` is not in force, so it was not started: namespaces"),
        "{message}"
    );
    assert!(
        error["hint"].as_str().unwrap().contains("`sandbox.require = false`"),
        "{error}"
    );
    // Other tests skip a level only if the kernel does not offer it. Here only the filter denies it.
    if Need::Namespaces.is_met(None) {
        let checked = catch_unwind(AssertUnwindSafe(|| program.is_refused(Need::Namespaces)));
        assert!(checked.is_err(), "a refusal without a reason is accepted");
    }
}
