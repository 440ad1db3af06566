//! SIGSTOP and SIGCONT to the command itself, as Ctrl-Z and `fg`, a debugger or a suspended laptop have it.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool};

use super::home::{Home, Ran, until};

/// How long the command is stopped. Every limit below has passed by then, and with it the moment in which a late timer is not told from one
/// that is in time.
const STOP: Duration = Duration::from_millis(2_800);

/// Answers soon, but not before the command is stopped.
fn fake() -> FakeServer {
    let tool = Tool::new("t")
        .answers_text("it arrived")
        .after(Duration::from_millis(500));
    FakeServer::new("fx").tool(tool)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Stops the command while the call is with its server, and lets it go on long after the answer has come.
fn stopped_during_the_call(home: &Home, args: &[&str], has_arrived: impl Fn() -> bool) -> Ran {
    let mut command = home.pegboard(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call has arrived", has_arrived);
    signal(&child, "-STOP");
    thread::sleep(STOP);
    signal(&child, "-CONT");
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What has arrived is read before a timer is believed: the idle limit of the call, its total, and the limit of the whole command.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_while_the_command_was_stopped_is_read() {
    let limits: [(&str, &[&str]); 3] = [
        ("call_timeout = '1s'", &[]),
        ("call_timeout = '1s'\ncall_total_timeout = '1s'", &[]),
        ("", &["--timeout", "2s"]),
    ];
    let mut running = Vec::new();
    for (settings, options) in limits {
        running.push(tokio::task::spawn_blocking(move || {
            let home = Home::new();
            home.write("pegboard.toml", &home.entry("fx", fake(), settings));
            let args = [&["call", "fx.t"], options].concat();
            let ran = stopped_during_the_call(&home, &args, || home.log("fx").count("tools/call") == 1);
            (ran, format!("stdio, {settings} {options:?}"))
        }));
        let http = fake().serve_http().await.unwrap();
        running.push(tokio::task::spawn_blocking(move || {
            let home = Home::new();
            let url = format!("http://{}/mcp", http.address());
            home.write("pegboard.toml", &format!("[servers.fx]\nurl = '{url}'\n{settings}\n"));
            let args = [&["call", "fx.t"], options].concat();
            let ran = stopped_during_the_call(&home, &args, || http.count("tools/call") == 1);
            (ran, format!("HTTP, {settings} {options:?}"))
        }));
    }
    for ran in running {
        let (ran, what) = ran.await.unwrap();
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "it arrived\n"),
            "{what}: {ran:?}"
        );
    }
}
