//! Which servers an import takes, and what it asks.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

use crate::home::{Home, Ran, until};

const CLAUDE: &str = r#"{"mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]},
    "github": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ghp_0123456789"}}
}}"#;

#[test]
fn nothing_is_written_without_agreement() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    let ran = home.run(&["import"]);
    ran.ends_with(5).says("there is no terminal to ask at").says("--yes");
    home.run(&["import", "--dry-run"])
        .ends_with(0)
        .prints("2 servers would be written");
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
}

#[test]
fn imported_servers_are_in_the_config_and_only_the_user_can_read_it() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    let ran = home.run(&["import", "--yes"]);
    ran.ends_with(0).says("now has the secrets of github in clear text");
    assert!(!ran.out.contains("ghp_0123456789"), "{ran:?}");
    let file = home.path(".config/pegboard/pegboard.toml");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert_eq!(shown["servers"]["time"]["args"][0], "mcp-server-time");
    assert_eq!(shown["servers"]["github"]["url"], "https://mcp.example.com/mcp");
}

#[test]
fn the_same_server_of_two_hosts_is_imported_once_and_others_get_names_of_their_own() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "clock": {"command": "uvx", "args": ["mcp-server-time"]},
            "github": {"url": "https://other.example.com/mcp"},
            "awslabs.core-mcp-server": {"command": "uvx", "args": ["x==1"]},
            "pegboard": {"command": "/opt/pegboard", "args": ["mcp"]}
        }}"#,
    );
    let document = home.run(&["import", "--yes", "-o", "json"]).json();
    let rows = document["servers"].as_array().unwrap();
    let row = |name: &str, host: &str| {
        rows.iter()
            .find(|row| row["original"] == name && row["host"] == host)
            .unwrap()
    };
    assert_eq!(
        (&row("clock", "cursor")["action"], &row("clock", "cursor")["name"]),
        (&"same".into(), &"time".into())
    );
    assert_eq!(row("github", "cursor")["name"], "github-2");
    assert_eq!(
        row("awslabs.core-mcp-server", "cursor")["name"],
        "awslabs-core-mcp-server"
    );
    assert_eq!(row("pegboard", "cursor")["action"], "skip");
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert_eq!(shown["servers"].as_object().unwrap().len(), 4, "{shown}");
}

#[test]
fn force_replaces_a_server_of_the_same_name_and_keeps_the_comments_of_the_file() {
    let home = Home::new();
    home.config(
        "# mine\n[servers.github]\nurl = \"https://old.example.com/mcp\" # old\n\n[servers.mine]\ncommand = \"x\"\n",
    );
    home.write(".claude.json", CLAUDE);
    home.run(&["import", "claude", "--yes", "--force"]).ends_with(0);
    let text = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    assert!(
        text.starts_with("# mine\n") && text.contains("[servers.mine]") && !text.contains("old.example.com"),
        "{text}"
    );
}

#[test]
fn the_projects_files_go_to_the_projects_config() {
    let home = Home::new();
    home.write(
        ".vscode/mcp.json",
        r#"{"servers": {"here": {"command": "${workspaceFolder}/run", "args": []}}}"#,
    );
    home.run(&["import", "--yes"])
        .ends_with(0)
        .prints("no config file of a host was found");
    home.run(&["import", "--project", "--yes"]).ends_with(0);
    let text = fs::read_to_string(home.path("pegboard.toml")).unwrap();
    assert!(text.contains("/run\""), "{text}");
    // It is a project's file, so its servers are not used before it is approved.
    home.run(&["status"]).ends_with(5);
}

#[test]
fn a_broken_file_does_not_keep_others_from_being_imported() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{ not json");
    home.write(".claude.json", CLAUDE);
    home.run(&["import", "--yes"])
        .ends_with(0)
        .says(".cursor/mcp.json")
        .prints("2 servers written");
}

#[test]
fn an_unknown_host_is_an_error_that_lists_the_known_ones() {
    Home::new()
        .run(&["import", "emacs"])
        .ends_with(2)
        .says("neither a file nor a host")
        .says("cursor");
    Home::new()
        .run(&["import", "cursor"])
        .ends_with(2)
        .says("has no config file here");
}

/// A host's file with this many servers.
fn many(count: usize) -> String {
    let servers: serde_json::Map<_, _> = (0..count)
        .map(|number| {
            let server =
                serde_json::json!({"command": "npx", "args": ["-y", format!("pkg-{number}")], "env": {"A": "b"}});
            (format!("server-{number}"), server)
        })
        .collect();
    serde_json::json!({"mcpServers": servers}).to_string()
}

#[test]
fn hundreds_of_servers_are_imported_in_one_edit() {
    for file in ["pegboard.toml", "pegboard.json", "pegboard.yaml"] {
        let home = Home::new();
        home.write(".claude.json", &many(900));
        // An edit for each server would take more than a minute.
        let args = ["import", "--yes", "-c", file, "--timeout", "30s"];
        home.run(&args).ends_with(0).prints("900 servers written");
        let again = home.run(&[args.as_slice(), &["-o", "json"]].concat()).json();
        assert_eq!(again["written"], false, "{file}");
    }
}

#[test]
fn a_config_with_more_servers_than_it_may_have_is_not_written() {
    let home = Home::new();
    home.write(".claude.json", &many(1001));
    home.run(&["import", "--yes"])
        .ends_with(2)
        .says("nothing is written")
        .says("at most 1000 servers");
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
}

#[test]
fn an_import_whose_time_is_up_writes_nothing() {
    let home = Home::new();
    home.write(".claude.json", &many(300));
    home.run(&["import", "--yes", "--timeout", "1ms"])
        .ends_with(124)
        .says("the timeout passed");
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn an_import_is_interrupted_while_it_reads() {
    let home = Home::new();
    // Reading so many takes seconds.
    home.write(".claude.json", &many(20_000));
    let mut command = home.pegboard(&["import", "--yes"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    until("it listens for Ctrl-C", || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    });
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    Ran::end_of(child).ends_with(130).says("interrupted");
}

#[test]
fn servers_with_other_values_are_other_servers_and_two_names_in_a_file_are_two() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {
            "orders": {"command": "db", "env": {"DATABASE": "orders"}},
            "people": {"command": "db", "env": {"DATABASE": "people"}},
            "spare": {"command": "db", "env": {"DATABASE": "people"}},
            "work": {"type": "http", "url": "https://a.example/mcp", "headers": {"X-Account": "work"}},
            "home": {"type": "http", "url": "https://a.example/mcp", "headers": {"X-Account": "home"}}
        }}"#,
    );
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"orders": {"command": "db", "env": {"DATABASE": "people"}}}}"#,
    );
    let names = |document: &serde_json::Value, action: &str| -> Vec<String> {
        let rows = document["servers"].as_array().unwrap().iter();
        rows.filter(|row| row["action"] == action)
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = home.run(&["import", "--yes", "-o", "json"]).json();
    assert_eq!(names(&first, "add"), ["home", "orders", "people", "spare", "work"]);
    assert_eq!(names(&first, "same"), ["people"]);
    let again = home.run(&["import", "--yes", "-o", "json"]).json();
    assert_eq!(names(&again, "add"), Vec::<String>::new());
    assert_eq!(
        names(&again, "same"),
        ["home", "orders", "people", "spare", "work", "people"]
    );
}

#[test]
fn a_server_with_inputs_is_found_again_and_the_default_of_an_input_stays_one() {
    let home = Home::new();
    home.write(
        "mcp.json",
        r#"{
            "inputs": [
                {"type": "pickString", "id": "region", "description": "Region", "options": ["eu", "us"], "default": "eu"},
                {"type": "promptString", "id": "key", "description": "Key", "password": true}
            ],
            "servers": {"perplexity": {"command": "npx", "args": ["--region=${input:region}", "--key", "${input:key}"]}}
        }"#,
    );
    home.run(&["import", "vscode:mcp.json", "--yes"])
        .ends_with(0)
        .prints("perplexity: set the variable KEY: Key")
        .prints("the variable REGION replaces the default `eu`: Region");
    let file = home.path(".config/pegboard/pegboard.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(r#"args = ["--region=${REGION:-eu}", "--key", "${KEY}"]"#),
        "{text}"
    );
    let again = home.run(&["import", "vscode:mcp.json", "--yes", "-o", "json"]).json();
    assert_eq!(again["servers"][0]["action"], "same");
    // Also after the inputs were answered.
    home.config(&text.replace("${KEY}", "${secret:KEY}").replace("${REGION:-eu}", "us"));
    let again = home.run(&["import", "vscode:mcp.json", "--yes", "-o", "json"]).json();
    assert_eq!(again["servers"][0]["action"], "same");
}

#[test]
fn a_named_file_that_cannot_be_read_is_an_error() {
    let home = Home::new();
    home.write("broken.json", "{ not json");
    home.write("deep.json", &"[".repeat(100_000));
    fs::write(home.path("latin.json"), b"{\"mcpServers\": {\"\xe9\": {}}}").unwrap();
    for file in ["broken.json", "deep.json", "latin.json"] {
        let ran = home.run(&["import", file, "--yes"]);
        ran.ends_with(2).says("the file cannot be read").says(file);
        assert_eq!(ran.out, "", "{file}");
    }
}

#[test]
fn the_file_of_a_named_host_that_cannot_be_read_is_an_error() {
    let home = Home::new();
    let file = home.write(".claude.json", "{ not json").display().to_string();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"time": {"command": "uvx"}}}"#);
    home.run(&["import", "claude", "cursor", "--yes"])
        .ends_with(2)
        .says("the file cannot be read");
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
    // Where no host is named, the others are imported, and the warning names the file once.
    let ran = home.run(&["import", "--yes"]);
    ran.ends_with(0).says("cannot be read");
    assert_eq!(ran.err.matches(&file).count(), 1, "{ran:?}");
}

#[test]
fn a_host_s_own_file_by_its_path_is_the_same_as_by_the_host_s_name() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#,
    );
    home.run(&["import", "cursor", "--yes"]).ends_with(0);
    let path = file.display().to_string();
    for from in [&path, &format!("cursor:{path}"), "cursor:~/.cursor/mcp.json"] {
        let again = home.run(&["import", from, "--dry-run"]);
        let row = again.ends_with(0).out.lines().nth(1).unwrap();
        assert!(row.contains("Cursor") && row.contains("same as time"), "{from}: {row}");
    }
}
