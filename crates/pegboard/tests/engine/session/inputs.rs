//! Input that servers require during a request: further rounds and page visits, for tools, prompts and resources alike, in both eras.

use std::{pin::Pin, sync::Arc, time::Duration};

use pegboard::{
    Host, Kind, Pegboard, ToolCall,
    host::{ElicitAnswer, Elicitation, HostContext},
    status::Era,
};
use pegboard_base::sync::Mutex;
use serde_json::{Map, Value, json};

use crate::{session::scripted::*, support::*};

fn offers() -> Value {
    json!({"capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "tools": [tool("t")]})
}

/// A state that breaks if it is parsed or re-escaped.
const STATE: &str = "\u{1f980} \"\\/\u{2028}\u{7f} {\"a\":1.0} é\u{301}";

/// A server that requires a colour `rounds` times before it answers any request, with a state that must come back unchanged.
fn asking(rounds: usize, user: &(impl Host + Clone)) -> (Scripted, Pegboard) {
    let server = Scripted::new(Era::Modern, offers());
    let board = server.board(user.clone(), move |message| {
        let params = &message["params"];
        let state = params["requestState"].as_str();
        let round = match state.and_then(|state| state.strip_prefix(STATE)) {
            Some(round) if params["inputResponses"]["c"]["content"] == json!({"colour": "red"}) => round.parse().unwrap(),
            None if state.is_none() => 0,
            _ => return Answer::Error(-32602, "that is not what was asked for", Value::Null),
        };
        if round < rounds {
            let request = json!({"method": "elicitation/create", "params": colour()});
            return result(json!({"resultType": "input_required", "inputRequests": {"c": request}, "requestState": format!("{STATE}{}", round + 1)}));
        }
        match message["method"].as_str() {
            Some("prompts/get") => result(json!({"resultType": "complete", "messages": []})),
            Some("resources/read") => result(json!({"resultType": "complete", "contents": []})),
            _ => said("done"),
        }
    });
    (server, board)
}

/// Every round has a new id and the state byte for byte; there are at most eight rounds.
#[tokio::test(start_paused = true)]
async fn tools_prompts_and_resources_may_want_input_eight_times_and_no_more() {
    for (rounds, works) in [(1, true), (8, true), (9, false)] {
        let user = User::types(json!({"colour": "red"}));
        let (server, board) = asking(rounds, &user);
        let (tools, fx) = (board.toolset(), name("fx"));
        let reply = call(&tools, "fx.t", json!({})).await;
        assert_eq!(reply.outcome.kind() == Kind::Ok, works, "{}", reply.text());
        assert_eq!(tools.get_prompt(&fx, "p", &Map::new()).await.is_ok(), works);
        assert_eq!(tools.read_resource(&fx, "a:b").await.is_ok(), works);
        if works {
            assert_eq!(user.asked(), 3 * rounds);
            assert_eq!(server.received("tools/call").len(), rounds + 1);
        } else {
            assert_contains(&reply.text(), &["after 8 rounds"]);
            assert_eq!(server.received("tools/call").len(), 9);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_takes_longer_than_the_call_may_ends_it_with_the_time() {
    let user = User::types(json!({"colour": "red"})).after(secs(3600));
    let (_server, board) = asking(1, &user);
    let reply = board.toolset().call(ToolCall::new("fx.t").timeout(secs(5))).await;
    assert_outcome(&reply, Kind::Timeout, true);
    assert_eq!(board.status().servers[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_a_hundred_things_at_once_gets_none() {
    let user = User::types(json!({"colour": "red"}));
    let server = Scripted::new(Era::Modern, offers());
    let board = server.board(user.clone(), |_| {
        let request = json!({"method": "elicitation/create", "params": colour()});
        let requests: Map<_, _> = (0..100).map(|number| (number.to_string(), request.clone())).collect();
        result(json!({"resultType": "input_required", "inputRequests": requests}))
    });
    let reply = call(&board.toolset(), "fx.t", json!({})).await;
    assert_outcome(&reply, Kind::Internal, true);
    assert_eq!(user.asked(), 0);
}

/// The idle timeout does not run while the server waits for the user.
#[tokio::test(start_paused = true)]
async fn a_user_may_think_longer_than_a_server_may_be_silent() {
    let user = User::types(json!({"colour": "red"})).after(secs(200));
    let server = Scripted::new(Era::Legacy, offers());
    let board = server.board(user.clone(), |_| Answer::Silence);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let calling = tokio::spawn(async move { call(&tools, "fx.t", json!({})).await });
    server.wait_for("tools/call", 1).await;
    server
        .say(json!({"id": "e", "method": "elicitation/create", "params": colour()}))
        .await;
    let answered = async {
        while server.answers().is_empty() {
            tokio::time::sleep(secs(1)).await;
        }
    };
    tokio::time::timeout(secs(300), answered).await.unwrap();
    assert_eq!(
        server.answers()[0]["result"],
        json!({"action": "accept", "content": {"colour": "red"}})
    );
    // From here on the server is silent, and the idle timeout runs.
    let since = tokio::time::Instant::now();
    assert_outcome(&calling.await.unwrap(), Kind::Timeout, true);
    let silent = since.elapsed();
    assert!((Duration::from_secs(58)..secs(62)).contains(&silent), "{silent:?}");
}

/// A result that depends on user input is not cached.
#[tokio::test(start_paused = true)]
async fn an_answer_that_hung_on_a_users_input_is_not_kept() {
    let mut read = tool("read");
    read["annotations"] = json!({"readOnlyHint": true});
    let offers = json!({"capabilities": {"tools": {}}, "tools": [read]});
    let kept = set_to(|server| {
        server.policy.cache = Some(secs(60));
        server.policy.trust = true;
    });
    for (era, asks) in [
        (Era::Legacy, true),
        (Era::Legacy, false),
        (Era::Modern, true),
        (Era::Modern, false),
    ] {
        let (user, server) = (
            User::types(json!({"colour": "red"})),
            Scripted::new(era, offers.clone()),
        );
        let board = server.board_with(kept.clone(), user.clone(), move |message| {
            let params = &message["params"];
            let request = json!({"method": "elicitation/create", "params": colour()});
            match (era, asks) {
                (Era::Modern, true) if params["inputResponses"].is_null() => {
                    result(json!({"resultType": "input_required", "inputRequests": {"c": request}}))
                }
                (Era::Legacy, true) => Answer::Silence,
                _ => said("done"),
            }
        });
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        for number in 1..=2 {
            let asking = async {
                if asks && era == Era::Legacy {
                    server.wait_for("tools/call", number).await;
                    server
                        .say(json!({"id": "e", "method": "elicitation/create", "params": colour()}))
                        .await;
                    until("the user has answered", || server.answers().len() == number).await;
                    let id = server.ids("tools/call")[number - 1].clone();
                    let answer = json!({"content": [{"type": "text", "text": "done"}]});
                    server.say(json!({"id": id, "result": answer})).await;
                }
            };
            let (reply, ()) = tokio::join!(call(&tools, "fx.read", json!({})), asking);
            assert_eq!(
                (reply.text().as_str(), reply.cached),
                ("done", number == 2 && !asks),
                "{era:?} {asks}"
            );
        }
        assert_eq!(user.asked(), if asks { 2 } else { 0 });
    }
}

fn visit_first() -> Answer {
    let page =
        json!({"mode": "url", "elicitationId": "e1", "url": "https://example.org/sign-in", "message": "Sign in."});
    Answer::Error(-32042, "sign in first", json!({"elicitations": [page]}))
}

/// The user visits the page, the server reports that the visit is complete, and the call is retried.
#[tokio::test(start_paused = true)]
async fn a_call_that_needs_a_visit_is_made_again_when_the_visit_is_done() {
    for answer in [ElicitAnswer::Accept(Map::new()), ElicitAnswer::Finished] {
        let user = User::who(answer.clone());
        let server = Scripted::new(Era::Legacy, offers());
        let this = server.clone();
        let board = server.board(user.clone(), move |_| match this.received("tools/call").len() {
            1 => visit_first(),
            _ => said("done"),
        });
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let calling = tokio::spawn(async move { call(&tools, "fx.t", json!({})).await });
        if answer != ElicitAnswer::Finished {
            until("the user is asked", || user.asked() == 1).await;
            tokio::time::sleep(secs(30)).await;
            assert_eq!(server.received("tools/call").len(), 1, "the visit is not done yet");
            server
                .say(json!({"method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}))
                .await;
        }
        assert_eq!(calling.await.unwrap().text(), "done");
        let asked = user.asked.lock()[0].clone();
        assert_eq!(asked.url.as_deref(), Some("https://example.org/sign-in"));
        assert_eq!(asked.id.as_deref(), Some("e1"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_does_not_visit_the_page_gets_the_servers_error() {
    let user = User::who(ElicitAnswer::Decline);
    let server = Scripted::new(Era::Legacy, offers());
    let board = server.board(user.clone(), |_| visit_first());
    let reply = call(&board.toolset(), "fx.t", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::ToolError);
    assert_contains(&reply.text(), &["-32042", "sign in first"]);
    assert_eq!((user.asked(), server.received("tools/call").len()), (1, 1));

    // The number of visits that a server may require is bounded.
    let user = User::who(ElicitAnswer::Finished);
    let server = Scripted::new(Era::Legacy, offers());
    let board = server.board(user.clone(), |_| visit_first());
    let reply = call(&board.toolset(), "fx.t", json!({})).await;
    assert!(reply.is_error());
    assert_eq!(server.received("tools/call").len(), 9);
}

/// Notes for which call it is asked.
#[derive(Clone, Default)]
struct NotesCalls(Arc<Mutex<Vec<String>>>);

impl Host for NotesCalls {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        context: HostContext<'a>,
        _: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        self.0.lock().push(context.caller.unwrap().call.to_owned());
        let User { answer, .. } = User::types(json!({"colour": "red"}));
        Box::pin(std::future::ready(answer))
    }
}

/// A host can tell apart what two prompts ask at the same time.
#[tokio::test(start_paused = true)]
async fn every_request_has_an_id_of_its_own_also_if_it_is_no_tool_call() {
    let host = NotesCalls::default();
    let (_server, board) = asking(2, &host);
    let (tools, fx) = (board.toolset(), name("fx"));
    tools.call(ToolCall::new("fx.t").id("mine")).await;
    tools.get_prompt(&fx, "p", &Map::new()).await.unwrap();
    tools.read_resource(&fx, "a:b").await.unwrap();
    let asked = host.0.lock().clone();
    let [call, call_again, prompt, prompt_again, read, read_again] = asked.try_into().unwrap();
    assert_eq!((call.as_str(), call_again.as_str()), ("mine", "mine"));
    assert_eq!((&prompt, &read), (&prompt_again, &read_again));
    assert!(
        !prompt.is_empty() && !read.is_empty() && prompt != read,
        "{prompt:?}, {read:?}"
    );
}
