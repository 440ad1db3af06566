//! What `uninstall` gives back: the file as it was, also if it has comments, or is gone.

use std::fs;

use crate::home::Home;

#[test]
fn a_comment_in_an_empty_object_on_one_line_stays() {
    for text in ["{\"mcpServers\": {/* keep me */}}\n", "{ /* hi */ }"] {
        let home = Home::new();
        let file = home.write(".cursor/mcp.json", text);
        home.run(&["install", "cursor"]).ends_with(0);
        let installed = fs::read_to_string(&file).unwrap();
        assert!(
            installed.contains("/* ") && installed.contains("\"mcp\""),
            "{installed}"
        );
        home.run(&["uninstall", "cursor"]).ends_with(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn what_was_taken_over_comes_back_with_its_comments_and_numbers() {
    for (host, place, text) in [
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions: # c1\n  time: # c2\n    # why\n    type: stdio\n    name: time\n    cmd: uvx # run\n    args: [\"#1\"]\n    enabled: true\n    timeout: 300\n",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers": {"z": {"x": 123456789012345678901234567890, "url": "https://example.com/mcp"}, "a": {"command": "uvx"}}, "home": "https://example.com"}"#,
        ),
    ] {
        let home = Home::new();
        let file = home.write(place, text);
        home.run(&["install", host, "--take-over", "--yes"])
            .ends_with(0)
            .prints("taken over");
        let ran = home.run(&["uninstall", host, "--restore"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(!ran.ends_with(0).err.contains("rounded"), "{ran:?}");
    }
}

#[test]
fn a_comment_that_was_added_meanwhile_stays() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"z\": {\"command\": \"uvx\", /* old */ \"args\": []}}}\n",
    );
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    let commented = fs::read_to_string(&file).unwrap() + "// new\n";
    fs::write(&file, commented).unwrap();
    home.run(&["uninstall", "cursor", "--restore"]).ends_with(0);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.ends_with("// new\n") && now.contains("uvx"), "{now}");
}

#[test]
fn servers_come_back_even_if_the_hosts_file_is_gone() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let text = "{\"mcpServers\": {\"time\": {\"command\": \"uvx\", \"args\": [\"t\"]}}}\n";
    let file = home.write(".cursor/mcp.json", text);
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    fs::remove_file(&file).unwrap();
    // Nothing but a warning without `--restore`.
    home.run(&["uninstall", "cursor"])
        .ends_with(0)
        .says("is not put back: `time`; `pegboard uninstall cursor --restore` does that");
    assert!(!file.exists());
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .prints("put back: time");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = home.run(&["uninstall", "cursor", "--restore"]);
    again.ends_with(0).prints("does not use Pegboard");
}

#[test]
fn taking_pegboard_out_says_how_servers_are_put_back() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"time\": {\"command\": \"uvx\"}}}\n",
    );
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    home.run(&["uninstall", "cursor"])
        .ends_with(0)
        .prints("removed from")
        .says("`pegboard uninstall cursor --restore` does that");
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .prints("put back: time");
    let again = home.run(&["uninstall", "cursor"]);
    assert!(!again.ends_with(0).err.contains("--restore"), "{again:?}");
}

#[test]
fn what_is_put_back_later_is_not_called_removed_and_what_is_left_over_is_listed() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"time\": {\"command\": \"uvx\"}}}\n",
    );
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    let removed = home.run(&["uninstall", "cursor"]);
    removed.ends_with(0).prints("removed from").prints("left over:");
    removed
        .prints("  rm ~/.cursor/mcp.json.bak-*  ")
        .prints("  rm ~/.config/pegboard/pegboard.toml  ");
    let restored = home.run(&["uninstall", "--all", "--restore"]);
    restored
        .ends_with(0)
        .prints("Cursor: restored in")
        .prints("put back: time")
        .prints("to apply it:");
    assert!(!restored.out.contains("removed"), "{restored:?}");
    let document = home.run(&["uninstall", "--all", "--dry-run", "-o", "json"]);
    document.ends_with(1);
}

#[test]
fn the_config_is_not_left_over_while_another_host_uses_it() {
    let home = Home::new();
    home.config("[servers]\n");
    home.write(".cursor/mcp.json", "{}");
    home.write(".codex/config.toml", "");
    home.run(&["install", "cursor", "codex"]).ends_with(0);
    let first = home.run(&["uninstall", "cursor"]);
    assert!(
        first.out.contains("mcp.json.bak-") && !first.out.contains("pegboard.toml"),
        "{first:?}"
    );
    let last = home.run(&["uninstall", "codex", "-o", "json"]).ends_with(0).json();
    let left = last["left_over"].as_array().unwrap();
    assert!(
        left.iter()
            .any(|one| one["command"].as_str().unwrap().ends_with("pegboard.toml")),
        "{last}"
    );
}

#[test]
fn servers_that_are_taken_over_beside_an_old_entry_say_how_to_apply_it() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", "{}");
    home.run(&["install", "cursor"]).ends_with(0);
    let mut now: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    now["mcpServers"]["time"] = serde_json::json!({"command": "uvx"});
    fs::write(&file, now.to_string()).unwrap();
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(0)
        .prints("has it already")
        .prints("taken over: time")
        .prints("to apply it:");
}
