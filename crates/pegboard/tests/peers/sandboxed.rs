//! Third-party servers in a sandbox, as they are usually installed. The program is the example `shimmed`, because servers have a sandbox
//! only below the guard.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    kernel::{Need, accept_refusal},
    peer::*,
};

/// A program with one server.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    folder: TempDir,
}

impl Program {
    /// Starts a server with this sandbox, in a working directory of its own. Returns `None` if this kernel does not offer its level.
    fn start(words: &[String], sandbox: &Value) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let server = json!({
            "command": words[0], "args": words[1..], "cwd": folder.path().join("work"), "sandbox": sandbox,
            "restart": false, "era": "legacy",
        });
        let config = folder.path().join("config.json");
        fs::write(&config, json!({ "servers": { "fx": server } }).to_string()).unwrap();
        let mut command = Command::new(shimmed());
        command.arg(config).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut program = Self {
            child,
            input,
            output,
            folder,
        };
        let server = program.read()["servers"][0].clone();
        let level = sandbox["level"].as_str().unwrap();
        let message = server["last_error"]["message"].as_str().unwrap_or_default();
        if message.contains("is not in force") {
            accept_refusal(Need::of_level(level), None, message);
            return None;
        }
        assert_eq!(server["state"], "ready", "{level}: {words:?}: {server:#}");
        assert_eq!(server["sandbox"]["in_force"], level);
        Some(program)
    }

    fn read(&mut self) -> Value {
        let line = self.output.next().expect("the program runs").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Calls a tool. Returns its text, or the error.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "call fx.{tool} {arguments}").unwrap();
        let reply = self.read();
        let text = reply["text"].as_str().unwrap_or_default().to_owned();
        if reply["is_error"] == true { Err(text) } else { Ok(text) }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It exits at the end of its input, and its guard with it.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The executable of the example, next to the running test.
fn shimmed() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/shimmed");
    assert!(path.is_file(), "run `cargo build -p pegboard --example shimmed` first");
    path
}

/// Starts a server at both levels without any paths, and calls a tool.
fn check(words: &[String], tool: &str, arguments: &Value, expected: &str) {
    for level in ["basic", "strict"] {
        if let Some(mut program) = Program::start(words, &json!({ "level": level })) {
            let text = program.call(tool, arguments).unwrap();
            assert!(text.contains(expected), "{level}: {text}");
        }
    }
}

#[test]
fn a_node_server_runs_in_both_sandboxes_without_paths() {
    check(&everything(), "echo", &json!({ "message": "hello" }), "hello");
}

#[test]
fn a_node_server_that_is_started_by_its_own_name_runs_in_both_sandboxes() {
    // Its first line is `#!/usr/bin/env node`.
    let program = home().join("npm/node_modules/.bin/mcp-server-everything");
    let words = [program.display().to_string()];
    check(&words, "echo", &json!({ "message": "hello" }), "hello");
}

#[test]
fn a_python_server_in_a_virtual_environment_runs_in_both_sandboxes_without_paths() {
    check(&time(), "get_current_time", &json!({ "timezone": "Etc/UTC" }), "+00:00");
}

#[test]
fn a_python_script_of_a_virtual_environment_runs_in_both_sandboxes_without_paths() {
    let arguments = json!({ "a": 2, "b": 3 });
    check(&python_modern(), "add", &arguments, "5");
}

#[test]
fn npx_has_a_package_cache_of_its_own_in_both_sandboxes() {
    let project = home().join("npm").canonicalize().unwrap();
    let folder = project.display().to_string();
    // It finds the package in the project, so that it needs no network.
    let words = ["npx", "--prefix", &folder, "--no", "mcp-server-everything"].map(str::to_owned);
    for level in ["basic", "strict"] {
        let Some(mut program) = Program::start(&words, &json!({ "level": level, "read": [project] })) else {
            continue;
        };
        let echoed = program.call("echo", &json!({ "message": "hello" })).unwrap();
        assert!(echoed.contains("hello"), "{level}: {echoed}");
        let caches = fs::read_dir(program.folder.path().join("cache/pegboard/packages")).unwrap();
        let caches: Vec<_> = caches.map(|cache| cache.unwrap().path().join("npm/_logs")).collect();
        assert!(caches.len() == 1 && caches[0].is_dir(), "{level}: {caches:?}");
    }
}

#[test]
fn a_file_server_reads_and_writes_only_the_folders_of_its_config() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("old.txt"), "legible").unwrap();
    let write = json!({ "path": root.join("new.txt"), "content": "written" });
    for level in ["basic", "strict"] {
        let words = filesystem(&root);
        let Some(mut program) = Program::start(&words, &json!({ "level": level, "read": [root] })) else {
            continue;
        };
        let read = program.call("read_text_file", &json!({ "path": root.join("old.txt") }));
        assert_eq!(read.as_deref(), Ok("legible"), "{level}");
        let denied = program.call("write_file", &write).unwrap_err();
        assert!(denied.contains("EACCES"), "{level}: {denied}");
        assert!(!Path::new(&root).join("new.txt").exists());
        drop(program);

        let mut program = Program::start(&words, &json!({ "level": level, "write": [root] })).unwrap();
        program.call("write_file", &write).unwrap();
        assert_eq!(fs::read_to_string(root.join("new.txt")).unwrap(), "written");
        fs::remove_file(root.join("new.txt")).unwrap();
    }
}
