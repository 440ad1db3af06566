//! What messages say: the next step, and only what concerns the servers that a command uses.

use std::net::TcpListener;

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::json;

use super::home::{Home, Ran};

/// A server whose config needs a variable that is not set.
const MISCONFIGURED: &str =
    "[servers.bad]\nurl = 'https://mcp.example.com/mcp'\nauth = { bearer = '${NOT_SET_HERE}' }\n";

fn issues() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("create_issue").answers_text("created"))
        .tool(Tool::new("get_issue").answers_text("got"))
        .prompt("triage", "Sort them.")
}

/// A home with the server `fx`, and one that cannot be used.
fn home() -> Home {
    let home = Home::new();
    home.config(&format!("{}{MISCONFIGURED}", home.entry("fx", issues(), "")));
    home
}

/// How often a run tells of the missing variable.
fn told(ran: &Ran) -> usize {
    ran.err.matches("variable `NOT_SET_HERE` is not set").count()
}

#[test]
fn a_command_tells_only_of_the_servers_that_it_uses() {
    let home = home();
    for command in [
        &["call", "fx.get_issue"][..],
        &["call", "fx", "get_issue"],
        &["call", "get_issue"],
        &["call", "get_issue", "--repeat", "2"],
        &["call", "get_issue", "--server", "fx"],
        &["tools", "fx"],
        &["tools", "fx.get_issue"],
        &["tools", "--server", "fx"],
        &["prompts", "get", "fx.triage"],
        &["prompts", "--server", "fx"],
        &["generate", "python", "fx"],
        &["status", "--server", "fx"],
    ] {
        let ran = home.run(command);
        assert_eq!(told(ran.ends_with(0)), 0, "{command:?}: {ran:?}");
    }
    let server = home.command_of("other", issues());
    let words: Vec<&str> = server.split(' ').collect();
    let recorded = home.run(&[&["record", "run.jsonl", "--"], words.as_slice()].concat());
    assert_eq!(told(recorded.ends_with(0)), 0, "{recorded:?}");
    let listed = home.run(&["tools", "fx", "-o", "json"]).ends_with(0).json();
    assert_eq!(listed["warnings"], json!([]));
}

#[test]
fn a_command_that_may_use_any_server_tells_of_each_once() {
    let home = home();
    for (command, code) in [
        (&["tools"][..], 0),
        (&["tools", "get_*"], 0),
        (&["prompts"], 0),
        (&["prompts", "get", "nothing"], 2),
        (&["call", "nothing"], 2),
        (&["call", "bad"], 2),
        (&["call", "bad.x"], 2),
    ] {
        let ran = home.run(command);
        assert_eq!(told(ran.ends_with(code)), 1, "{command:?}: {ran:?}");
    }
}

#[test]
fn a_warning_about_tools_is_told_where_one_of_them_is_listed() {
    let home = Home::new();
    let (one, two) = (home.server("one", issues()), home.server("two", issues()));
    let same = |tool: &str| format!("`one.{tool}` and `two.{tool}` have the same name");
    let all = home.run(&["tools", &one, &two]);
    all.ends_with(0).says(&same("create_issue")).says(&same("get_issue"));
    let ran = home.run(&["tools", "create_*", &one, &two]);
    ran.ends_with(0).says(&same("create_issue"));
    assert!(!ran.err.contains("get_issue"), "{ran:?}");
    let ran = home.run(&["tools", "create_*", "-o", "json", &one, &two]);
    assert_eq!(ran.ends_with(0).json()["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn the_name_of_a_server_in_place_of_a_tool_is_known() {
    let home = home();
    home.run(&["call", "fx"])
        .ends_with(2)
        .says("error: `fx` is a server, not a tool\nhint: `pegboard tools fx` lists its tools\n");
    home.run(&["call", "bad"])
        .ends_with(2)
        .says("error: server `bad` cannot be used as it is configured\nhint: ");
}

#[test]
fn a_prompt_that_no_server_offers_is_not_blamed_on_another_server() {
    let home = home();
    for name in ["nothing", "fx.nothing"] {
        home.run(&["prompts", "get", name]).ends_with(2).says(&format!(
            "error: there is no prompt `{name}`\nhint: `pegboard prompts` lists"
        ));
    }
    home.run(&["prompts", "get", "bad.triage"])
        .ends_with(2)
        .says("error: server `bad` cannot be used as it is configured");
    let down = FakeServer::new("down").fault(Fault::ExitsAtStart {
        code: 3,
        stderr: "no luck".into(),
    });
    let down = home.server("down", down);
    home.run(&["prompts", "get", "nothing", &down])
        .ends_with(3)
        .says("error: no server offers the prompt `nothing`, and server `down` is");
    home.run(&["prompts", "get", "down.triage", &down])
        .ends_with(3)
        .says("error: server `down` is");
}

#[test]
fn a_resource_that_no_server_offers_is_not_blamed_on_another_server() {
    let ran = home().run(&["resources", "read", "note://x"]);
    ran.ends_with(2).says("error: no server offers a resource");
}

/// The examples of the help screens and guides use the demo server, which is built in only as long as there is no config.
#[test]
fn the_demo_server_can_be_added_to_a_config() {
    let home = Home::new();
    home.config(&home.entry("fx", issues(), ""));
    for (command, code) in [
        (&["call", "demo.calculate", "6 * 7"][..], 2),
        (&["call", "demo", "calculate"], 2),
        (&["tools", "demo"], 2),
        (&["tools", "demo.calculate"], 2),
        (&["tools", "demo.*"], 0),
        (&["tools", "--server", "demo"], 2),
        (&["generate", "python", "demo"], 2),
        (&["prompts", "get", "demo.greet", "name=Ada"], 2),
        (&["resources", "read", "demo://about"], 2),
    ] {
        home.run(command)
            .ends_with(code)
            .says("`pegboard add demo -- pegboard demo-server` adds the built-in demo server");
    }
    let program = env!("CARGO_BIN_EXE_pegboard");
    home.run(&["add", "demo", "--", program, "demo-server"]).ends_with(0);
    home.run(&["call", "demo.calculate", "6 * 7"]).ends_with(0).prints("42");
    let unknown = home.run(&["call", "demo.nothing"]);
    assert!(!unknown.ends_with(2).err.contains("pegboard add"), "{unknown:?}");
}

#[test]
fn without_a_config_the_ways_to_one_are_named() {
    let home = Home::new();
    home.run(&["tools"])
        .ends_with(0)
        .says("`pegboard init` writes a config, `pegboard add` adds a server");
}

#[test]
fn a_service_that_cannot_be_reached_may_not_run_or_be_elsewhere() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.config(&format!("[serve]\nlisten = ['{free}']\n"));
    home.run(&["health"])
        .ends_with(1)
        .says("hint: `pegboard serve` starts the service; `--url URL` asks one at another address\n");
    home.run(&["health", "--url", &format!("http://{free}")])
        .ends_with(1)
        .says("hint: `pegboard serve` says at its start");
}
