//! stdio with real processes.

use std::{path::Path, process::Stdio, time::Duration};

use pegboard_testkit::{Child, FakeServer, Fault, Tool, When, is_alive, kill, read_log, read_pids};
use serde_json::json;
use tokio::{
    io::AsyncReadExt,
    process::{ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

use crate::wires::lines::{LIMIT, Lines, call};

struct Process {
    child: tokio::process::Child,
    client: Lines<ChildStdout, ChildStdin>,
}

fn start(fake: &FakeServer) -> Process {
    let (program, args) = fake.command();
    let mut command = Command::new(program);
    command.args(args).env("CANARY", "yellow").kill_on_drop(true);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let client = Lines::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    Process { child, client }
}

impl Process {
    async fn exit_code(&mut self) -> Option<i32> {
        timeout(LIMIT, self.child.wait())
            .await
            .expect("an exit in time")
            .unwrap()
            .code()
    }

    async fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .await
            .unwrap();
        text
    }
}

/// Waits until the file names this many processes.
async fn children(path: &Path, count: usize) -> Vec<u32> {
    let wait = async {
        while read_pids(path).len() < count {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("children in time");
    read_pids(path)
}

#[tokio::test]
async fn a_process_serves_stdio_logs_and_ends_with_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let (log, ledger) = (folder.path().join("log"), folder.path().join("ledger"));
    let fake = FakeServer::new("p")
        .tool(Tool::new("nonce").echoes_nonce())
        .tool(Tool::new("env").shows_env())
        .tool(Tool::new("pid").shows_pid())
        .log(&log)
        .ledger(&ledger);
    let mut process = start(&fake);
    assert_eq!(process.client.initialize().await["result"]["serverInfo"]["name"], "p");
    process.client.send(call(1, "nonce", json!({ "nonce": "abc" }))).await;
    assert_eq!(process.client.message().await["result"]["content"][0]["text"], "abc");
    process.client.send(call(2, "env", json!({}))).await;
    assert_eq!(
        process.client.message().await["result"]["structuredContent"]["CANARY"],
        "yellow"
    );
    let pid = process.child.id().unwrap();
    process.client.send(call(3, "pid", json!({}))).await;
    assert_eq!(
        process.client.message().await["result"]["content"][0]["text"],
        pid.to_string()
    );
    process.client.close_input();
    assert_eq!(process.exit_code().await, Some(0));
    let log = read_log(&log).unwrap();
    assert_eq!(log.spawned, [pid]);
    assert_eq!(log.count("tools/call"), 3);
    assert_eq!(std::fs::read_to_string(ledger).unwrap(), "executed abc\n");
}

#[tokio::test]
async fn a_process_exits_with_its_code_and_its_last_words() {
    let start_fault = Fault::ExitsAtStart {
        code: 3,
        stderr: "no such database\n".into(),
    };
    let hello_fault = Fault::ExitsAtHandshake {
        code: 4,
        stderr: "bad licence\n".into(),
    };
    for (fault, code, words) in [(start_fault, 3, "no such database"), (hello_fault, 4, "bad licence")] {
        let mut process = start(&FakeServer::new("p").fault(fault));
        if code == 4 {
            process
                .client
                .send(crate::wires::lines::request(0, "initialize", json!({})))
                .await;
        }
        assert_eq!(process.exit_code().await, Some(code));
        assert!(process.stderr().await.contains(words));
    }
}

#[tokio::test]
async fn a_process_closes_its_output_and_lives() {
    let fake = FakeServer::new("p").tool(Tool::new("t")).fault(Fault::ClosesOutput);
    let mut process = start(&fake);
    process.client.send(call(1, "t", json!({}))).await;
    assert!(process.client.rest().await.is_empty());
    assert!(is_alive(process.child.id().unwrap()));
}

#[tokio::test]
async fn a_process_dies_in_a_call_after_executing_it() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let fake = FakeServer::new("p")
        .tool(Tool::new("t"))
        .ledger(&ledger)
        .fault_on(When::default().nth(2), Fault::DiesAfterExecuting { code: 9 });
    let mut process = start(&fake);
    process.client.send(call(1, "t", json!({ "nonce": 1 }))).await;
    assert_eq!(process.client.message().await["id"], 1);
    process.client.send(call(2, "t", json!({ "nonce": 2 }))).await;
    assert!(process.client.rest().await.is_empty());
    assert_eq!(process.exit_code().await, Some(9));
    assert_eq!(std::fs::read_to_string(ledger).unwrap(), "executed 1\nexecuted 2\n");
}

#[tokio::test]
async fn a_process_prompts_without_a_newline() {
    let mut process = start(&FakeServer::new("npx").fault(Fault::Prompts {
        text: "Ok to proceed? (y) ".into(),
    }));
    process
        .client
        .send(crate::wires::lines::request(0, "initialize", json!({})))
        .await;
    assert!(!process.client.is_silent().await);
    process.child.kill().await.unwrap();
    assert_eq!(process.client.rest().await, b"Ok to proceed? (y) ");
}

#[tokio::test]
async fn a_stubborn_process_ignores_the_end_of_input_and_term() {
    let mut process = start(&FakeServer::new("p").fault(Fault::IgnoresTerm).fault(Fault::IgnoresEof));
    process.client.initialize().await;
    process.client.close_input();
    let pid = process.child.id().unwrap();
    let status = std::process::Command::new("kill")
        .args(["-TERM", &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    assert!(timeout(Duration::from_millis(300), process.child.wait()).await.is_err());
}

#[tokio::test]
async fn children_of_every_kind_outlive_a_process() {
    for how in [Child::SameGroup, Child::Setsid, Child::DoubleFork] {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pids");
        let fault = Fault::SpawnsChildren {
            how,
            count: 2,
            pid_file: pid_file.clone(),
        };
        let mut process = start(&FakeServer::new("p").fault(fault));
        process.client.initialize().await;
        let pids = children(&pid_file, 2).await;
        process.child.kill().await.unwrap();
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{how:?}");
        pids.iter().for_each(|pid| kill(*pid));
    }
}

#[tokio::test]
async fn a_daemon_keeps_the_output_open_after_the_exit() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pids");
    let fault = Fault::ForksAndExits {
        pid_file: pid_file.clone(),
        keeps_stdout: true,
    };
    let mut process = start(&FakeServer::new("p").fault(fault));
    let pids = children(&pid_file, 1).await;
    assert_eq!(process.exit_code().await, Some(0));
    assert!(process.client.is_silent().await);
    kill(pids[0]);
    assert!(process.client.rest().await.is_empty());
}

#[tokio::test]
async fn later_processes_follow_another_script() {
    let folder = tempfile::tempdir().unwrap();
    let fails = FakeServer::new("p").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: String::new(),
    });
    let fake = fails
        .log(folder.path().join("log"))
        .then_after(2, FakeServer::new("up"));
    for _ in 0..2 {
        assert_eq!(start(&fake).exit_code().await, Some(1));
    }
    let mut third = start(&fake);
    assert_eq!(third.client.initialize().await["result"]["serverInfo"]["name"], "up");
}

#[tokio::test]
async fn a_process_ends_with_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (program, args) = FakeServer::new("p").log(&log).fault(Fault::IgnoresEof).command();
    // The shell exits once the fake runs.
    let script =
        r#"log=$1; shift; "$@" </dev/null >/dev/null 2>&1 & until grep -qs spawned "$log"; do sleep 0.01; done"#;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg("sh").arg(&log).arg(program).args(args);
    assert!(shell.status().await.unwrap().success());
    let pid = read_log(&log).unwrap().spawned[0];
    let ended = async {
        while is_alive(pid) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, ended).await.expect("the end of the fake");
}

#[tokio::test]
async fn a_flood_on_both_outputs_ends_and_the_server_goes_on() {
    let fake = FakeServer::new("p")
        .fault(Fault::NoiseAtStart { lines: 2_500 })
        .fault(Fault::FloodsStderr { bytes: 9_000 });
    let mut process = start(&fake);
    process
        .client
        .send(crate::wires::lines::request(0, "ping", json!({})))
        .await;
    for _ in 0..2_500 {
        assert_eq!(process.client.line().await.len(), 31);
    }
    assert_eq!(process.client.message().await["id"], 0);
    process.client.close_input();
    assert_eq!(process.exit_code().await, Some(0));
    assert!(process.stderr().await.len() >= 9_000);
}

#[tokio::test]
async fn a_process_that_stops_reading_lets_the_pipe_fill() {
    let mut process = start(&FakeServer::new("p").fault_on(When::method("ping"), Fault::StopsReading));
    process
        .client
        .send(crate::wires::lines::request(0, "ping", json!({})))
        .await;
    let flood = async {
        loop {
            process
                .client
                .send(call(1, "t", json!({ "padding": "x".repeat(4096) })))
                .await;
        }
    };
    assert!(timeout(Duration::from_millis(500), flood).await.is_err());
}

#[tokio::test]
async fn a_process_serves_the_network_and_says_where() {
    let (program, mut args) = FakeServer::new("p").command();
    args.extend(["--listen", "127.0.0.1:0", "--transport", "sse"].map(String::from));
    let mut command = Command::new(program);
    let mut child = command
        .args(args)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut output = Lines::new(child.stdout.take().unwrap(), tokio::io::sink());
    let line = String::from_utf8(output.line().await).unwrap();
    let address = line
        .strip_prefix("listening on http://")
        .and_then(|rest| rest.strip_suffix("/sse"))
        .unwrap();
    let reply = crate::wires::raw_http::send(address.parse().unwrap(), "POST /sse", &[], "", LIMIT)
        .await
        .unwrap();
    assert_eq!(reply.status, 405);
}

#[tokio::test]
async fn the_conformance_server_runs_as_a_process_in_each_era() {
    for (era, method) in [("legacy", "initialize"), ("modern", "server/discover")] {
        let mut command = Command::new(pegboard_testkit::fake_server_binary());
        let mut child = command
            .args(["conformance", "--era", era])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut client = Lines::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let first = client
            .request(
                1,
                method,
                crate::wires::lines::modern(json!({ "protocolVersion": "2025-11-25" })),
            )
            .await;
        let capabilities = &first["result"]["capabilities"];
        assert_eq!(capabilities["resources"]["subscribe"], true, "{era}: {first}");
        assert!(capabilities["logging"].is_object() && capabilities["completions"].is_object());
        client.close_input();
        assert!(timeout(LIMIT, child.wait()).await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn a_misspelt_option_of_the_conformance_server_is_refused() {
    let wrong = [
        ["--era", "victorian"],
        ["--transport", "pigeon"],
        ["--port", "http"],
        ["--port", "8080"],
        ["--eras", "both"],
    ];
    for options in wrong {
        let mut command = Command::new(pegboard_testkit::fake_server_binary());
        let output = command.arg("conformance").args(options).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("usage:"),
            "{options:?}"
        );
    }
}
