//! `add` and `add-json`.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::Value;

use crate::{
    home::Home,
    servers::{USER, read, screen},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pegboard");

#[test]
fn a_command_and_a_url_are_added_with_their_options() {
    let home = Home::new();
    let shown = |text: String| text.replace(home.path("").to_str().unwrap(), "[HOME]/");
    let time = [
        "add",
        "time",
        "--cwd",
        "work",
        "--env",
        "TZ=UTC",
        "--",
        "uvx",
        "mcp-server-time",
        "--x=a b",
    ];
    insta::assert_snapshot!("a_command", shown(screen(&home, 0, &time)));
    let web = [
        "add",
        "web",
        "https://example.com/mcp",
        "--header",
        "X-Team: core",
        "--bearer-env",
        "WEB_TOKEN",
        "--allow",
        "get_*",
        "--deny",
        "*_all",
        "--description",
        "The web",
        "--disabled",
    ];
    insta::assert_snapshot!("a_url", shown(screen(&home, 0, &web)));
    insta::assert_snapshot!("the_file", shown(read(&home, USER)));
}

#[test]
fn comments_and_layout_of_the_file_stay() {
    let home = Home::new();
    let before = "# mine\nmax_servers = 9 # few\n\n[servers.a] # first\ncommand = \"x\"\n\n# the gateway\n[serve]\nlisten = \"127.0.0.1:1\"\n";
    home.config(before);
    screen(&home, 0, &["add", "b", "--", "y"]);
    let added = "\n[servers.b]\ncommand = \"y\"\n";
    assert_eq!(
        read(&home, USER),
        before.replace("\n\n# the gateway", &format!("\n{added}\n# the gateway"))
    );
    screen(&home, 0, &["remove", "b"]);
    assert_eq!(read(&home, USER), before);
}

#[test]
fn a_secret_in_clear_is_warned_of_and_never_shown() {
    let home = Home::new();
    let said = screen(
        &home,
        0,
        &[
            "add",
            "web",
            "https://example.com/mcp",
            "--header",
            "Authorization=Bearer canary-8c1f",
        ],
    );
    assert!(
        said.contains("`pegboard secret set AUTHORIZATION` stores it, and `Bearer ${secret:AUTHORIZATION}` reads it"),
        "{said}"
    );
    let both = said
        + &screen(&home, 0, &["get", "web"])
        + &screen(&home, 0, &["list", "-o", "json"])
        + &screen(&home, 0, &["get", "web", "-o", "json"]);
    assert!(!both.contains("canary"), "{both}");
    assert!(read(&home, USER).contains("canary"));
    let quiet = screen(&home, 0, &["add", "b", "--env", "API_KEY=${API_KEY}", "--", "x"]);
    assert!(
        !quiet.contains("plain text") && quiet.contains("the variable API_KEY is not set here"),
        "{quiet}"
    );
}

#[test]
fn a_secret_in_a_command_line_that_is_taken_for_a_program_is_never_shown() {
    let home = Home::new();
    for program in ["no-such-server", "/no/such/server"] {
        home.config(&format!(
            "[servers.a]\ncommand = '{program} -y x --token canary-8c1f-77'\n"
        ));
        for args in [
            &["list"][..],
            &["get", "a"],
            &["config", "show"],
            &["tools"],
            &["tools", "-o", "json"],
            &["call", "a.t"],
            &["status"],
            &["doctor"],
        ] {
            let ran = home.run(args);
            let said = format!("{}{}", ran.out, ran.err);
            assert!(!said.contains("canary"), "{program}, {args:?}: {said}");
        }
    }
    home.config("[servers.a]\ncommand = 'no-such-server -y x'\n");
    home.run(&["tools"])
        .ends_with(3)
        .says("write the program alone in `command`, and its arguments in `args`");
}

#[test]
fn a_secret_inside_a_command_line_is_never_shown() {
    let home = Home::new();
    let line = "export DB_PASSWORD='canary 8c1f'; exec server --token canary-8c1f-77 --port 80";
    let said = screen(&home, 0, &["add", "local", "--", "sh", "-c", line])
        + &screen(&home, 0, &["list"])
        + &screen(&home, 0, &["list", "-o", "json"])
        + &screen(&home, 0, &["get", "local"])
        + &screen(&home, 0, &["config", "show"]);
    assert!(!said.contains("canary"), "{said}");
    assert!(
        said.contains("export DB_PASSWORD='****'; exec server --token **** --port 80"),
        "{said}"
    );
    assert!(read(&home, USER).contains("canary"));
}

#[test]
fn a_password_in_a_url_is_a_secret() {
    let home = Home::new();
    let said = screen(
        &home,
        0,
        &["add", "db", "--env", "DATABASE_URL=postgres://u:canary@h/db", "--", "x"],
    );
    assert!(
        said.contains("the secret in `env.DATABASE_URL` is in the file as plain text; `pegboard secret set DATABASE_URL` stores it"),
        "{said}"
    );
    assert!(!said.contains("canary"), "{said}");
    let url = "URL=postgres://u:${PASSWORD}@h/db";
    let quiet = screen(&home, 0, &["add", "b", "--env", url, "--", "x"]);
    assert!(!quiet.contains("plain text"), "{quiet}");
}

#[test]
fn an_address_without_its_scheme_is_not_taken_for_a_program() {
    let home = Home::new();
    for (args, said) in [
        (
            &["add", "a", "localhost:8080/mcp"][..],
            "pegboard add a http://localhost:8080/mcp",
        ),
        (
            &["add", "a", "mcp.example.com/mcp"],
            "pegboard add a https://mcp.example.com/mcp",
        ),
        (
            &["add", "a", "--", "localhost:8080"],
            "pegboard add a http://localhost:8080",
        ),
    ] {
        let refused = screen(&home, 2, args);
        assert!(
            refused.contains("has no scheme\n") && refused.contains(&format!("hint: write `{said}`")),
            "{refused}"
        );
        assert!(!home.path(USER).exists(), "{args:?}");
    }
    // A program in a folder of such a name.
    home.write("my.server/run", "");
    for program in ["./my.server/run", "my.server/run"] {
        screen(&home, 0, &["add", "a", "--dry-run", program]);
    }
}

#[test]
fn the_short_options_of_claude_mcp_are_known() {
    let home = Home::new();
    screen(
        &home,
        0,
        &[
            "add",
            "-t",
            "http",
            "web",
            "https://example.com/mcp",
            "-H",
            "X-Team: core",
        ],
    );
    screen(
        &home,
        0,
        &["add", "time", "-e", "TZ=UTC", "--", "uvx", "mcp-server-time"],
    );
    assert_eq!(
        read(&home, USER),
        "[servers.web]\ntype = \"http\"\nurl = \"https://example.com/mcp\"\n\
         headers = { X-Team = \"core\" }\n\n\
         [servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\nenv = { TZ = \"UTC\" }\n"
    );
}

#[test]
fn a_command_before_the_dashes_is_shown_after_them() {
    let home = Home::new();
    for args in [
        &["add", "x", "npx", "-y", "foo"][..],
        &["add", "x", "npx", "--", "-y", "foo"],
    ] {
        let said = screen(&home, 2, args);
        assert!(said.contains("pegboard add x -- npx -y foo"), "{said}");
        assert!(!said.contains("'-- -y'"), "{said}");
    }
}

#[test]
fn a_failure_is_in_the_document() {
    let home = Home::new();
    for args in [
        &["add", "x", "-o", "json"][..],
        &["add", "a.b", "-o", "json", "--", "x"],
        &["add-json", "x", "[]", "-o", "json"],
        &["add-json", "x", "@missing.json", "-o", "json"],
        &["get", "x", "-o", "json"],
        &["remove", "x", "-o", "json"],
    ] {
        let ran = home.run(args);
        let error = &ran.ends_with(2).json()["error"];
        assert_eq!(error["kind"], "invalid_arguments", "{ran:?}");
        assert!(ran.err.contains(error["message"].as_str().unwrap()), "{ran:?}");
    }
}

#[test]
fn the_built_in_server_is_shown_with_its_command() {
    let home = Home::new();
    let shown = screen(&home, 0, &["get", "demo"]);
    assert!(
        shown.contains("command") && shown.contains("demo-server") && shown.contains("built-in"),
        "{shown}"
    );
}

#[test]
#[cfg(unix)]
fn a_file_that_gets_a_secret_can_be_read_by_its_user_only() {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let home = Home::new();
    let file = home.write(USER, "");
    let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&["add", "a", "--env", "TOKEN=${TOKEN}", "--", "x"])
        .ends_with(0);
    assert_eq!(mode(), 0o644);
    home.run(&["add", "b", "--env", "TOKEN=canary", "--dry-run", "--", "x"])
        .ends_with(0);
    assert_eq!(mode(), 0o644);
    home.run(&["add", "b", "--env", "TOKEN=canary", "--", "x"]).ends_with(0);
    assert_eq!(mode(), 0o600);
}

#[test]
fn a_known_name_is_replaced_only_with_force() {
    let home = Home::new();
    screen(&home, 0, &["add", "a", "--", "one", "two"]);
    let before = read(&home, USER);
    let said = screen(&home, 2, &["add", "a", "--", "three"]);
    assert!(
        said.contains("has a server `a` already") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(read(&home, USER), before);
    assert!(screen(&home, 0, &["add", "a", "--force", "--", "three"]).starts_with("replaced a in"));
    assert_eq!(read(&home, USER), "[servers.a]\ncommand = \"three\"\n");
}

#[test]
fn what_cannot_be_a_server_is_refused_and_nothing_is_written() {
    let home = Home::new();
    for args in [
        &["add", "a.b", "--", "x"][..],
        &["add", "a"],
        &["add", "a", "https://x/mcp", "--", "x"],
        &["add", "a", "https://x/mcp", "--env", "A=1"],
        &["add", "a", "--header", "A: 1", "--", "x"],
        &["add", "a", "--env", "A", "--", "x"],
        &["add", "a", "https://x/mcp", "--header", "nothing"],
        &["add", "a", "https://", "--transport", "http"],
        &["add", "a", "--transport", "sse", "--", "x"],
        &["add-json", "a", "[]"],
        &["add-json", "a", "{}"],
        &["add-json", "a", "{\"command\": 5}"],
        &["add-json", "a", "no json"],
        &["add-json", "a", "@missing.json"],
    ] {
        let said = screen(&home, 2, args);
        assert!(said.contains("error: "), "{said}");
        assert!(!home.path(USER).exists(), "{args:?}");
    }
}

#[test]
fn a_dry_run_shows_it_and_writes_nothing() {
    let home = Home::new();
    let said = screen(&home, 0, &["add", "a", "--dry-run", "--", "x"]);
    assert_eq!(
        said,
        "would add a to ~/.config/pegboard/pegboard.toml\n  command  x\n  type     stdio\n"
    );
    assert!(!home.path(".config").exists());
}

#[test]
fn json_of_other_programs_is_taken_as_it_is() {
    let home = Home::new();
    let claude =
        r#"{"mcpServers": {"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"A": "${A}"}}}}"#;
    home.write("claude.json", claude);
    screen(&home, 0, &["add-json", "web", "@claude.json"]);
    screen(
        &home,
        0,
        &[
            "add-json",
            "time",
            r#"{"command": "uvx", "args": ["mcp-server-time"], "disabled": true}"#,
        ],
    );
    let run = home.run(&["list", "-o", "json"]);
    let listed: Value = serde_json::from_str(&run.out).unwrap();
    let time = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["name"] == "time")
        .unwrap();
    assert_eq!(
        (time["enabled"].as_bool(), time["target"].as_str()),
        (Some(false), Some("uvx mcp-server-time"))
    );
}

#[test]
fn check_connects_at_once() {
    let home = Home::new();
    let ran = home.run(&["add", "demo", "--check", "-o", "json", "--", PROGRAM, "demo-server"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let tools: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(
        tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "demo.echo" || tool["tool"] == "echo"),
        "{tools}"
    );
    let ran = home.run(&["add", "gone", "--check", "--", "/nothing/here"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    assert!(
        read(&home, USER).contains("[servers.gone]"),
        "it is written all the same"
    );
}

#[test]
fn a_project_file_stays_approved_if_it_was() {
    let home = Home::new();
    screen(&home, 0, &["add", "a", "--project", "--", PROGRAM, "demo-server"]);
    assert!(read(&home, "pegboard.toml").contains("[servers.a]"));
    assert!(screen(&home, 0, &["list"]).contains("enabled"));
    home.write("pegboard.toml", &(read(&home, "pegboard.toml") + "# someone else\n"));
    let said = screen(&home, 0, &["add", "b", "--project", "--", "x"]);
    assert!(said.contains("waits for approval"), "{said}");
    assert!(screen(&home, 0, &["list"]).contains("not approved"));
}

#[test]
fn other_files_and_formats_keep_their_own_keys() {
    let home = Home::new();
    home.write("own.json", "{\n  // all\n  \"mcpServers\": {}\n}\n");
    screen(&home, 0, &["add", "-c", "own.json", "a", "--", "x"]);
    assert_eq!(
        read(&home, "own.json"),
        "{\n  // all\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"
    );
    home.write("own.yaml", "servers:\n  # one\n  b: {command: y}\n");
    screen(&home, 0, &["add", "-c", "own.yaml", "a", "--", "x"]);
    assert_eq!(
        read(&home, "own.yaml"),
        "servers:\n  # one\n  b: {command: y}\n  a:\n    command: x\n"
    );
    home.write("bad.toml", "[servers\n");
    let said = screen(&home, 2, &["add", "-c", "bad.toml", "a", "--", "x"]);
    assert!(said.contains("bad.toml"), "{said}");
}

#[test]
fn a_server_of_one_run_gets_variables_a_folder_and_headers() {
    let home = Home::new();
    std::fs::create_dir(home.path("work")).unwrap();
    let fake = FakeServer::new("here").tools([Tool::new("env").shows_env(), Tool::new("cwd").shows_cwd()]);
    let server = home.server("here", fake);
    let seen = screen(
        &home,
        0,
        &["call", "here.env", &server, "--env", "GREETING=hello", "--cwd", "work"],
    );
    assert!(seen.contains("GREETING") && seen.contains("hello"), "{seen}");
    let seen = screen(&home, 0, &["--cwd", "work", &server, "call", "here.cwd"]);
    assert!(seen.contains("/work"), "{seen}");

    let web = "--server=web=https://127.0.0.1:1/mcp";
    let shown = screen(&home, 0, &["config", "show", web, "--header", "X-Team: core"]);
    assert!(shown.contains("X-Team"), "{shown}");

    for (args, why) in [
        (vec!["tools", "--env", "A=1"], "are for a server of this command line"),
        (
            vec!["tools", &server, web, "--env", "A=1"],
            "do not say which `--server` they are for",
        ),
        (vec!["tools", &server, "--env", "A"], "`--env A` has no value"),
    ] {
        let refused = screen(&home, 2, &args);
        assert!(refused.contains(why), "{refused}");
    }
}
