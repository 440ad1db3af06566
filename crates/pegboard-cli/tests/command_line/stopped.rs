//! SIGSTOP and SIGCONT to the command itself: Ctrl-Z and `fg`, a debugger, a suspended laptop.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool};

use super::home::{Home, Ran, until};

/// How long the command is stopped: past every limit below, and past the delay below which a late timer counts as punctual.
const STOP: Duration = Duration::from_secs(10);

/// A server that responds shortly after the command is stopped.
fn fake() -> FakeServer {
    let tool = Tool::new("t").answers_text("it arrived").after(Duration::from_secs(2));
    FakeServer::new("fx").tool(tool)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Stops the command during the call, and continues it long after the response has arrived.
fn stopped_during_the_call(home: &Home, args: &[&str], has_arrived: impl Fn() -> bool) -> Ran {
    let mut command = home.pegboard(args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call has arrived", has_arrived);
    signal(&child, "-STOP");
    thread::sleep(STOP);
    signal(&child, "-CONT");
    Ran::end_of(child)
}

/// Input that arrived during the stop is read before a timer fires: the call's idle timeout, its total timeout, and `--timeout`.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_while_the_command_was_stopped_is_read() {
    let limits: [(&str, &[&str]); 3] = [
        ("call_timeout = '4s'", &[]),
        ("call_timeout = '4s'\ncall_total_timeout = '4s'", &[]),
        // It counts from the start of the command, which may take seconds on a busy machine.
        ("", &["--timeout", "9s"]),
    ];
    let mut running = Vec::new();
    for (settings, options) in limits {
        running.push(tokio::task::spawn_blocking(move || {
            let home = Home::new();
            home.config(&home.entry("fx", fake(), settings));
            let args = [&["call", "fx.t"], options].concat();
            let ran = stopped_during_the_call(&home, &args, || home.log("fx").count("tools/call") == 1);
            (ran, format!("stdio, {settings} {options:?}"))
        }));
        let http = fake().serve_http().await.unwrap();
        running.push(tokio::task::spawn_blocking(move || {
            let home = Home::new();
            let url = format!("http://{}/mcp", http.address());
            home.config(&format!("[servers.fx]\nurl = '{url}'\n{settings}\n"));
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
