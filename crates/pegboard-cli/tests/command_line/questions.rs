//! Elicitation during `pegboard call`: what the user sees at the terminal and may do. Also the display of progress.

use std::time::Duration;

use pegboard_protocol::meta;
use pegboard_testkit::{Ask, Era, FakeServer, NetHandle, Received, Tool};
use serde_json::{Value, json};

use super::{
    home::{Home, until},
    pty::{Terminal, left_on_screen},
};

const START: &str = "press Enter to answer, or type n to refuse: ";

fn fake(era: Era) -> FakeServer {
    let form = json!({"type": "object", "required": ["age"], "properties": {
        "age": {"type": "integer", "minimum": 0},
        "code": {"type": "string", "writeOnly": true},
        "sure": {"type": "boolean", "default": true},
    }});
    let asking = Tool::new("asks").asks(Ask::Elicitation).needs_input(1).form(form);
    FakeServer::new("fx").era(era).tool(asking.answers_text("done"))
}

/// A home with this server as `fx`.
fn home(fake: FakeServer) -> Home {
    let home = Home::new();
    home.config(&home.entry("fx", fake, "stop_timeout = '500ms'"));
    home
}

/// The response to the server's elicitation request.
fn answer(home: &Home, era: Era) -> Value {
    let requests = home.log("fx").requests;
    match era {
        Era::Legacy => {
            let answer = requests.iter().find(|message| message.method == "$response");
            answer.unwrap().params["result"].clone()
        }
        _ => {
            let call = requests.iter().rfind(|message| message.method == "tools/call");
            call.unwrap().params["inputResponses"]["question"].clone()
        }
    }
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[test]
fn a_form_is_filled_in_at_the_terminal() {
    for era in ERAS {
        let home = home(fake(era));
        let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
        terminal.answers(START, "");
        terminal.answers("age (a whole number): ", "36");
        terminal.answers("code (not shown) [nothing]: ", "hunter2");
        terminal.answers("sure (yes or no) [true]: ", "no");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert!(shown.contains("server `fx` asks:\n│ Which colour?\n"), "{shown}");
        assert!(shown.contains("done"), "{shown}");
        let content = json!({"age": 36, "code": "hunter2", "sure": false});
        assert_eq!(answer(&home, era), json!({"action": "accept", "content": content}));
    }
}

/// The value of a field that the schema marks as secret reaches the server and is shown nowhere else.
#[test]
fn a_secret_is_not_shown_while_it_is_typed_and_the_terminal_is_as_before_afterwards() {
    let home = home(fake(Era::Legacy));
    let mut terminal = Terminal::start(&home, &["call", "fx.asks", "-q"]);
    terminal.answers(START, "");
    terminal.answers("age (a whole number): ", "36");
    terminal.shows("code (not shown) [nothing]: ", 1);
    until("echo is off", || !terminal.echoes());
    terminal.types("hunter2\n");
    terminal.shows("sure (yes or no) [true]: ", 1);
    assert!(terminal.echoes());
    terminal.types("yes\n");
    terminal.shows("yes", 2);
    let (code, shown) = terminal.ends();
    let (typed, answered) = shown.split_once("sure (yes").unwrap();
    assert!(typed.contains("36\n") && !typed.contains("hunter2"), "{shown}");
    assert!(answered.contains("done"), "{shown}");
    assert_eq!(code, Some(0));
    assert_eq!(answer(&home, Era::Legacy)["content"]["code"], "hunter2");
}

#[test]
fn a_form_may_be_refused_or_left() {
    // Ctrl-D ends the input.
    for (keys, action) in [("n\n", "decline"), ("no\n", "decline"), ("\u{4}", "cancel")] {
        for era in ERAS {
            let home = home(fake(era));
            let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
            terminal.shows(START, 1);
            terminal.types(keys);
            let (code, shown) = terminal.ends();
            assert_eq!(code, Some(0), "{shown}");
            assert_eq!(answer(&home, era), json!({"action": action}), "{keys:?}");
        }
    }
}

#[test]
fn wrong_input_is_asked_for_again_and_not_for_ever() {
    let asked = "age (a whole number): ";
    let answered_after = |wrong: &[&str]| {
        let home = home(fake(Era::Legacy));
        let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
        terminal.answers(START, "");
        for (before, line) in wrong.iter().enumerate() {
            terminal.shows(asked, before + 1);
            terminal.types(&format!("{line}\n"));
        }
        if wrong.len() < 3 {
            terminal.shows(asked, wrong.len() + 1);
            terminal.types("36\n");
            terminal.answers("code", "");
            terminal.answers("sure", "");
        }
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        (answer(&home, Era::Legacy), shown)
    };
    let (answer, shown) = answered_after(&["old", "-1"]);
    assert_eq!(answer["content"], json!({"age": 36, "sure": true}));
    for problem in ["`age` must be a whole number", "`age` must be at least 0"] {
        assert!(shown.contains(problem), "{shown}");
    }
    let (answer, shown) = answered_after(&["", "old", "-1"]);
    assert_eq!(answer, json!({"action": "cancel"}));
    assert!(shown.contains("this must be filled in"), "{shown}");
}

/// Ctrl-C at a question cancels the whole call at once and restores the terminal.
#[test]
fn ctrl_c_at_a_question_cancels_the_call_also_where_a_secret_is_typed() {
    for era in ERAS {
        for is_hidden in [false, true] {
            let home = home(fake(era));
            let mut terminal = Terminal::start(&home, &["call", "fx.asks"]);
            terminal.shows(START, 1);
            if is_hidden {
                terminal.types("\n");
                terminal.answers("age (a whole number): ", "36");
                terminal.shows("code (not shown)", 1);
                until("echo is off", || !terminal.echoes());
            }
            terminal.types("\u{3}");
            let (code, shown) = terminal.ends();
            assert_eq!(code, Some(130), "{shown}");
            let told =
                "\nerror: interrupted. The call may have been carried out. Check the state before repeating it.\n";
            assert!(left_on_screen(&shown).ends_with(told), "{shown:?}");
            // In the modern era no request is open while the user is asked.
            let cancelled = usize::from(era == Era::Legacy);
            assert_eq!(home.log("fx").count("notifications/cancelled"), cancelled);
            home.assert_gone("fx");
        }
    }
}

/// Starts a call of `fx.asks` and waits for its question. Returns the terminal and the request of the call.
fn at_the_question(home: &Home, handle: &NetHandle) -> (Terminal, Received) {
    let terminal = Terminal::start(home, &["call", "fx.asks", &format!("--server=fx={}", handle.url())]);
    terminal.shows(START, 1);
    until("the command listens to the server", || handle.listeners() > 0);
    let mut requests = handle.requests().into_iter();
    let call = requests.find(|message| message.method == "tools/call");
    (terminal, call.unwrap())
}

/// Announces a changed tool list and waits until the command requests it: by then it has handled every earlier notification.
async fn list_again(handle: &NetHandle) {
    let before = handle.count("tools/list");
    handle.tools_changed().await;
    until("the tools are listed again", || handle.count("tools/list") > before);
}

/// A server that cancels its elicitation gets no response, and the terminal goes on waiting for the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_taken_back_leaves_the_terminal() {
    let tool = Tool::new("asks").asks(Ask::Elicitation);
    let handle = FakeServer::new("fx").tool(tool).streams().serve_http().await.unwrap();
    let home = Home::new();
    let (mut terminal, call) = at_the_question(&home, &handle);
    let id = format!("ask-elicitation/create-{}", call.id.unwrap());
    handle.notify("notifications/cancelled", json!({"requestId": id})).await;
    // The spinner reappears below the question, in any of its frames. By then nothing reads the terminal.
    until("the spinner goes on", || {
        let shown = terminal.shown();
        let after = shown.split_once(&format!("{START}\n"));
        after.is_some_and(|(_, after)| after.contains(" calling fx.asks"))
    });
    terminal.types("\n");
    list_again(&handle).await;
    assert_eq!(terminal.unread(), 1, "the typed line is still unread");
    terminal.types("\u{3}");
    assert_eq!(terminal.ends().0, Some(130));
    assert_eq!(handle.count("$response"), 0);
}

/// Progress during a question is not drawn into it and does not delay Ctrl-C.
#[tokio::test(flavor = "multi_thread")]
async fn progress_during_a_question_is_not_drawn_into_it() {
    let handle = fake(Era::Legacy).streams().serve_http().await.unwrap();
    let home = Home::new();
    let (mut terminal, call) = at_the_question(&home, &handle);
    let token = call.params["_meta"]["progressToken"].clone();
    for step in 1..=3 {
        let params = json!({"progressToken": token, "progress": step, "total": 3, "message": "not now"});
        handle.notify("notifications/progress", params).await;
    }
    list_again(&handle).await;
    assert!(terminal.shown().ends_with(START), "{}", terminal.shown());
    terminal.types("\u{3}");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!shown.contains("not now"), "{shown}");
}

/// The elicitation capability that the client declared to the server.
fn offered(home: &Home, era: Era) -> Value {
    let requests = home.log("fx").requests;
    let told = |method: &str| {
        requests
            .iter()
            .find(|message| message.method == method)
            .unwrap()
            .params
            .clone()
    };
    match era {
        Era::Legacy => told("initialize")["capabilities"]["elicitation"].clone(),
        _ => told("server/discover")["_meta"][meta::CLIENT_CAPABILITIES]["elicitation"].clone(),
    }
}

/// Without a terminal the capability is not declared, and an elicitation sent all the same is refused at once.
#[test]
fn without_a_terminal_servers_are_not_told_that_they_may_ask() {
    for era in ERAS {
        let home = home(fake(era));
        let ran = home.run(&["call", "fx.asks"]);
        assert_eq!(offered(&home, era), Value::Null);
        match era {
            Era::Legacy => assert!(ran.ends_with(0).out.starts_with("done"), "{ran:?}"),
            _ => {
                ran.says("the server asked for `elicitation/create` in between: this client does not offer that");
                assert_ne!(ran.code, Some(0));
            }
        }
    }
}

#[test]
fn at_a_terminal_servers_may_ask_also_about_resources_and_prompts() {
    for era in ERAS {
        for command in [
            &["call", "fx.plain"][..],
            &["resources", "read", "note://a"],
            &["prompts", "get", "p"],
        ] {
            let fake = FakeServer::new("fx").era(era).tool(Tool::new("plain"));
            let home = home(fake.resource("note://a", "x").prompt("p", "x"));
            let (code, shown) = Terminal::start(&home, command).ends();
            assert_eq!(code, Some(0), "{command:?}: {shown}");
            assert_eq!(offered(&home, era), json!({"form": {}, "url": {}}), "{command:?}");
        }
    }
}

fn working() -> FakeServer {
    let tool = Tool::new("works").progress(8, Duration::from_millis(120));
    FakeServer::new("fx").tool(tool.answers_text("worked"))
}

#[test]
fn a_bar_is_drawn_at_a_terminal_and_taken_away() {
    let home = home(working());
    let terminal = Terminal::start(&home, &["call", "fx.works"]);
    terminal.shows("of 8", 1);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("calling fx.works: ") && shown.contains('%'), "{shown}");
    // The bar's line was erased before the result was printed, and nothing came after the result.
    let (bar, result) = shown.rsplit_once("worked").unwrap();
    assert!(
        bar.ends_with("\u{1b}[2K") || bar.ends_with("\u{1b}[K") || bar.ends_with('\r'),
        "{bar:?}"
    );
    assert_eq!(result.trim(), "", "{shown:?}");
}

#[test]
fn off_a_terminal_no_bar_is_written() {
    let home = home(working());
    let ran = home.run(&["call", "fx.works"]);
    ran.ends_with(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("worked\n", ""));
    for flag in ["-q", "-ojson"] {
        let home = self::home(working());
        let terminal = Terminal::start(&home, &["call", "fx.works", flag]);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert!(
            !shown.contains('\u{1b}') && !shown.contains("calling"),
            "{flag}: {shown:?}"
        );
    }
}
