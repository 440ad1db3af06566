//! A limit of a token refuses a call, and no client loses its session by that.

use std::{fmt::Write as _, fs, path::Path};

use pegboard::config::TokenDigest;
use serde_json::Value;

use crate::gateway_clients::{
    gateway::{Gateway, pegboard},
    scratch::{Scratch, node, peers, source},
};

/// Each client with the words that start it.
fn clients() -> [(&'static str, Vec<String>); 4] {
    let python = |environment| {
        let program = peers(&format!("{environment}/bin/python"));
        vec![program, source("clients/limited_client.py")]
    };
    let typescript = |line: &str| vec![node(), source("clients/limited_client.mjs"), line.to_owned()];
    [
        ("python-1", python("python-legacy")),
        ("python-2", python("python-modern")),
        ("typescript-1", typescript("1")),
        ("typescript-2", typescript("2")),
    ]
}

#[test]
fn a_client_whose_token_has_reached_its_limit_is_told_so_and_goes_on() {
    let scratch = Scratch::new();
    let program = pegboard().display().to_string();
    let mut config = format!("[servers.demo]\ncommand = {program:?}\nargs = ['demo-server']\n");
    for (name, _) in clients() {
        let digest = TokenDigest::compute(&format!("pgb_{name}"));
        write!(config, "[serve.tokens.{name}]\nsha256 = '{digest}'\nrate = '1/h'\n").unwrap();
    }
    fs::write(scratch.home().join(".config/pegboard/pegboard.toml"), config).unwrap();
    let gateway = Gateway::start(&scratch);
    for (name, words) in clients() {
        let mut command = scratch.command(Path::new(&words[0]));
        command.args(&words[1..]);
        command.args([&gateway.url("/mcp"), &format!("pgb_{name}"), "demo__calculate"]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = report["error"].as_str().unwrap();
        assert!(error.contains("the limit of 1 call in"), "{name}: {report}");
        assert!(report["tools"].as_u64() > Some(0), "{name}: {report}");
    }
    gateway.stop();
}
