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
