//! The commands of mcporter and the Inspector, as their users type them.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::gateway_clients::{
    plan::Plan,
    scratch::{Scratch, node, peers},
};

/// Runs the commands at the endpoint of a whole board. Panics if one of them fails.
pub(crate) async fn succeed(url: &str, scratch: &Scratch) {
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}).to_string();
    let board = ["--http-url", url, "--allow-http", "--name", "board"];
    let listing = run(scratch, "mcporter", [&["list", "--json"], &board]);
    let call = ["call", "time__convert_time", "--args", &noon];
    let called = run(scratch, "mcporter", [&call, &board]);
    let inspect = ["--cli", url, "--transport", "http", "--method", "tools/call"];
    let named = ["--tool-name", "time__convert_time", "--tool-args-json", &noon];
    let inspected = run(scratch, "mcp-inspector", [&inspect, &named]);
    let (listing, called, inspected) = tokio::join!(listing, called, inspected);

    let listing: Value = serde_json::from_str(&listing).unwrap();
    let listed = listing["tools"].as_array().unwrap();
    assert_eq!(
        listed.len(),
        Plan::of_board("", Path::new("")).tools().len(),
        "{listing:#}"
    );
    for printed in [called, inspected] {
        assert!(printed.contains("T21:00:00+09:00"), "{printed}");
    }
}

/// Runs a command and returns what it prints.
async fn run(scratch: &Scratch, program: &str, words: [&[&str]; 2]) -> String {
    let words = words.concat();
    let mut command = scratch.command(Path::new(&node()));
    command
        .arg(peers(&format!("npm/node_modules/.bin/{program}")))
        .args(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{program} {words:?} ends with {}: {out}{err}",
        output.status
    );
    out.into_owned()
}
