//! Where settings come from, and `pegboard config`.

use pegboard_testkit::{FakeServer, Tool};

use super::home::Home;

#[test]
fn a_file_here_comes_before_one_in_the_users_folder() {
    let home = Home::new();
    let entry = |name: &str| home.entry(name, FakeServer::new(name).tool(Tool::new("t")), "");
    home.write(".config/pegboard/pegboard.toml", &entry("user"));
    home.run(&["tools"]).ends_with(0).prints("user.t");
    home.write("xdg/pegboard/pegboard.toml", &entry("xdg"));
    let mut command = home.pegboard(&["tools"]);
    command.env("XDG_CONFIG_HOME", home.path("xdg"));
    super::home::Ran::of(command).ends_with(0).prints("xdg.t");
    let (program, args) = FakeServer::new("here").tool(Tool::new("t")).command();
    let json = serde_json::json!({"mcpServers": {"here": {"command": program, "args": args}}});
    home.write(".mcp.json", &json.to_string().replace('$', "$$"));
    home.run(&["tools"]).ends_with(0).prints("here.t");
    home.write("pegboard.toml", &entry("first"));
    home.run(&["tools"]).ends_with(0).prints("first.t");
}

#[test]
fn later_files_and_servers_of_the_command_line_are_added() {
    let home = Home::new();
    let fake = || FakeServer::new("fx").tool(Tool::new("t"));
    home.write("a.toml", &home.entry("one", fake(), ""));
    home.write("b.toml", &home.entry("two", fake(), ""));
    let ran = home.run(&["-c", "a.toml", "tools", "-c", "b.toml", &home.server("three", fake())]);
    ran.ends_with(0).prints("one.t").prints("two.t").prints("three.t");
}

#[test]
fn problems_are_shown_with_file_and_line_and_errors_fail_the_command() {
    let home = Home::new();
    home.write(
        "pegboard.toml",
        "[servers.a]\ncommand = 'x'\n\n[servers.b]\ncommands = 'x'\n",
    );
    let ran = home.run(&["config", "show"]);
    ran.ends_with(2)
        .says(":5: servers.b.commands: there is no such setting (did you mean `command`?)");
    ran.prints("\"command\": \"x\"");
    let json = home.run(&["config", "show", "-o", "json"]).ends_with(2).json();
    assert_eq!(json["problems"][0]["line"], 5);
    assert_eq!(json["servers"]["a"]["command"], "x");
}

#[test]
fn good_servers_are_used_beside_bad_ones() {
    let home = Home::new();
    let good = home.entry(
        "good",
        FakeServer::new("fx").tool(Tool::new("t").answers_text("fine")),
        "",
    );
    home.write("pegboard.toml", &format!("[servers.bad]\ncommands = 'x'\n{good}"));
    let warning = "warning: ";
    home.run(&["tools"])
        .ends_with(0)
        .says(warning)
        .says("pegboard.toml:2")
        .prints("good.t");
    let json = home.run(&["tools", "-o", "json"]).ends_with(0).json();
    assert!(
        json["warnings"][0].as_str().unwrap().contains("servers.bad.commands"),
        "{json}"
    );
    assert_eq!(home.run(&["call", "good.t"]).ends_with(0).says(warning).out, "fine\n");
    for args in [
        &["call", "bad.t"][..],
        &["tools", "--server", "bad"],
        &["status", "--server", "bad"],
    ] {
        let ran = home.run(args);
        ran.ends_with(2)
            .says("error: server `bad` cannot be used as it is configured\nhint: ");
        ran.says("pegboard.toml:2: servers.bad.commands");
        home.run(&[args, &["-o", "json"]].concat()).ends_with(2).json();
    }
}

#[test]
fn a_config_that_cannot_be_read_is_no_reason_to_use_the_demo_server() {
    let home = Home::new();
    home.write("broken.toml", "[servers.a\n");
    for file in ["none.toml", "broken.toml"] {
        for command in [&["tools"][..], &["status"], &["call", "x.y"]] {
            let ran = home.run(&[&["-c", file], command].concat());
            ran.ends_with(2).says("error: no server can be used\nhint: ").says(file);
            assert_eq!(ran.out, "");
            home.run(&[&["-c", file, "-o", "json"], command].concat())
                .ends_with(2)
                .json();
        }
        home.run(&["-c", file, "config", "show"]).ends_with(2).says(file);
    }
}

#[test]
fn the_schema_and_the_config_without_files_are_json_documents() {
    let home = Home::new();
    let schema = home.run(&["config", "schema"]).ends_with(0).json();
    assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
    let shown = home.run(&["config", "show", "-o", "json"]).ends_with(0).json();
    assert_eq!(shown["servers"]["demo"]["args"], serde_json::json!(["demo-server"]));
}
