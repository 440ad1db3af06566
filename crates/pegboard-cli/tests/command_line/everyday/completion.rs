//! The candidates for shell completion, and man pages.

use std::fs;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::home::Home;

/// A home in which the tools of a server are known from an earlier run.
fn known() -> Home {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {
        "state": {"enum": ["open", "in progress", "$(touch evil)", "(touch evil)"], "description": "Which ones"},
        "limit": {"type": "integer"}}});
    let fake = FakeServer::new("fx")
        .tool(Tool::new("issue").description("Finds issues.\nAll.").schema(schema))
        .tool(Tool::new("x;rm -rf").answers_text("never offered"));
    home.config(&home.entry("fx", fake, ""));
    home.run(&["tools"]).ends_with(0);
    home
}

fn completed(home: &Home, words: &[&str]) -> String {
    home.run(&[&["__complete", "--"], words].concat())
        .ends_with(0)
        .out
        .clone()
}

#[test]
fn servers_tools_arguments_and_values_are_completed_without_starting_a_server() {
    let home = known();
    home.write("notes/day one.json", "1");
    let starts = home.log("fx").spawned.len();
    for (words, expected) in [
        (&["call", "f"][..], "fx.issue\tFinds issues.\n"),
        (&["call", "iss"], "issue\tFinds issues.\n"),
        (&["call", "fx", ""], "issue\tFinds issues.\n"),
        (&["call", "fx.issue", ""], "limit=\nstate=\tWhich ones\n"),
        (&["call", "fx.issue", "limit=1", ""], "state=\tWhich ones\n"),
        (&["call", "fx", "issue", "state=o"], "state=open\n"),
        (&["call", "fx.issue", "state="], "state=open\nstate=in progress\n"),
        (&["call", "fx.issue", "state=in p"], "state=in progress\n"),
        (&["call", "fx.issue", "limit=@no"], "limit=@notes/\n"),
        (&["call", "fx.issue", "limit:=@notes/"], "limit:=@notes/day one.json\n"),
        (&["tools", "fx"], "fx\ta server\nfx.issue\tFinds issues.\n"),
        (&["login", ""], "fx\ta server\n"),
        (&["tools", "--server", ""], "fx\ta server\n"),
        (&["doctor", ""], "fx\ta server\n"),
        (&["get", ""], "fx\ta server\n"),
        (&["remove", "f"], "fx\ta server\n"),
        (&["rename", ""], "fx\ta server\n"),
        (&["rename", "fx", ""], ""),
        (&["enable", ""], "fx\ta server\n"),
        (&["disable", "other", ""], "fx\ta server\n"),
        (&["logs", ""], "fx\ta server\n"),
        (&["torture", ""], "fx\ta server\n"),
        (
            &["install", "cursor", "cla"],
            "claude-desktop\tClaude Desktop\nclaude\tClaude Code\n",
        ),
        (&["config", "explain", "f"], "fx\ta server\n"),
        (
            &["config", "explain", "max_serv"],
            "max_servers\tThe most servers; further ones are refused.\n",
        ),
        (
            &["config", "explain", "fx.max_pag"],
            "fx.max_pages\tThe most pages of one listing.\n",
        ),
        (&["call", "--save", ""], ""),
        (&["call", "nothing.here", ""], ""),
    ] {
        assert_eq!(completed(&home, words), expected, "{words:?}");
    }
    assert_eq!(home.log("fx").spawned.len(), starts);
}

#[test]
fn there_is_a_script_for_every_shell() {
    for (shell, words) in [
        ("bash", "complete -o nospace"),
        ("zsh", "#compdef pegboard"),
        ("fish", "complete -c pegboard"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer[pegboard]"),
    ] {
        Home::new()
            .run(&["completions", shell])
            .ends_with(0)
            .prints(words)
            .prints("__complete");
    }
}

#[test]
fn a_man_page_is_written_for_every_command() {
    let home = Home::new();
    home.run(&["man", "share/man1"]).ends_with(0);
    let page = |name: &str| fs::read_to_string(home.path(&format!("share/man1/{name}"))).unwrap();
    assert!(page("pegboard.1").contains("pegboard\\-call(1)"));
    assert!(page("pegboard-call.1").contains("\\-\\-save"));
    assert!(page("pegboard-config-show.1").contains(".TH"));
    home.write("file", "");
    home.run(&["man", "file/man1"]).ends_with(3).says("cannot be written");
}
