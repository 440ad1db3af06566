//! Ctrl-C and SIGTERM.

use std::process::{Child, Command, Stdio};

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::json;

use super::home::{Home, Ran, until};

fn stubborn() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t"))
        .fault(Fault::NeverAnswers)
        .fault(Fault::OutlivesParent)
        .fault(Fault::IgnoresEof)
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.pegboard(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_signal_cancels_the_call_and_leaves_no_process() {
    for name in ["INT", "TERM"] {
        let home = Home::new();
        home.config(&home.entry("fx", stubborn(), "stop_timeout = '200ms'"));
        let child = start(&home, &["call", "fx.t"]);
        until("the call has arrived", || home.log("fx").count("tools/call") == 1);
        signal(&child, name);
        let ran = Ran::end_of(child);
        ran.ends_with(130).says("error: interrupted");
        assert_eq!(ran.out, "");
        assert_eq!(home.log("fx").count("notifications/cancelled"), 1);
        home.assert_gone("fx");
    }
}

#[test]
fn programs_get_their_document_also_when_interrupted() {
    let home = Home::new();
    home.config(&home.entry("fx", stubborn(), "stop_timeout = '200ms'"));
    let child = start(&home, &["call", "fx.t", "-o", "json"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    signal(&child, "INT");
    let json = Ran::end_of(child).ends_with(130).json();
    assert_eq!(
        (&json["status"], &json["outcome"]["kind"]),
        (&json!("lost"), &json!("cancelled"))
    );
    assert_eq!(json["outcome"]["may_have_executed"], true);
    assert_eq!((&json["server"], &json["tool"]), (&json!("fx"), &json!("t")));
}

#[test]
fn a_call_that_is_interrupted_before_it_was_sent_has_not_run() {
    let home = Home::new();
    let fake = stubborn().fault(Fault::SilentHandshake);
    let settings = "stop_timeout = '200ms'\nera_silence = '60s'";
    home.config(&home.entry("fx", fake, settings));
    let child = start(&home, &["call", "fx.t", "-o", "json"]);
    until("the handshake has begun", || !home.log("fx").requests.is_empty());
    signal(&child, "INT");
    let json = Ran::end_of(child).ends_with(130).json();
    assert_eq!(
        (&json["status"], &json["outcome"]["kind"]),
        (&json!("refused"), &json!("cancelled"))
    );
    assert_eq!(json["outcome"]["may_have_executed"], false);
}

/// `-o json` promises exactly one document, however the command ends.
#[test]
fn programs_get_the_document_of_every_command_when_interrupted() {
    for (command, key, empty) in [
        (&["tools"][..], "tools", json!([])),
        (&["tools", "--cost"], "servers", json!([])),
        (&["status"], "servers", json!([])),
        (&["resources"], "resources", json!([])),
        (&["prompts"], "prompts", json!([])),
        (&["resources", "read", "a:b"], "contents", json!(null)),
        (&["prompts", "get", "p"], "prompt", json!(null)),
    ] {
        let home = Home::new();
        let fake = stubborn().fault(Fault::SilentHandshake);
        home.config(&home.entry("fx", fake, "stop_timeout = '200ms'\nera_silence = '60s'"));
        let child = start(&home, &[command, &["-o", "json"]].concat());
        until("the handshake has begun", || !home.log("fx").requests.is_empty());
        signal(&child, "INT");
        let json = Ran::end_of(child).ends_with(130).json();
        assert_eq!(json[key], empty, "{command:?}: {json}");
        if empty.is_null() {
            assert_eq!(json["error"]["kind"], "cancelled");
        }
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_server_that_does_not_come_up() {
    for command in [&["tools"][..], &["status"], &["call", "fx.t"]] {
        let home = Home::new();
        let fake = stubborn().fault(Fault::SilentHandshake);
        home.config(&home.entry("fx", fake, "stop_timeout = '200ms'\nera_silence = '60s'"));
        let child = start(&home, command);
        until("the handshake has begun", || !home.log("fx").requests.is_empty());
        signal(&child, "INT");
        Ran::end_of(child).ends_with(130).says("error: interrupted");
        home.assert_gone("fx");
    }
}

#[test]
fn a_second_signal_does_not_wait_for_the_server_to_end() {
    let home = Home::new();
    let fake = stubborn().fault(Fault::IgnoresTerm);
    home.config(&home.entry("fx", fake, "stop_timeout = '60s'"));
    let child = start(&home, &["call", "fx.t"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    signal(&child, "INT");
    until("the call was cancelled", || {
        home.log("fx").count("notifications/cancelled") == 1
    });
    signal(&child, "INT");
    Ran::end_of(child).ends_with(130);
    home.assert_gone("fx");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_cancels_the_call_over_every_network_transport() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("t")).fault(Fault::NeverAnswers);
    let (http, sse, ws) = (fake.serve_http().await, fake.serve_sse().await, fake.serve_ws().await);
    for handle in [http.unwrap(), sse.unwrap(), ws.unwrap()] {
        let child = start(&home, &["call", "web.t", &format!("--server=web={}", handle.url())]);
        until("the call has arrived", || handle.count("tools/call") == 1);
        signal(&child, "INT");
        Ran::end_of(child).ends_with(130).says("error: interrupted");
        until("the server was told", || handle.count("notifications/cancelled") == 1);
    }
}

/// Ctrl-C at a terminal signals the whole foreground process group. The server is not in it, so the command must cancel the call.
#[cfg(unix)]
#[test]
fn a_result_for_a_pipe_without_a_reader_is_given_up_after_a_signal_or_the_timeout() {
    let home = Home::new();
    home.config(&home.entry("fx", FakeServer::new("fx").tool(Tool::new("t").answers_text("a")), ""));
    assert!(
        Command::new("mkfifo")
            .arg(home.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    for name in ["INT", "TERM"] {
        let child = start(&home, &["call", "fx.t", "--out", "pipe"]);
        let calls = home.log("fx").count("tools/call");
        until("the call has arrived", || home.log("fx").count("tools/call") > calls);
        signal(&child, name);
        Ran::end_of(child).ends_with(130);
    }
    home.run(&["call", "fx.t", "--out", "pipe", "--timeout", "2s"])
        .ends_with(124)
        .says("pipe is not written whole: the timeout passed");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_at_a_terminal_reaches_the_server_as_a_cancelled_call_and_not_as_a_signal() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("t")).fault(Fault::NeverAnswers);
    home.config(&home.entry("fx", fake, ""));
    let mut terminal = super::pty::Terminal::start(&home, &["call", "fx.t"]);
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    terminal.types("\u{3}");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(
        shown.ends_with(
            "error: interrupted. The call may have been carried out. Check the state before repeating it.\n"
        ),
        "{shown:?}"
    );
    assert_eq!(home.log("fx").count("notifications/cancelled"), 1);
    home.assert_gone("fx");
}
