//! Which servers of a host are those of the config, and which stay in the host.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The settings of the servers in the config file, as they are written.
fn servers(home: &Home) -> toml::Table {
    let text = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    let mut file: toml::Table = text.parse().unwrap();
    match file.remove("servers") {
        Some(toml::Value::Table(servers)) => servers,
        other => panic!("{other:?}"),
    }
}

fn names(home: &Home) -> Vec<String> {
    let mut names: Vec<String> = servers(home).keys().cloned().collect();
    names.sort();
    names
}

/// Runs the program with one more variable.
fn run_with(home: &Home, variable: (&str, &str), args: &[&str]) -> Ran {
    let mut command = home.pegboard(args);
    command.env(variable.0, variable.1);
    Ran::of(command)
}

const CURSOR: &str = r#"{"mcpServers": {"files": {"command": "files-server", "args": ["/srv"]}}}"#;
const GEMINI: &str = r#"{"mcpServers": {"fs": {
    "command": "files-server", "args": ["/srv"], "includeTools": ["read_text_file"], "excludeTools": ["write_file"]
}}}"#;

#[test]
fn a_server_with_a_filter_of_tools_is_another_server() {
    let home = Home::new();
    home.write(".cursor/mcp.json", CURSOR);
    home.write(".gemini/settings.json", GEMINI);
    home.run(&["init", "--yes", "--take-over"])
        .ends_with(0)
        // A host that uses Pegboard has the servers of all hosts.
        .prints("fs: `files` is the same with other rules for tools, and hosts that use Pegboard have both; a view shows one")
        .prints("taken over: fs")
        .prints("taken over: files");
    let servers = servers(&home);
    let texts = |key: &str| servers["fs"][key].as_array().unwrap()[0].as_str().unwrap();
    assert_eq!((texts("allow"), texts("deny")), ("read_text_file", "write_file"));
    assert!(servers["files"].get("allow").is_none(), "{servers:?}");
    // It is no double that is to be removed.
    let doctor = home.run(&["doctor", "--offline", "-o", "json"]);
    assert!(!doctor.out.contains("duplicate-server"), "{doctor:?}");
}

#[test]
fn a_server_of_the_older_transport_is_another_server() {
    let home = Home::new();
    home.config("[servers.one]\ntype = 'http'\nurl = 'https://example.com/mcp'\n");
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"two": {"type": "sse", "url": "https://example.com/mcp"}}}"#,
    );
    home.run(&["import", "cursor", "--yes"]).ends_with(0);
    assert_eq!(names(&home), ["one", "two"]);
}

#[test]
fn a_server_without_a_filter_is_not_one_that_has_a_filter() {
    let home = Home::new();
    home.write(".gemini/settings.json", GEMINI);
    home.run(&["import", "gemini", "--yes"]).ends_with(0);
    home.write(".cursor/mcp.json", CURSOR);
    home.run(&["import", "cursor", "--yes"]).ends_with(0);
    assert_eq!(names(&home), ["files", "fs"]);
}

#[test]
fn a_server_whose_tools_were_limited_in_the_config_is_found_again() {
    let home = Home::new();
    home.write(".cursor/mcp.json", CURSOR);
    home.config("[servers.files]\ncommand = \"files-server\"\nargs = [\"/srv\"]\nallow = [\"read_*\"]\n");
    let again = home.run(&["import", "--yes", "-o", "json"]).json();
    assert_eq!(again["servers"][0]["action"], "same", "{again}");
}

#[test]
fn the_folder_that_is_open_in_the_host_is_not_imported_as_that_of_the_config() {
    let home = Home::new();
    let text = r#"{"mcpServers": {"files": {"command": "files-server", "args": ["${workspaceFolder}"]}, "time": {"command": "uvx"}}}"#;
    let file = home.write(".cursor/mcp.json", text);
    home.run(&["import", "cursor", "--yes"])
        .ends_with(0)
        .prints("`${workspaceFolder}` is known to the host only");
    home.run(&["init", "--yes", "--take-over"]).ends_with(0);
    assert_eq!(names(&home), ["time"]);
    let left = read(&file)["mcpServers"].clone();
    assert!(left["files"].is_object() && left["time"].is_null(), "{left}");
}

#[test]
fn a_server_whose_variable_is_not_set_stays_in_the_host_until_it_is() {
    let home = Home::new();
    let file = home.write(
        ".claude.json",
        r#"{"mcpServers": {"a": {"command": "a", "env": {"MYTOK": "${MYTOK}"}}, "time": {"command": "uvx"}}}"#,
    );
    home.run(&["init", "--yes", "--take-over"])
        .ends_with(0)
        .prints("stays in the host: the variable MYTOK is not set")
        .prints("taken over: time")
        .prints("  set MYTOK ")
        .prints("needed by a\n");
    assert!(read(&file)["mcpServers"]["a"].is_object());
    run_with(&home, ("MYTOK", "x"), &["init", "--yes", "--take-over"])
        .ends_with(0)
        .prints("taken over: a");
    assert_eq!(names(&home), ["a", "time"]);
}

#[test]
fn a_server_is_not_moved_to_one_that_is_disabled() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", CURSOR);
    home.config("[servers.files]\ncommand = \"files-server\"\nargs = [\"/srv\"]\nenabled = false\n");
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(0)
        .prints("stays in the host: `files` is disabled here");
    assert!(read(&file)["mcpServers"]["files"].is_object());
}

#[test]
fn what_vs_code_asks_for_is_moved_once_its_variable_is_set() {
    let home = Home::new();
    let file = home.write(
        ".config/Code/User/mcp.json",
        r#"{
            "inputs": [{"type": "promptString", "id": "gl-token", "description": "GitLab token", "password": true}],
            "servers": {"gitlab": {"type": "stdio", "command": "gitlab-server", "env": {"TOKEN": "${input:gl-token}"}}}
        }"#,
    );
    let first = home.run(&["init", "--yes"]);
    first.ends_with(0).prints("  set GL_TOKEN ");
    // Its tools are not there twice while it cannot be used here.
    assert!(!first.out.contains("twice"), "{first:?}");
    home.run(&["install", "vscode", "--take-over", "--yes"])
        .ends_with(0)
        .prints("stays in the host: the variable GL_TOKEN is not set");
    let findings = home.run(&["doctor", "--offline", "-o", "json"]);
    assert!(!findings.out.contains("unmanaged-server"), "{findings:?}");
    run_with(&home, ("GL_TOKEN", "x"), &["install", "vscode", "--take-over", "--yes"])
        .ends_with(0)
        .prints("taken over: gitlab");
    assert!(read(&file)["servers"]["gitlab"].is_null());
    assert_eq!(names(&home), ["gitlab"]);
}

#[test]
fn a_program_is_the_same_by_its_name_and_by_the_path_that_doctor_writes() {
    let home = Home::new();
    let program = home.write("bin/my-server", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"mine": {"command": "my-server"}}}"#,
    );
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let run = |args: &[&str]| run_with(&home, ("PATH", &path), args);
    run(&["init", "--yes"]).ends_with(0);
    run(&["doctor", "--fix", "--yes", "--offline"]).ends_with(0);
    assert_eq!(servers(&home)["mine"]["command"].as_str(), program.to_str());
    let findings = run(&["doctor", "--offline", "-o", "json"]);
    assert!(
        findings.out.contains("server-twice") && !findings.out.contains("unmanaged-server"),
        "{findings:?}"
    );
    let wanted = run(&["import", "--dry-run", "-o", "json"]).json();
    assert_eq!(wanted["servers"][0]["action"], "same", "{wanted}");
    run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(0)
        .prints("taken over: mine");
    assert_eq!(names(&home), ["mine"]);
    assert_eq!(read(&file)["mcpServers"]["mine"], json!(null));
}
