//! Settings of a host that are not carried over because of their values: each is noted, and the server stays in the host.

use std::fs;

use serde_json::{Value, json};

use crate::home::Home;

/// A value that must not be shown, also where it is left out.
const SECRET: &str = "s3cret-value-of-the-host";

/// Entries, and the notes about what is left out of them.
fn left_out() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (
            json!({"command": "x", "args": format!("--token {SECRET}")}),
            vec!["`args` is left out: must be a list, not a text"],
        ),
        (
            json!({"command": "x", "args": ["a", null, {"token": SECRET}, 5, true]}),
            vec![
                "`args[1]` is left out: must be a text, not nothing",
                "`args[2]` is left out: must be a text, not a table",
            ],
        ),
        (
            json!({"command": "x", "env": {"L": [SECRET], "N": 5, "X": null}}),
            vec![
                "`env.L` is left out: must be a text, not a list",
                "`env.X` is left out: must be a text, not nothing",
            ],
        ),
        (
            json!({"command": "x", "env": [format!("TOKEN={SECRET}")]}),
            vec!["`env` is left out: must be a table, not a list"],
        ),
        (
            json!({"command": "x", "cwd": 7, "envFile": ["a"]}),
            vec![
                "`env_file` is left out: must be a text, not a list",
                "`cwd` is left out: must be a text, not a number",
            ],
        ),
        (
            json!({"command": "x", "timeout": SECRET, "startup_timeout_ms": {}}),
            vec![
                "`timeout` is left out: must be a number, not a text",
                "`startup_timeout_ms` is left out: must be a number, not a table",
            ],
        ),
        (
            json!({"url": "https://x.example/mcp", "headers": {"Authorization": [SECRET]}, "type": 5}),
            vec![
                "`type` is left out: must be a text, not a number",
                "`headers.Authorization` is left out: must be a text, not a list",
            ],
        ),
        (
            json!({"command": "x", "disabled": "true", "disabledTools": [7], "includeTools": 7}),
            vec![
                "`include_tools` is left out: must be a list, not a number",
                "`disabled_tools[0]` is left out: must be a text, not a number",
                "`disabled` is left out: must be true or false, not a text",
            ],
        ),
        (
            json!({"url": "https://x.example/mcp", "bearerToken": {"value": SECRET}, "oauth": SECRET}),
            vec![
                "`bearer_token` is left out: must be a text, not a table",
                "`oauth` is left out: must be a table, not a text",
            ],
        ),
    ]
}

/// Entries that are no server, and why.
fn refused() -> Vec<(Value, &'static str)> {
    vec![
        (json!(null), "its entry must be a table, not nothing"),
        (json!(SECRET), "its entry must be a table, not a text"),
        (json!([SECRET]), "its entry must be a table, not a list"),
        (
            json!({"command": 7, "args": ["x"]}),
            "`command` must be a text, not a number",
        ),
        (
            json!({"command": [null, "x"]}),
            "`command[0]` must be a text, not nothing",
        ),
        (json!({"url": [SECRET]}), "`url` must be a text, not a list"),
    ]
}

/// A home in which a host has all of these entries, named by their kind and number, and some that lose nothing because of a type.
fn home() -> Home {
    let left_out = left_out().into_iter().enumerate();
    let left_out = left_out.map(|(at, (entry, _))| (format!("left-out-{at}"), entry));
    let refused = refused().into_iter().enumerate();
    let refused = refused.map(|(at, (entry, _))| (format!("refused-{at}"), entry));
    let mut servers: serde_json::Map<String, Value> = left_out.chain(refused).collect();
    servers.insert("whole".to_owned(), json!({"command": "y", "args": null, "env": {}}));
    servers.insert("negative".to_owned(), json!({"command": "z", "timeout": -5}));
    servers.insert("_comment".to_owned(), json!("a remark is no server"));
    let home = Home::new();
    home.write(".cursor/mcp.json", &json!({"mcpServers": servers}).to_string());
    home
}

#[test]
fn every_value_that_is_not_carried_over_is_noted_without_being_shown() {
    let home = home();
    let ran = home.run(&["import", "cursor", "--yes", "-o", "json"]);
    let document = ran.ends_with(0).json();
    assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{ran:?}");
    let rows = document["servers"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["original"] == name).unwrap();
    for (at, (entry, notes)) in left_out().into_iter().enumerate() {
        let row = row(&format!("left-out-{at}"));
        let shown = row["notes"].as_array().unwrap().iter();
        let about: Vec<&str> = shown
            .filter_map(Value::as_str)
            .filter(|note| note.contains("left out"))
            .collect();
        assert_eq!((about, &row["action"]), (notes, &json!("add")), "{entry}");
    }
    for (at, (entry, reason)) in refused().into_iter().enumerate() {
        let row = row(&format!("refused-{at}"));
        assert_eq!(
            (&row["action"], &row["reason"]),
            (&json!("refuse"), &json!(reason)),
            "{entry}"
        );
    }
    assert_eq!(row("whole")["notes"], json!([]));
    assert_eq!(
        row("negative")["notes"],
        json!(["`timeout` is left out: not a positive number"])
    );
    assert_eq!(rows.len(), left_out().len() + refused().len() + 2, "{document}");
    let config = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    assert!(
        config.contains(r#"args = ["a", "5", "true"]"#) && !config.contains(SECRET),
        "{config}"
    );
}

#[test]
fn a_server_that_would_lose_a_setting_because_of_its_type_is_not_taken_over() {
    let home = home();
    let ran = home.run(&["install", "cursor", "--take-over", "--yes"]);
    ran.ends_with(0)
        .prints("stays in the host: `args` is left out: must be a list, not a text");
    let file = fs::read_to_string(home.path(".cursor/mcp.json")).unwrap();
    let now: Value = serde_json::from_str(&file).unwrap();
    let servers = now["mcpServers"].as_object().unwrap();
    for (at, (entry, _)) in left_out().into_iter().enumerate() {
        assert_eq!(servers.get(&format!("left-out-{at}")), Some(&entry));
    }
    for (at, (entry, _)) in refused().into_iter().enumerate() {
        assert_eq!(servers.get(&format!("refused-{at}")), Some(&entry));
    }
    assert!(
        !servers.contains_key("whole") && !servers.contains_key("negative"),
        "{now}"
    );
}
