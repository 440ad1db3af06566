//! The settings of a sandbox.

use serde_json::{Value, json};

use crate::{kernel::Need, sandbox::stage::Stage};

#[test]
fn a_server_reads_and_writes_what_its_config_names() {
    let text = "cat ../extra/file; echo; echo x > ../extra/new || true; echo x > ../out/new && echo written";
    for level in ["basic", "strict"] {
        let stage = Stage::new();
        let mut seen = Vec::new();
        for (read, write) in [(vec![stage.path("extra")], vec![stage.path("out")]), (vec![], vec![])] {
            let sandbox = json!({ "level": level, "read": read, "write": write });
            let mut program = stage.start(&stage.script(text, &sandbox), true);
            if program.is_refused(Need::of_level(level)) {
                return;
            }
            let stderr = program.stderr();
            seen.push((stderr.contains("legible"), stderr.contains("written")));
        }
        assert_eq!(seen, [(true, true), (false, false)], "{level}");
        assert!(stage.path("out/new").is_file() && !stage.path("extra/new").exists());
    }
}

#[test]
fn a_server_reaches_only_the_network_of_its_config() {
    let stage = Stage::new();
    for (network, tcp, udp) in [
        (json!([stage.tcp_port()]), true, true),
        (json!([1]), false, true),
        (json!(false), false, false),
        (json!(true), true, true),
    ] {
        let sandbox = json!({ "level": "basic", "network": network });
        let mut program = stage.start(&stage.hostile(&sandbox), true);
        if program.is_refused(Need::Ports) {
            return;
        }
        let attempts = stage.attempts(&mut program);
        let is_allowed = |name: &str| attempts[name] == "allowed";
        assert_eq!(
            (is_allowed("connect_tcp"), is_allowed("send_udp")),
            (tcp, udp),
            "{network}"
        );
    }
}

#[test]
fn a_strict_server_may_be_given_the_network() {
    let stage = Stage::new();
    let sandbox = json!({ "level": "strict", "network": true });
    let mut program = stage.start(&stage.hostile(&sandbox), true);
    if program.is_refused(Need::Namespaces) {
        return;
    }
    let attempts = stage.attempts(&mut program);
    assert_eq!(attempts["connect_tcp"], "allowed");
    assert_ne!(attempts["connect_unix_socket"], "allowed");
}

#[test]
fn a_server_whose_sandbox_cannot_be_enforced_is_not_started_unless_that_is_allowed() {
    let stage = Stage::new();
    for level in ["basic", "strict"] {
        for sandbox in [json!(level), json!({ "level": level, "require": true })] {
            let mut program = stage.start(&stage.hostile(&sandbox), false);
            let server = program.server("fx");
            assert_eq!(server["pid"], Value::Null);
            let message = server["last_error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("`{level}` is not in force")), "{message}");
            assert!(message.contains("pegboard::shim()"), "{message}");
        }
        let sandbox = json!({ "level": level, "require": false });
        let mut program = stage.start(&stage.hostile(&sandbox), false);
        let server = program.server("fx");
        assert_eq!(server["state"], "ready");
        let shown = &server["sandbox"];
        assert_eq!(
            (&shown["requested"], &shown["in_force"]),
            (&json!(level), &json!("off"))
        );
        assert_eq!(
            shown["missing"],
            json!(["this program does not call `pegboard::shim()`"])
        );
    }
}

#[test]
fn a_folder_of_the_sandbox_that_does_not_exist_is_reported() {
    let stage = Stage::new();
    let sandbox = json!({ "write": [stage.path("nowhere")] });
    let mut program = stage.start(&stage.hostile(&sandbox), true);
    let server = program.server("fx");
    let message = server["last_error"]["message"].as_str().unwrap();
    assert!(message.contains("nowhere, which does not exist"), "{message}");
    assert_eq!(server["sandbox"]["requested"], "basic");
}

#[test]
fn a_server_that_a_sandbox_denies_a_file_gets_a_hint_to_its_settings() {
    let stage = Stage::new();
    for (level, hint) in [
        (json!("basic"), "`sandbox.read` or `sandbox.write`"),
        (json!("off"), "own words"),
    ] {
        let mut program = stage.start(&stage.script("cat ../foreign/secret /nonexistent", &level), true);
        if program.is_refused(Need::Files) {
            return;
        }
        let error = program.server("fx")["last_error"].clone();
        assert!(error["hint"].as_str().unwrap().contains(hint), "{level}: {error}");
    }
}
