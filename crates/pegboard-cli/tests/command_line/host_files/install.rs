//! What `install` writes, takes over and gives back.

use std::fs;

use serde_json::Value;

use crate::{
    gateway::Served,
    home::{Home, Ran},
};

const CURSOR: &str = r#"{
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"] }
  }
}
"#;

#[test]
fn taking_over_moves_the_servers_and_restoring_puts_them_back() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", CURSOR);
    home.run(&["install", "cursor", "--take-over"])
        .ends_with(5)
        .says("there is no terminal");
    assert_eq!(fs::read_to_string(&file).unwrap(), CURSOR);
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(0)
        .prints("taken over: time");
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(
        now["mcpServers"]["time"].is_null() && now["mcpServers"]["pegboard"]["args"][0] == "mcp",
        "{now}"
    );
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert_eq!(shown["servers"]["time"]["command"], "uvx");
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .prints("put back: time");
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(now, serde_json::from_str::<Value>(CURSOR).unwrap());
}

#[test]
fn a_server_with_the_name_of_a_table_of_the_host_is_a_server() {
    let home = Home::new();
    let text = r#"{"mcp": {"a": {"type": "local", "command": ["x"]}, "servers": {"type": "local", "command": ["z"]}}}"#;
    let file = home.write(".config/opencode/opencode.jsonc", text);
    home.run(&["install", "opencode", "--take-over", "--yes"]).ends_with(0);
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let left: Vec<&String> = now["mcp"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["pegboard"], "{now}");
    home.run(&["uninstall", "opencode", "--restore"]).ends_with(0);
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(now, serde_json::from_str::<Value>(text).unwrap());
    // A table of servers may have one that is called like a setting.
    let newer = r#"{"mcp": {"servers": {"command": {"type": "local", "command": ["z"]}}}}"#;
    fs::write(&file, newer).unwrap();
    home.run(&["install", "opencode"]).ends_with(0);
    let now: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(now["mcp"]["servers"]["pegboard"].is_object(), "{now}");
}

#[test]
fn what_is_put_back_has_its_dates_large_numbers_and_order() {
    let home = Home::new();
    let text =
        "# mine\nmodel = \"x\"\n\n[mcp_servers.b]\nsince = 2024-05-01\ncommand = \"uvx\" # fast\nargs = [\"t\"]\n";
    let file = home.write(".codex/config.toml", text);
    home.run(&["install", "codex", "--take-over", "--yes"]).ends_with(0);
    assert!(!fs::read_to_string(&file).unwrap().contains("uvx"));
    home.run(&["uninstall", "codex", "--restore"]).ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // What was changed meanwhile stays, and what cannot be put back as it was is named.
    home.run(&["install", "codex", "--take-over", "--yes"]).ends_with(0);
    let changed = fs::read_to_string(&file).unwrap().replace("# mine", "# yours");
    fs::write(&file, changed).unwrap();
    home.run(&["uninstall", "codex", "--restore"])
        .ends_with(0)
        .says("`b` is put back with dates as texts");
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("# yours") && now.contains("2024-05-01"), "{now}");
    let json = "{\n  \"mcpServers\": {\n    \"b\": {\n      \"x\": 123456789012345678901234567890,\n      \"command\": \"uvx\",\n      \"args\": [\"t2\"]\n    }\n  }\n}\n";
    let file = home.write(".cursor/mcp.json", json);
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    home.run(&["uninstall", "cursor", "--restore"]).ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), json);
}

#[test]
fn a_backup_is_made_and_another_entry_of_that_name_is_not_replaced() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"pegboard": {"command": "other"}}}"#,
    );
    home.run(&["install", "cursor"])
        .ends_with(2)
        .says("has another `pegboard`")
        .says("--force");
    // `init` has no such options, so the hint names the command that does.
    home.run(&["init", "--yes"])
        .says("`pegboard install cursor --name NAME` enters it under another name, `--force` replaces that entry");
    let ran = home.run(&["install", "cursor", "--force", "-o", "json"]);
    let backup = ran.json()["hosts"][0]["backup"].as_str().unwrap().to_owned();
    assert!(fs::read_to_string(backup).unwrap().contains("other"));
}

#[test]
fn the_options_are_in_the_entry() {
    let home = Home::new();
    home.config("[views.coding]\nservers = []\n");
    let entry = |args: &[&str]| {
        home.run(args).ends_with(0);
        let text = fs::read_to_string(home.path(".cursor/mcp.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["pegboard"].clone()
    };
    let made = entry(&["install", "cursor", "--view", "coding", "--daemon"]);
    assert_eq!(made["args"], serde_json::json!(["mcp", "--view", "coding", "--daemon"]));
    let made = entry(&["install", "cursor", "--url", "http://127.0.0.1:7337/mcp"]);
    assert_eq!(
        made,
        serde_json::json!({"type": "http", "url": "http://127.0.0.1:7337/mcp"})
    );
    home.run(&["install", "claude-desktop", "--url", "http://127.0.0.1:7337/mcp"])
        .ends_with(2)
        .says("cannot connect to a URL");
    home.run(&["install", "roo"]).ends_with(2).says("only imported from");
}

#[test]
fn the_url_of_a_gateway_is_tried_and_a_missing_token_is_told() {
    let home = Home::new();
    let digest = pegboard::config::TokenDigest::compute("pgb_ann");
    home.config(&format!("[serve.tokens.ann]\nsha256 = '{digest}'\n[servers]\n"));
    let served = Served::start(&home, &[]);
    let url = format!("http://{}/mcp", served.address);
    home.run(&["install", "cursor", "--url", &url])
        .ends_with(0)
        .says(&format!("the gateway at {url} wants a token"))
        .says("Authorization: Bearer");
    drop(served);
    home.run(&["install", "cursor", "--url", &url])
        .ends_with(0)
        .says(&format!("nothing answers at {url} now"));
    home.config("[servers]\n");
    let served = Served::start(&home, &[]);
    let url = format!("http://{}/mcp", served.address);
    let ran = home.run(&["install", "cursor", "--url", &url]);
    assert!(!ran.ends_with(0).err.contains("warning"), "{}", ran.err);
}

#[test]
fn a_view_of_a_running_gateway_is_a_url() {
    let home = Home::new();
    for url in [
        "http://127.0.0.1:7337/mcp",
        "http://127.0.0.1:7337",
        "http://127.0.0.1:7337/",
    ] {
        home.run(&["install", "cursor", "--view", "coding", "--url", url])
            .ends_with(2)
            .says("--url http://127.0.0.1:7337/mcp/view/coding");
    }
    assert!(!home.path(".cursor/mcp.json").exists());
}

#[test]
fn what_the_host_could_not_use_is_not_entered() {
    let home = Home::new();
    home.config("[views.coding]\nservers = []\n");
    for url in ["foo", "127.0.0.1:7337", "ftp://example.com/mcp", "https://"] {
        home.run(&["install", "cursor", "--url", url])
            .ends_with(2)
            .says("is not the address of a server")
            .says("http://127.0.0.1:7337/mcp");
    }
    home.run(&["install", "cursor", "--view", "nosuch"])
        .ends_with(2)
        .says("there is no view `nosuch`")
        .says("the views are coding");
    assert!(!home.path(".cursor/mcp.json").exists());
}

#[test]
fn a_host_without_servers_has_nothing_to_take_over() {
    let home = Home::new();
    let claude = home.write(".claude.json", r#"{"mcpServers": {"other": {"command": "x"}}}"#);
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    assert!(fs::read_to_string(claude).unwrap().contains("other"));
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", CURSOR);
    home.run(&["install", "cursor", "--take-over", "--dry-run"])
        .ends_with(0)
        .prints("would be added");
    assert_eq!(fs::read_to_string(&file).unwrap(), CURSOR);
    assert_eq!(fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
    assert!(!home.path(".config/pegboard").exists());
}

#[test]
fn a_file_that_cannot_be_read_is_not_touched() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", "{ broken");
    home.run(&["install", "cursor"]).ends_with(2);
    assert_eq!(fs::read_to_string(file).unwrap(), "{ broken");
}

#[test]
fn a_file_without_servers_becomes_as_it_was() {
    let home = Home::new();
    let text = "{\n  \"theme\": \"dark\"\n}\n";
    let file = home.write(".gemini/settings.json", text);
    home.run(&["install", "gemini"]).ends_with(0);
    home.run(&["uninstall", "gemini"]).ends_with(0);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[cfg(unix)]
#[test]
fn a_link_of_a_project_does_not_lead_out_of_it() {
    use std::os::unix::fs::symlink;

    let home = Home::new();
    let own = home.write("own/mcp.json", CURSOR);
    home.write("repo/.git/HEAD", "");
    symlink(home.path("own"), home.path("repo/.cursor")).unwrap();
    symlink(home.path("own/pegboard.toml"), home.path("repo/pegboard.toml")).unwrap();
    for args in [
        &["install", "cursor", "--project"][..],
        &["uninstall", "cursor", "--project"],
        &["add", "--project", "x", "--", "true"],
    ] {
        let mut command = home.pegboard(args);
        command.current_dir(home.path("repo"));
        Ran::of(command).ends_with(5).says("out of the project");
    }
    assert_eq!(fs::read_to_string(own).unwrap(), CURSOR);
    assert!(!home.path("own/pegboard.toml").exists());
}
