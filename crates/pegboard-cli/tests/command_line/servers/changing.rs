//! `remove`, `enable`, `disable`, `rename`, `get` and `list`.

use serde_json::Value;

use crate::{
    home::Home,
    servers::{USER, read, screen},
};

const CONFIG: &str = "# mine\n[servers.a] # first\ncommand = \"x\" # run\nenv = { TOKEN = \"canary-77\" }\n\n# about b\n[servers.b]\nurl = \"https://example.com/mcp\"\n";

#[test]
fn the_list_shows_what_is_configured_and_starts_nothing() {
    let home = Home::new();
    home.config(&format!(
        "{CONFIG}\n[servers.c]\ncommand = \"x\"\nenabled = false\n\n[servers.d]\ncommand = 5\n"
    ));
    let ran = home.run(&["list"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    insta::assert_snapshot!("the_list", ran.out);
    assert!(ran.err.contains("servers.d.command"), "{}", ran.err);
}

#[test]
fn get_shows_a_server_and_how_to_change_it() {
    let home = Home::new();
    home.config(CONFIG);
    insta::assert_snapshot!("one_server", screen(&home, 0, &["get", "a"]));
    let said = screen(&home, 2, &["get", "z"]);
    assert!(said.contains("the servers are a, b"), "{said}");
}

#[test]
fn servers_are_switched_off_and_on_again() {
    let home = Home::new();
    home.config(CONFIG);
    assert_eq!(
        screen(&home, 0, &["disable", "a", "b"]),
        "disabled a in ~/.config/pegboard/pegboard.toml\ndisabled b in ~/.config/pegboard/pegboard.toml\n"
    );
    let off = read(&home, USER);
    assert_eq!(off.matches("enabled = false\n").count(), 2);
    assert!(screen(&home, 0, &["disable", "a"]).starts_with("a is disabled already"));
    assert_eq!(read(&home, USER), off);
    screen(&home, 0, &["enable", "a", "b"]);
    assert_eq!(read(&home, USER), CONFIG);

    home.write(
        "claude.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}\n",
    );
    screen(&home, 0, &["enable", "a", "-c", "claude.json"]);
    assert_eq!(
        read(&home, "claude.json"),
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": false}}}\n"
    );
}

#[test]
fn a_server_that_says_both_enabled_and_disabled_says_one_thing_then() {
    let home = Home::new();
    let both = |enabled: bool| {
        let text = format!(
            "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"enabled\": {enabled}, \"disabled\": {}}}}}}}\n",
            !enabled
        );
        home.write("claude.json", &text);
    };
    for (enabled, command, disabled) in [
        (false, "enable", false),
        (true, "enable", false),
        (true, "disable", true),
        (false, "disable", true),
    ] {
        both(enabled);
        assert_eq!(
            screen(&home, 0, &[command, "a", "-c", "claude.json"]),
            format!("{command}d a in claude.json\n")
        );
        assert_eq!(
            read(&home, "claude.json"),
            format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"disabled\": {disabled}}}}}}}\n")
        );
    }
}

#[test]
fn views_follow_a_renamed_server_or_are_named() {
    let home = Home::new();
    let views = "\n[views.v]\nservers = [\"b\", \"a\"] # both\ntools = [\"a.read*\", \"ab.x\", \"b.a.c\"]\ndeny = [\"a.write\"]\n";
    home.config(&format!("{CONFIG}{views}"));
    let said = screen(&home, 0, &["rename", "a", "c"]);
    assert!(!said.contains("warning"), "{said}");
    let renamed = "\n[views.v]\nservers = [\"b\", \"c\"] # both\ntools = [\"c.read*\", \"ab.x\", \"b.a.c\"]\ndeny = [\"c.write\"]\n";
    let expected = format!("{}{renamed}", CONFIG.replace("[servers.a]", "[servers.c]"));
    assert_eq!(read(&home, USER), expected);

    home.write("views.toml", "[views.w]\nservers = [\"c\"]\n");
    let files = ["-c", USER, "-c", "views.toml"];
    let said = screen(&home, 0, &[&["rename", "c", "d"][..], &files].concat());
    assert!(
        said.contains("`views.w.servers` in views.toml still names `c`"),
        "{said}"
    );
    let said = screen(&home, 0, &["remove", "d"]);
    for key in ["servers", "tools", "deny"] {
        let expected = format!("`views.v.{key}` in ~/{USER} still names `d`");
        assert!(said.contains(&expected), "{said}");
    }
    assert!(
        read(&home, USER).contains("servers = [\"b\", \"d\"]"),
        "a list is never emptied"
    );
}

#[test]
fn a_renamed_server_leaves_the_comments_of_views_alone() {
    let home = Home::new();
    for (file, text) in [
        (
            "x.toml",
            "[servers.NAME]\ncommand = \"x\"\n\n[views.v]\nservers = [\n  \"NAME\", # needed\n  # \"c\" off since May\n  \"b\",\n]\n",
        ),
        (
            "x.yaml",
            "servers:\n  NAME:\n    command: x\nviews:\n  v:\n    servers:\n      - NAME # needed\n      # - c off since May\n      - b\n    deny: [NAME.write, \"b.x\"] # both\n",
        ),
        (
            "x.json",
            "{\n  \"servers\": {\"NAME\": {\"command\": \"x\"}},\n  \"views\": {\n    \"v\": {\n      \"servers\": [\n        \"NAME\", // needed\n        /* \"c\" off since May */\n        \"b\"\n      ]\n    }\n  }\n}\n",
        ),
    ] {
        home.write(file, &text.replace("NAME", "a"));
        screen(&home, 0, &["rename", "a", "zz", "-c", file]);
        assert_eq!(read(&home, file), text.replace("NAME", "zz"));
    }
}

#[test]
fn servers_are_removed_and_renamed() {
    let home = Home::new();
    home.config(CONFIG);
    let said = screen(&home, 2, &["remove", "a", "z"]);
    assert!(said.contains("there is no server `z`"), "{said}");
    assert_eq!(read(&home, USER), CONFIG, "nothing is removed if one name is wrong");
    assert_eq!(
        screen(&home, 0, &["remove", "a", "--dry-run"]),
        "would remove a from ~/.config/pegboard/pegboard.toml\n"
    );
    assert_eq!(read(&home, USER), CONFIG);
    assert_eq!(
        screen(&home, 0, &["rename", "a", "c"]),
        "renamed a to c in ~/.config/pegboard/pegboard.toml\n"
    );
    assert_eq!(read(&home, USER), CONFIG.replace("[servers.a]", "[servers.c]"));
    screen(&home, 2, &["rename", "c", "b"]);
    screen(&home, 2, &["rename", "c", "not.a.name"]);
    let ran = home.run(&["remove", "b", "c", "-o", "json"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["changes"][1]["what"], "removed");
    assert_eq!(read(&home, USER), "# mine\n\n# about b\n");
    assert!(screen(&home, 0, &["list"]).contains("no server is configured"));
}

#[test]
fn the_project_file_is_changed_where_it_has_the_server() {
    let home = Home::new();
    home.config(CONFIG);
    home.write("pegboard.toml", "[servers.p]\ncommand = \"x\"\n");
    assert!(screen(&home, 0, &["disable", "p"]).contains("~/pegboard.toml"));
    assert_eq!(
        read(&home, "pegboard.toml"),
        "[servers.p]\ncommand = \"x\"\nenabled = false\n"
    );
    assert_eq!(read(&home, USER), CONFIG);
}
