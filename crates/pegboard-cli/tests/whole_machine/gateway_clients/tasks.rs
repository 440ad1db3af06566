//! Tasks of a real client on a real server.

use std::{fs, path::Path};

use serde_json::Value;

use crate::gateway_clients::{
    gateway::Gateway,
    scratch::{Scratch, node, peers, source},
};

#[test]
fn the_typescript_sdk_polls_a_task_to_its_result_at_both_paths() {
    let scratch = Scratch::new();
    let server = peers("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let config = format!("[servers.everything]\ncommand = {:?}\nargs = [{server:?}]\n", node());
    fs::write(scratch.home().join(".config/pegboard/pegboard.toml"), config).unwrap();
    let gateway = Gateway::start(&scratch);
    for (path, tool) in [
        ("/mcp", "everything__simulate-research-query"),
        ("/mcp/everything", "simulate-research-query"),
    ] {
        let mut command = scratch.command(Path::new(&node()));
        command.args([&source("clients/tasks_client.mjs"), &gateway.url(path), tool]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(
            report["declared"]["requests"]["tools"]["call"].is_object(),
            "{path}: {report}"
        );
        let seen: Vec<_> = report["seen"].as_array().unwrap().iter().collect();
        assert!(
            seen[0] == "taskCreated" && seen.last().unwrap() == &"result" && seen.contains(&&"taskStatus".into()),
            "{path}: {report}"
        );
        assert!(report["text"].as_str().unwrap().contains("tides"), "{path}: {report}");
    }
    gateway.stop();
}
