//! The canary in each kind of message.

use std::time::Duration;

use pegboard::{
    Config, Content, Host, Pegboard, Secret, ServerConfig, ToolCall,
    config::{Auth, Transport},
    host::{ElicitAnswer, Elicitation, HostContext},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{Answer, Ask, Block, Era, FakeServer, Fault, MemoryHandle, Tool, When};
use serde_json::{Map, json};
use tokio::sync::mpsc;

use crate::support::*;

/// The token of one server, which another one sends.
pub(crate) const CANARY: &str = "c4nary-7f3a9b1e-t0ken";

/// A server that is never started and has the secret in its config.
pub(crate) fn vault() -> Config {
    let mut endpoint = endpoint("https://vault.invalid/mcp");
    endpoint.auth = Auth::Bearer(Secret::new(CANARY));
    let mut server = ServerConfig::new(Transport::http(endpoint));
    server.enabled = false;
    let mut config = Config::default();
    config.servers.insert(name("vault"), server);
    config
}

/// A board with that server, and with this fake as `fx`.
pub(crate) fn board(fake: &FakeServer) -> (Pegboard, MemoryHandle) {
    let (_first, handle) = fake.connect();
    let board = Pegboard::builder(vault())
        .in_process(name("fx"), dialer(&handle))
        .open();
    (board, handle)
}

#[track_caller]
fn is_clean(what: &str, text: &str) {
    for part in [CANARY, "YzRuYXJ5", "c4nary-7f3a"] {
        assert!(!text.contains(part), "{what}: {text}");
    }
}

#[tokio::test]
async fn no_answer_of_a_tool_holds_it() {
    let text = format!("the token is {CANARY}, you know");
    let nested = json!({"deep": [{"er": text.clone(), CANARY: 1}]});
    let fake = FakeServer::new("fx")
        .tool(Tool::new("text").answers_text(&text))
        .tool(Tool::new("structured").answers_structured(nested.clone()))
        .tool(Tool::new("blocks").answers_blocks([
            Block::resource(&format!("db://u:{CANARY}@h/x"), &text),
            Block::link(&format!("https://x/?token={CANARY}")),
            json!({"type": "text", "text": "x", "_meta": nested}),
            json!({"type": "hologram", "of": text}),
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "dGhlIHRva2VuIGlzIGM0bmFyeS03ZjNhOWIxZS10MGtlbg=="}}),
        ]))
        .tool(Tool::new("fails").fails_with(&text))
        .tool(Tool::new("refuses").answers(Answer::RpcError {
            code: -32000,
            message: text.clone(),
            data: Some(nested),
        }))
        .fault_on(When::tool("lost"), Fault::DiesAfterExecuting { code: 1 })
        .tool(Tool::new("lost"));
    let (board, _handle) = board(&fake);
    let tools = board.toolset();
    for tool in ["text", "structured", "blocks", "fails", "refuses", "lost"] {
        let reply = call(&tools, &format!("fx.{tool}"), json!({})).await;
        is_clean(
            tool,
            &format!("{reply:?} {} {}", reply.text(), serde_json::to_string(&reply).unwrap()),
        );
        assert_eq!(reply.masked > 0, tool != "lost", "{reply:?}");
    }
    board.shutdown().await;
}

#[tokio::test]
async fn no_listing_and_no_word_of_the_server_about_itself_holds_it() {
    let fake = FakeServer::new(format!("server of {CANARY}"))
        .instructions(&format!("use {CANARY}"))
        .resource(&format!("db://u:{CANARY}@h/x"), &format!("the row is {CANARY}"))
        .prompt("p", &format!("log in with {CANARY}"))
        .tool(
            Tool::new("t")
                .description(&format!("needs {CANARY}"))
                .schema(json!({"type": "object", "properties": {"a": {"type": "string", "default": CANARY}}})),
        )
        .tool(Tool::new(format!("odd\u{7}{CANARY}")));
    let (board, handle) = board(&fake);
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.tools.len(), 1);
    is_clean(
        "the listing",
        &format!("{listing:?} {}", serde_json::to_string(&listing).unwrap()),
    );
    is_clean("the status", &serde_json::to_string(&board.status()).unwrap());
    let fx = name("fx");
    let shown = "db://u:[MASKED_SECRET]@h/x";
    let read = tools.read_resource(&fx, shown).await.unwrap();
    assert_eq!(
        handle.requests().last().unwrap().params["uri"],
        format!("db://u:{CANARY}@h/x")
    );
    is_clean("the resource", &serde_json::to_string(&read).unwrap());
    let prompt = tools.get_prompt(&fx, "p", &Map::new()).await.unwrap();
    is_clean("the prompt", &serde_json::to_string(&prompt).unwrap());
    let failure = tools.get_prompt(&fx, CANARY, &Map::new()).await;
    is_clean("the failure", &format!("{failure:?}"));
    board.shutdown().await;
}

#[tokio::test]
async fn no_progress_holds_it() {
    let fake = FakeServer::new("fx").tool(Tool::new("slow").waits_at("gate").answers_text("done"));
    let (board, handle) = board(&fake);
    let tools = board.toolset();
    let (progress, mut steps) = mpsc::channel(4);
    let calling = tokio::spawn(async move { tools.call(ToolCall::new("fx.slow").progress(progress)).await });
    handle.wait_for("tools/call", 1).await;
    let call = handle
        .requests()
        .into_iter()
        .find(|request| request.method == "tools/call")
        .unwrap();
    let token = call.params["_meta"]["progressToken"].clone();
    handle
        .notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": 1, "message": format!("using {CANARY}")}),
        )
        .await;
    let step = steps.recv().await.unwrap();
    assert_eq!(step.message.as_deref(), Some("using [MASKED_SECRET]"));
    handle.open_gate("gate");
    assert_eq!(calling.await.unwrap().text(), "done");
}

/// A host that records the requests it gets.
struct RecordingHost(&'static Mutex<Vec<String>>);

impl Host for RecordingHost {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        request: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        self.0.lock().push(request.message);
        Box::pin(std::future::ready(ElicitAnswer::Decline))
    }
}

#[tokio::test]
async fn no_question_to_a_person_holds_a_secret_that_was_learned_later() {
    static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let fake = FakeServer::new("fx")
        .era(Era::Legacy)
        .tool(Tool::new("ask").asks(Ask::Elicitation).answers_text("asked"));
    let (_first, handle) = fake.connect();
    let board = Pegboard::builder(Config::default())
        .host(RecordingHost(&ASKED))
        .in_process(name("fx"), dialer(&handle))
        .open();
    board.hide([Secret::new("Which colour")]);
    call(&board.toolset(), "fx.ask", json!({})).await;
    assert_eq!(*ASKED.lock(), ["[MASKED_SECRET]?"]);
}

#[tokio::test]
async fn no_last_words_of_a_process_hold_it() {
    let key = format!(
        "-----BEGIN PRIV{}-----\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=\n",
        "ATE KEY"
    );
    let fake = FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: format!("cannot log in with {CANARY}\n{key}"),
    });
    let mut server = process(&fake);
    if let Transport::Stdio(command) = &mut server.transport {
        command.env.insert("API_TOKEN".to_owned(), Secret::new(CANARY));
        // The script is among the arguments, so an operator who may see arguments can see the canary.
        assert!(command.args.iter().any(|arg| arg.expose().contains(CANARY)));
    }
    let board = boards([("fx", server)]);
    let tools = board.toolset();
    let reply = call(&tools, "fx.t", json!({})).await;
    assert_contains(&reply.text(), &["cannot log in with [MASKED_SECRET]"]);
    let listing = tools.list(Duration::from_secs(5)).await;
    let status = board.status();
    let error = status.servers[0].last_error.clone().unwrap();
    assert_contains(&error.stderr.unwrap(), &["[MASKED_SECRET]", "[MASKED_PEM_PRIVATE_KEY]"]);
    for text in [
        format!("{reply:?}"),
        format!("{listing:?}"),
        format!("{status:?} {}", serde_json::to_string(&status).unwrap()),
        format!("{board:?}"),
    ] {
        is_clean("the words", &text);
        assert!(!text.contains("QUJDREVG"), "{text}");
    }
    board.shutdown().await;
}

#[tokio::test]
async fn no_echo_of_a_header_holds_it() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t"))
        .fault_on(
            When::method("tools/call"),
            Fault::Status {
                status: 500,
                headers: vec![],
                body: format!("your X-Key was {CANARY}"),
            },
        )
        .serve_http()
        .await
        .unwrap();
    let mut endpoint = endpoint(&fake.url());
    endpoint.headers.insert("X-Key".to_owned(), Secret::new(CANARY));
    let board = boards([("fx", ServerConfig::new(Transport::http(endpoint)))]);
    let reply = call(&board.toolset(), "fx.t", json!({})).await;
    assert!(reply.is_error());
    is_clean(
        "the echo",
        &format!("{reply:?} {}", serde_json::to_string(&reply).unwrap()),
    );
    let content = Content::text(reply.text());
    is_clean("the text", &content.to_text());
    board.shutdown().await;
}
