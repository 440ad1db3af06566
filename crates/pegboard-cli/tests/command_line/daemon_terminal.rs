//! Questions of servers and progress at the terminal, when the call goes through the daemon: as without it.

use std::time::Duration;

use pegboard_testkit::{Ask, Era, FakeServer, Tool};
use serde_json::{Value, json};

use super::{gateway::Served, home::Home, pty::Terminal};

fn fake(era: Era) -> FakeServer {
    let form = json!({"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}});
    let asking = Tool::new("asks").asks(Ask::Elicitation).needs_input(1).form(form);
    let working = Tool::new("works").progress(8, Duration::from_millis(120));
    FakeServer::new("fx")
        .era(era)
        .tool(asking.answers_text("done"))
        .tool(working.answers_text("worked"))
}

/// A home with a daemon, whose server is ready.
fn with_daemon(era: Era) -> (Home, Served) {
    let home = Home::new();
    home.config(&home.entry("fx", fake(era), "stop_timeout = '500ms'"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__works");
    (home, served)
}

/// What the server was answered, in its own era.
fn answer(home: &Home, era: Era) -> Value {
    let requests = home.log("fx").requests;
    match era {
        Era::Legacy => {
            let answer = requests.iter().rfind(|message| message.method == "$response");
            answer.unwrap().params["result"].clone()
        }
        _ => {
            let call = requests.iter().rfind(|message| message.method == "tools/call");
            call.unwrap().params["inputResponses"]["question"].clone()
        }
    }
}

#[test]
fn a_form_is_filled_in_or_refused_through_the_daemon() {
    for era in [Era::Legacy, Era::Modern] {
        let (home, _served) = with_daemon(era);
        let start = "press Enter to answer, or type n to refuse: ";
        let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
        terminal.answers(start, "");
        terminal.answers("age (a whole number): ", "36");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("server `fx` asks:\n│ Which colour?\n"), "{shown}");
        assert!(shown.contains("done"), "{shown}");
        assert_eq!(answer(&home, era), json!({"action": "accept", "content": {"age": 36}}));
        let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
        terminal.answers(start, "n");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(answer(&home, era), json!({"action": "decline"}));
        assert_eq!(home.log("fx").spawned.len(), 1, "both went through the daemon");
    }
}

#[test]
fn a_question_without_a_terminal_ends_as_without_the_daemon() {
    for era in [Era::Legacy, Era::Modern] {
        let (home, _served) = with_daemon(era);
        let with = home.run(&["call", "fx.asks", "-o", "json"]);
        assert_eq!(home.log("fx").spawned.len(), 1, "{with:?}");
        let without = home.run(&["call", "fx.asks", "-o", "json", "--no-daemon"]);
        assert_eq!(with.code, without.code, "{with:?} {without:?}");
        assert_eq!(with.json()["status"], without.json()["status"], "{with:?} {without:?}");
    }
}

#[test]
fn progress_is_shown_at_the_terminal_through_the_daemon() {
    for era in [Era::Legacy, Era::Modern] {
        let (home, _served) = with_daemon(era);
        let terminal = Terminal::start(&home, &["call", "fx.works"]);
        terminal.shows("of 8", 1);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("calling fx.works: ") && shown.contains('%'), "{shown}");
        assert!(shown.trim_end().ends_with("worked"), "{shown:?}");
        let ran = home.run(&["call", "fx.works"]);
        assert_eq!((ran.ends_with(0).out.as_str(), ran.err.as_str()), ("worked\n", ""));
        assert_eq!(home.log("fx").spawned.len(), 1, "both went through the daemon");
    }
}
