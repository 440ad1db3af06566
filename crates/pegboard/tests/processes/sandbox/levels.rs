//! The attempts of a hostile server, and which of them succeed at each level.

use serde_json::{Value, json};

use crate::{
    kernel::Need,
    sandbox::stage::{Stage, is_left_by_all},
};

/// Whether an attempt succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Allowed,
    Denied,
    /// It depends on settings of the kernel or on the network of the machine. The result is printed.
    Varying,
}

use Is::{Allowed as Yes, Denied as No, Varying as Any};

/// Each attempt, and whether it succeeds with `off`, `basic` and `strict`.
const TABLE: &[(&str, [Is; 3])] = &[
    // Files.
    ("read_ssh_key", [Yes, No, No]),
    ("read_kube_config", [Yes, No, No]),
    ("list_home", [Yes, No, No]),
    ("write_home", [Yes, No, No]),
    ("write_working_directory", [Yes, No, No]),
    ("write_etc", [No, No, No]),
    ("write_shared_memory", [Yes, No, No]),
    ("write_shared_tmp", [Yes, No, No]),
    ("write_own_tmp", [Yes, Yes, Yes]),
    ("read_file_of_another_server", [Yes, No, No]),
    ("make_files_for_others", [No, No, No]),
    ("inherit_open_files", [No, No, No]),
    ("write_huge_file", [No, No, No]),
    ("open_many_files", [No, No, No]),
    // Processes.
    ("read_init_environment", [No, No, No]),
    ("read_program_environment", [No, No, No]),
    ("read_program_memory", [No, No, No]),
    ("list_program_files", [No, No, No]),
    ("read_guard_environment", [No, No, No]),
    ("read_sibling_environment", [Yes, No, No]),
    ("see_sibling", [Yes, Yes, No]),
    ("signal_program", [Yes, No, No]),
    ("signal_guard", [Yes, No, No]),
    ("signal_sibling", [Yes, No, No]),
    ("trace_sibling", [Any, No, No]),
    ("read_sibling_memory", [Any, No, No]),
    ("gain_privileges", [No, No, No]),
    ("dump_core", [No, No, No]),
    ("inherit_secrets", [No, No, No]),
    ("inherit_loaded_code", [No, No, No]),
    ("allocate_three_gigabytes", [No, No, No]),
    // The guard finds and kills them all; their number is limited only by `rlimits.processes`.
    ("start_daemon", [Yes, Yes, Yes]),
    ("fork_a_hundred_times", [Yes, Yes, Yes]),
    ("raise_priority", [No, No, No]),
    // Network.
    ("connect_tcp", [Yes, Yes, No]),
    ("listen_tcp", [Yes, Yes, No]),
    ("connect_metadata_service", [Any, Any, No]),
    ("send_udp", [Yes, Yes, No]),
    ("connect_abstract_socket", [Yes, No, No]),
    // Landlock restricts sockets in the file system only since Linux 7.1.
    ("connect_unix_socket", [Yes, Yes, No]),
    ("open_netlink_socket", [Yes, Yes, No]),
    // The kernel.
    ("use_io_uring", [Any, Any, No]),
    ("create_user_namespace", [Any, Any, No]),
    ("enter_namespace", [No, No, No]),
    ("mount", [No, No, No]),
    ("load_bpf", [Any, Any, No]),
    ("use_keyring", [Any, Any, No]),
    ("measure_kernel", [Any, Any, No]),
    ("use_userfaultfd", [Any, Any, No]),
    ("change_root", [No, No, No]),
    ("make_device", [No, No, No]),
    ("change_personality", [Any, Any, Any]),
    ("set_host_name", [No, No, No]),
    ("reboot", [No, No, No]),
];

/// Makes all attempts at a level and compares them with its column of the table.
#[expect(clippy::print_stderr, reason = "what was not checked is reported")]
fn check(level: &str, column: usize) {
    let stage = Stage::new();
    let mut program = stage.start(&stage.hostile(&json!(level)), true);
    if program.is_refused(Need::of_level(level)) {
        assert_ne!(level, "off");
        return;
    }
    let attempts = stage.attempts(&mut program);
    let sandbox = program.server("fx")["sandbox"].clone();
    assert_eq!(attempts.as_object().unwrap().len(), TABLE.len(), "{attempts:#}");
    let lacks_scopes = sandbox["missing"].to_string().contains("signals");
    let mut wrong = Vec::new();
    for (name, expected) in TABLE {
        let result = attempts[*name].as_str().unwrap_or("not made");
        let is_scoped = [
            "signal_program",
            "signal_guard",
            "signal_sibling",
            "connect_abstract_socket",
        ]
        .contains(name);
        let expected = match expected[column] {
            No if level == "basic" && lacks_scopes && is_scoped => Any,
            expected => expected,
        };
        let seen = if result == "allowed" { Yes } else { No };
        if expected == Any {
            eprintln!("SKIPPED: {level}: {name} varies by system, here: {result}");
        } else if expected != seen {
            wrong.push(format!("{name} must be {expected:?}: {result}"));
        }
    }
    assert!(wrong.is_empty(), "{level}: {wrong:#?}");
    match level {
        "off" => assert_eq!(sandbox, Value::Null),
        level => assert_eq!(
            (&sandbox["requested"], &sandbox["in_force"]),
            (&json!(level), &json!(level))
        ),
    }
    program.tell("close");
    assert!(
        is_left_by_all(&stage.path("work")),
        "{level}: its daemon is left behind"
    );
}

#[test]
fn without_a_sandbox_a_server_reads_what_its_user_may_but_not_the_program() {
    check("off", 0);
}

#[test]
fn in_the_basic_sandbox_a_server_cannot_touch_the_user_or_other_servers() {
    check("basic", 1);
}

#[test]
fn in_the_strict_sandbox_a_server_has_no_network_and_sees_no_other_process() {
    check("strict", 2);
}
