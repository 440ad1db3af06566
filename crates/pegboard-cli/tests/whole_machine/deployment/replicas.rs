//! Two gateways behind a load balancer that sends each connection to the next one.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::atomic::{AtomicUsize, Ordering},
};

use pegboard_testkit::{Era, FakeServer, Question, Tool};
use serde_json::{Value, json};

use crate::{
    gateway::{Response, Served, initialize},
    home::Home,
};

const KEY: &str = "state_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='";
const OTHER_KEY: &str = "state_key = '/wECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='";

/// More tools than one page of a listing has.
const TOOLS: usize = 1100;

/// Two gateways, each with a process of the server `fx`, and the address of the balancer in front of them.
struct Replicas {
    homes: [Home; 2],
    served: [Served; 2],
    address: String,
}

impl Replicas {
    /// Starts a gateway for each of these settings of `serve`.
    fn start(settings: [&str; 2], fake: impl Fn() -> FakeServer) -> Self {
        Self::with(settings, |home| home.entry("fx", fake(), "stop_timeout = '200ms'"))
    }

    /// Starts a gateway for each of these settings of `serve`, with this entry of the server.
    fn with(settings: [&str; 2], entry: impl Fn(&Home) -> String) -> Self {
        let homes = settings.map(|settings| {
            let home = Home::new();
            let entry = entry(&home);
            home.config(&format!("[serve]\n{settings}\n{entry}"));
            home
        });
        let served = [0, 1].map(|index: usize| Served::start(&homes[index], &[]));
        for one in &served {
            one.has_tool("fx__read");
        }
        let address = balance(served.each_ref().map(|one| one.address.clone()));
        Self { homes, served, address }
    }

    /// Sends a request to the balancer, which sends it to the gateway whose turn it is.
    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        self.served[0].write(&mut stream, "/mcp", headers, &message.to_string());
        Response::read(stream)
    }

    /// Sends a request as a modern client that can be asked, and returns the message.
    fn ask(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&headers, &request).message()
    }

    /// How many calls each process of the server has had.
    fn calls(&self) -> [usize; 2] {
        self.homes.each_ref().map(|home| home.log("fx").count("tools/call"))
    }
}

/// Starts a balancer, and returns its address.
fn balance(targets: [String; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let turn = AtomicUsize::new(0);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let target = &targets[turn.fetch_add(1, Ordering::Relaxed) % targets.len()];
            let server = TcpStream::connect(target).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(from, to));
            std::thread::spawn(move || pass(server, client));
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

fn fx() -> FakeServer {
    let form = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    FakeServer::new("fx")
        .era(Era::Modern)
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(
            Tool::new("paint")
                .asks_for([Question::form("colour", "Which colour?", form)])
                .answers_text("painted"),
        )
}

fn many() -> FakeServer {
    (0..TOOLS).fold(fx(), |fake, number| fake.tool(Tool::new(format!("tool{number:04}"))))
}

/// Calls a tool that asks, and answers in another request. Returns the second message.
fn question(replicas: &Replicas, tool: &str) -> Value {
    let asked = replicas.ask("tools/call", json!({"name": tool, "arguments": {}}));
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let requests = result["inputRequests"].as_object().unwrap();
    let answer = json!({"action": "accept", "content": {"colour": "green"}});
    let answers: Value = requests.keys().map(|key| (key.clone(), answer.clone())).collect();
    let again = json!({
        "name": tool, "arguments": {}, "requestState": result["requestState"], "inputResponses": answers,
    });
    replicas.ask("tools/call", again)
}

#[test]
fn replicas_list_the_same_pages_and_share_the_calls() {
    let replicas = Replicas::start([KEY, KEY], many);
    let mut names = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = match &cursor {
            Value::Null => json!({}),
            cursor => json!({ "cursor": cursor }),
        };
        let message = replicas.ask("tools/list", params);
        let tools = message["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{message}"));
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        cursor = message["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let mut listed = names.clone();
    listed.sort();
    listed.dedup();
    assert_eq!((names.len(), listed.len()), (TOOLS + 2, TOOLS + 2), "each tool once");
    for _ in 0..6 {
        let message = replicas.ask("tools/call", json!({"name": "fx__read", "arguments": {}}));
        assert_eq!(message["result"]["content"][0]["text"], "read it", "{message}");
    }
    assert_eq!(replicas.calls(), [3, 3]);
}

#[test]
fn replicas_with_one_key_finish_each_others_questions() {
    let key = "state_key = 'gAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='";
    let replicas = Replicas::start([key, key], fx);
    for _ in 0..2 {
        let answered = question(&replicas, "fx__paint");
        let text = answered["result"]["content"].to_string();
        assert!(text.contains("painted") && text.contains("green"), "{answered}");
        // The next question is asked by the other gateway.
        replicas.ask("tools/call", json!({"name": "fx__read", "arguments": {}}));
    }
    assert_eq!(replicas.calls(), [3, 3]);
}

/// The server is a remote one, so that both gateways reach the same process.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_polled_through_either_replica() {
    let fake = fx().tool(Tool::new("job").runs_as_task().answers_text("worked"));
    let remote = fake.serve_http().await.unwrap();
    let replicas = Replicas::with([KEY, KEY], |_| format!("[servers.fx]\nurl = '{}'\n", remote.url()));
    let created = replicas.ask("tools/call", json!({"name": "fx__job", "arguments": {}}));
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    for _ in 0..2 {
        let polled = replicas.ask("tasks/get", json!({"taskId": created["result"]["taskId"]}));
        assert_eq!(polled["result"]["status"], "completed", "{polled}");
        assert_eq!(polled["result"]["result"]["content"][0]["text"], "worked", "{polled}");
    }
}

#[test]
fn without_a_common_key_a_question_is_refused_elsewhere() {
    for settings in [["", ""], [KEY, OTHER_KEY]] {
        let replicas = Replicas::start(settings, fx);
        let answered = question(&replicas, "fx__paint");
        assert_eq!(answered["error"]["code"], -32602, "{answered}");
        let message = answered["error"]["message"].as_str().unwrap();
        assert!(message.contains("may have taken effect"), "{message}");
    }
}

/// These calls wait in the gateway that asked.
#[test]
fn questions_of_legacy_servers_and_approvals_are_answered_only_where_they_were_asked() {
    for (era, more, tool) in [
        (Era::Legacy, "", "fx__paint"),
        (Era::Modern, "approval = 'always'", "fx__read"),
    ] {
        let replicas = Replicas::with([KEY, KEY], |home| home.entry("fx", fx().era(era), more));
        let answered = question(&replicas, tool);
        assert_eq!(answered["error"]["code"], -32602, "{answered}");
        let message = answered["error"]["message"].as_str().unwrap();
        assert!(message.contains("another replica"), "{message}");
        assert!(message.contains("may have taken effect"), "{message}");
        assert_eq!(answered["error"]["data"]["may_have_executed"], true, "{answered}");
        assert_eq!(replicas.calls()[1], 0);
    }
}

#[test]
fn a_session_of_a_legacy_client_goes_on_at_replicas_with_the_same_key() {
    for (settings, elsewhere) in [([KEY, KEY], 200), ([KEY, OTHER_KEY], 404)] {
        let replicas = Replicas::start(settings, fx);
        let session = replicas.post(&[], &initialize());
        let id = session.header("mcp-session-id").unwrap().to_owned();
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let headers = [("Mcp-Session-Id", id.as_str())];
        // 404 tells a client to shake hands again.
        assert_eq!(replicas.post(&headers, &list).status, elsewhere);
        assert_eq!(replicas.post(&headers, &list).status, 200);
    }
}

#[test]
fn a_key_is_changed_in_two_steps_and_ends_no_session() {
    const PREVIOUS: &str = "previous_state_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='";
    let both = format!("{OTHER_KEY}\n{PREVIOUS}");
    let before = format!("{KEY}\nprevious_{OTHER_KEY}");
    for settings in [[KEY, &before], [&before, &both], [&both, OTHER_KEY]] {
        let replicas = Replicas::start(settings, fx);
        let session = replicas.post(&[], &initialize());
        let id = session.header("mcp-session-id").unwrap().to_owned();
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        for _ in 0..2 {
            let listed = replicas.post(&[("Mcp-Session-Id", id.as_str())], &list);
            assert_eq!(listed.status, 200, "{settings:?}: {listed:?}");
        }
    }
}

#[test]
fn a_wrong_key_keeps_the_gateway_from_starting_and_a_changed_one_waits_for_a_restart() {
    let home = Home::new();
    let secret = "aHVudGVyMg==";
    home.config(&format!("[serve]\nstate_key = '{secret}'\n"));
    let ran = home.run(&["serve", "--listen", "0"]);
    ran.ends_with(2)
        .says("serve.state_key")
        .says("32 bytes")
        .says("openssl rand -base64 32");
    assert!(!ran.err.contains(secret), "{}", ran.err);

    home.config(&format!("[serve]\n{KEY}\n"));
    let served = Served::start(&home, &[]);
    home.config(&format!("[serve]\n{OTHER_KEY}\n"));
    served.signal("HUP");
    served.says("take effect at the next start");
    assert!(served.err().contains("`serve.state_key`"), "{}", served.err());
}
