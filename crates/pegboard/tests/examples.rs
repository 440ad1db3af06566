//! The examples are programs that check themselves. Each runs as its own process, as a reader would run it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{io::AsyncReadExt as _, process::Command};

/// Longer than any of them needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs an example; it must succeed and its output must contain all of `words`.
async fn runs(name: &str, words: &[&str]) {
    let mut command = Command::new(built(name));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("it starts");
    let (mut output, mut errors) = (String::new(), String::new());
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let running = async {
        let read = tokio::join!(out.read_to_string(&mut output), err.read_to_string(&mut errors));
        read.0.and(read.1).expect("text");
        child.wait().await.expect("it ends")
    };
    let ended = tokio::time::timeout(PATIENCE, running).await;
    let told = format!("{name} wrote:\n{output}\n{errors}");
    assert!(
        ended.unwrap_or_else(|_| panic!("{told}\nand did not end")).success(),
        "{told}"
    );
    for word in words {
        assert!(output.contains(word), "`{word}` is missing: {told}");
    }
}

/// The executable of the example, next to the running test.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.ancestors().nth(2).expect("two folders above it");
    let path = folder
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "run `cargo build -p pegboard --examples` first");
    path
}

#[tokio::test]
async fn one_server_is_listed_and_called() {
    runs(
        "one_server",
        &["demo__greet: Greets somebody.", "it answered: Good morning!"],
    )
    .await;
}

#[tokio::test]
async fn both_agent_loops_find_the_answer_although_one_server_is_down_and_another_dies() {
    let words = [
        "wiki is away",
        "# With function calls",
        "# With text",
        "local.kill_k8s → killed",
        "k8s.get_pods → api-7f9",
        "answer: api-7f9 crashes; Mara is on call.",
    ];
    runs("agent_loop", &words).await;
}

#[tokio::test]
async fn native_tools_stand_beside_those_of_a_server() {
    let words = [
        "weather__forecast",
        "units__fahrenheit",
        "units.fahrenheit says 64.4 °F",
    ];
    runs("in_process_server", &words).await;
}

#[cfg(feature = "rmcp")]
#[tokio::test]
async fn an_rmcp_handler_is_called_through_the_board_and_the_board_through_rmcp() {
    let words = [
        "the board lists units__fahrenheit",
        "units.fahrenheit says 64.4 °F",
        "the client gets 212.0 °F",
    ];
    runs("rmcp_handler", &words).await;
}

#[tokio::test]
async fn a_long_result_is_summarised_and_can_still_be_searched() {
    let words = ["3000 requests, all fine but one", "request 1234: status 500"];
    runs("summarise_large_results", &words).await;
}

#[tokio::test]
async fn one_write_is_agreed_to_and_another_refused() {
    let words = [
        "may I call files.delete",
        "draft.txt is deleted",
        "that is not a draft",
        "left: [\"thesis.txt\"]",
    ];
    runs("approve_writes", &words).await;
}
