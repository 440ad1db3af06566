//! Replicas that share a store, behind a balancer that sends each connection to the next one: what belongs to one of them is answered wherever its client
//! asks, and what one of them had goes on at the others when it is killed.

mod fire;
mod real_clients;
mod store;

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use pegboard_testkit::{Era, FakeServer, Question, Tool};
use serde_json::{Value, json};

use self::store::{RedisServer, folder};
use crate::{
    gateway::{Response, Served},
    home::{Home, until},
};

const ADA: (&str, &str) = ("Authorization", "Bearer pgb_ada");
const BOB: (&str, &str) = ("Authorization", "Bearer pgb_bob");

/// Gateways that share a store, and the address of the balancer in front of them.
struct Cluster {
    homes: Vec<Home>,
    served: Vec<Option<Served>>,
    targets: Arc<Mutex<Vec<Target>>>,
    address: String,
}

/// A replica as the balancer knows it.
#[derive(Clone, Default)]
struct Target {
    /// Empty while it does not run.
    address: String,
    /// How many connections of it are open.
    open: Arc<AtomicUsize>,
}

impl Cluster {
    /// Starts replicas that share the store of this address. Each has a process of the server.
    fn start(count: usize, store: &str, fake: impl Fn() -> FakeServer, more: &str) -> Self {
        let anywhere = || "{ listen = '127.0.0.1:0' }".to_owned();
        Self::start_with(count, store, anywhere, fake, more)
    }

    /// Starts replicas with these settings of `serve.replicas`.
    fn start_with(
        count: usize,
        store: &str,
        replicas: impl Fn() -> String,
        fake: impl Fn() -> FakeServer,
        more: &str,
    ) -> Self {
        let homes: Vec<Home> = (0..count).map(|_| Home::new()).collect();
        for home in &homes {
            let tokens = ["ada", "bob"].map(|name| {
                let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
                format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n")
            });
            home.config(&format!(
                "[serve]\nstate_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='\nstore = '{store}'\nreplicas = {}\n{}{}",
                replicas(),
                tokens.concat(),
                home.entry("fx", fake(), more)
            ));
        }
        let targets = Arc::new(Mutex::new(
            std::iter::repeat_with(Target::default).take(count).collect::<Vec<_>>(),
        ));
        let address = balance(&targets);
        let mut cluster = Self {
            served: homes.iter().map(|_| None).collect(),
            homes,
            targets,
            address,
        };
        (0..count).for_each(|index| cluster.restart(index));
        cluster
    }

    /// Starts a replica that does not run.
    fn restart(&mut self, index: usize) {
        let served = Served::start(&self.homes[index], &[]);
        until("the server is listed", || {
            served
                .tools_if_admitted("/mcp", &[ADA])
                .is_some_and(|tools| tools.iter().any(|tool| tool == "fx__read"))
        });
        self.targets.lock().unwrap()[index].address = served.address.clone();
        self.served[index] = Some(served);
    }

    /// Ends a replica with SIGTERM, and waits until it has ended.
    fn stop(&mut self, index: usize) {
        let served = self.served[index].take().unwrap();
        served.signal("TERM");
        assert_eq!(served.code(), Some(0));
        self.forget(index);
    }

    /// Makes the balancer forget a replica, and waits until the clients know of the end of their connections.
    fn forget(&self, index: usize) {
        let open = {
            let mut targets = self.targets.lock().unwrap();
            targets[index].address.clear();
            targets[index].open.clone()
        };
        until("its connections have ended", || open.load(Ordering::Relaxed) == 0);
    }

    /// Kills a replica with SIGKILL.
    fn kill(&mut self, index: usize) {
        drop(self.served[index].take());
        self.forget(index);
    }

    fn replica(&self, index: usize) -> &Served {
        self.served[index].as_ref().unwrap()
    }

    /// Sends a request to the balancer, and reads the response.
    fn send(&self, method: &str, headers: &[(&str, &str)], message: &Value) -> Response {
        Response::read(self.open(method, headers, message))
    }

    /// Sends a request to the balancer.
    fn open(&self, method: &str, headers: &[(&str, &str)], message: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(30)))
            .unwrap();
        let body = match message {
            Value::Null => String::new(),
            message => message.to_string(),
        };
        let any = self.served.iter().flatten().next().unwrap();
        any.write_as(method, &mut stream, "/mcp", headers, &body);
        stream
    }

    /// Opens a session through the balancer, and returns its id.
    fn initialize(&self, token: (&str, &str)) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let opened = self.send("POST", &[token], &hello);
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let ready = self.send("POST", &[token, ("Mcp-Session-Id", &session)], &ready);
        assert_eq!(ready.status, 202, "{ready:?}");
        session
    }

    /// Opens a session at the first replica.
    fn initialize_at_first(&self, token: (&str, &str)) -> String {
        self.replica(0).initialize("/mcp", &[token]).0
    }

    fn list(&self, session: &str, token: (&str, &str)) -> u16 {
        let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
        self.send("POST", &[token, ("Mcp-Session-Id", session)], &list).status
    }

    /// Calls a tool as a modern client that can be asked.
    fn call(&self, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        });
        let name = params["name"].as_str().unwrap().to_owned();
        let headers = [
            ADA,
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", &name),
        ];
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.send("POST", &headers, &request).message()
    }

    /// The sum of a counter of all replicas.
    fn count(&self, metric: &str) -> u64 {
        let of_one = |served: &Served| {
            let metrics = served.send("GET", "/metrics", &[ADA], "").body;
            let line = metrics
                .lines()
                .find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok())
                .unwrap_or_else(|| panic!("no {metric} in {metrics}"))
        };
        self.served.iter().flatten().map(of_one).sum()
    }
}

/// Starts a balancer, and returns its address. A replica without an address gets nothing.
fn balance(targets: &Arc<Mutex<Vec<Target>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (targets, turn) = (targets.clone(), AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let targets = targets.lock().unwrap().clone();
            let next = (0..targets.len()).find_map(|_| {
                let target = &targets[turn.fetch_add(1, Ordering::Relaxed) % targets.len()];
                Some((TcpStream::connect(&target.address).ok()?, target.open.clone()))
            });
            let Some((server, open)) = next else { continue };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(from, to));
            open.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || {
                pass(server, client);
                open.fetch_sub(1, Ordering::Relaxed);
            });
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
        .era(Era::Legacy)
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(
            Tool::new("paint")
                .asks_for([Question::form("colour", "Which colour?", form)])
                .answers_text("painted"),
        )
}

/// How often a response has a header.
fn headers(response: &Response, name: &str) -> usize {
    let headers = response.head.lines().filter_map(|line| line.split_once(':'));
    headers.filter(|(key, _)| key.eq_ignore_ascii_case(name)).count()
}

/// The question of a call to a legacy client, and the rest of its stream.
fn question_in(stream: TcpStream) -> (Value, BufReader<TcpStream>) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the stream has ended");
        let data = line
            .strip_prefix("data:")
            .map(str::trim)
            .filter(|data| !data.is_empty());
        if let Some(message) = data.and_then(|data| serde_json::from_str::<Value>(data).ok())
            && message["method"] == "elicitation/create"
        {
            return (message["id"].clone(), lines);
        }
    }
}

#[test]
fn what_a_server_asks_during_a_call_of_a_session_is_answered_through_any_replica() {
    let (_folder, store) = folder();
    let redis = RedisServer::start();
    for store in [store, redis.address()] {
        asks_through_any_replica(&store);
    }
}

fn asks_through_any_replica(store: &str) {
    let cluster = Cluster::start(3, store, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    let headers = [ADA, ("Mcp-Session-Id", session.as_str())];
    for round in 0..3 {
        let params = json!({"name": "fx__paint", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 10 + round, "method": "tools/call", "params": params});
        let (id, mut stream) = question_in(cluster.open("POST", &headers, &call));
        let result = json!({"action": "accept", "content": {"colour": "green"}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(cluster.send("POST", &headers, &answer).status, 202);
        let mut rest = String::new();
        let _ = stream.read_to_string(&mut rest);
        assert!(rest.contains("painted") && rest.contains("green"), "{rest}");
    }
    let of_one = |home: &Home| home.log("fx").count("tools/call");
    let mut calls: Vec<usize> = cluster.homes.iter().map(of_one).collect();
    calls.sort_unstable();
    assert_eq!(calls, [0, 0, 3], "the session has one owner");
    assert!(cluster.count("pegboard_replica_requests_forwarded_total") > 0);
}

#[test]
fn a_call_that_waits_for_its_modern_client_is_continued_through_any_replica() {
    for more in ["stop_timeout = '200ms'", "approval = 'always'"] {
        let (_folder, store) = folder();
        let cluster = Cluster::start(2, &store, fx, more);
        let tool = if more.starts_with("approval") {
            "fx__read"
        } else {
            "fx__paint"
        };
        for _ in 0..2 {
            let asked = cluster.call(json!({"name": tool, "arguments": {}}));
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required", "{asked}");
            let requests = result["inputRequests"].as_object().unwrap();
            let content = |request: &Value| match request["params"]["requestedSchema"]["properties"].get("colour") {
                Some(_) => json!({"action": "accept", "content": {"colour": "green"}}),
                None => json!({"action": "accept", "content": {"allow": true}}),
            };
            let answers: Value = requests
                .iter()
                .map(|(key, request)| (key.clone(), content(request)))
                .collect();
            let answered = cluster.call(json!({
                "name": tool, "arguments": {}, "requestState": result["requestState"], "inputResponses": answers,
            }));
            let text = answered["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains("painted") || text == "read it", "{answered}");
        }
    }
}

#[test]
fn a_rate_holds_for_all_replicas_together() {
    let (_folder, store) = folder();
    let redis = RedisServer::start();
    for store in [store, redis.address()] {
        let cluster = Cluster::start(3, &store, fx, "rate = '7/h'");
        let mut outcomes = (0, 0);
        for _ in 0..20 {
            let called = cluster.call(json!({"name": "fx__read", "arguments": {}}));
            let refused = called["error"]["message"].as_str().unwrap_or_default();
            if called["result"]["content"][0]["text"] == "read it" {
                outcomes.0 += 1;
            } else if refused.contains("the limit of 7 calls") {
                assert_eq!(called["error"]["data"]["may_have_executed"], false, "{called}");
                outcomes.1 += 1;
            } else {
                panic!("{called}");
            }
        }
        assert_eq!(outcomes, (7, 13), "{store}");
    }
}

#[test]
fn a_session_that_was_ended_at_one_replica_is_ended_at_all() {
    let (_folder, store) = folder();
    let cluster = Cluster::start(3, &store, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    for _ in 0..3 {
        let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
        let listed = cluster.send("POST", &[ADA, ("Mcp-Session-Id", session.as_str())], &list);
        assert_eq!(listed.status, 200);
        // One of each, whichever replica answers.
        assert_eq!(headers(&listed, "date"), 1, "{listed:?}");
        assert_eq!(
            headers(&listed, "content-length") + headers(&listed, "transfer-encoding"),
            1,
            "{listed:?}"
        );
        assert_eq!(cluster.list(&session, BOB), 404, "it is not bob's");
    }
    assert_eq!(cluster.count("pegboard_http_sessions_open"), 1, "it is at one replica");
    let end = || {
        cluster
            .send("DELETE", &[ADA, ("Mcp-Session-Id", &session)], &Value::Null)
            .status
    };
    assert_eq!(end(), 204);
    for _ in 0..3 {
        assert_eq!((cluster.list(&session, ADA), end()), (404, 404));
    }
}

#[test]
fn a_session_of_a_replica_that_was_killed_goes_on_at_one_other() {
    let (_folder, store) = folder();
    let mut cluster = Cluster::start(3, &store, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    let has_it = |cluster: &Cluster, index: usize| {
        let metrics = cluster.replica(index).send("GET", "/metrics", &[ADA], "").body;
        metrics.contains("pegboard_http_sessions_open 1\n")
    };
    for _ in 0..2 {
        let owner = (0..3).find(|index| has_it(&cluster, *index)).unwrap();
        cluster.kill(owner);
        for _ in 0..4 {
            assert_eq!(cluster.list(&session, ADA), 200);
        }
        assert_eq!(cluster.count("pegboard_http_sessions_open"), 1, "one other has it");
        cluster.restart(owner);
        assert_eq!(cluster.list(&session, ADA), 200);
    }
    let ended = cluster.send("DELETE", &[ADA, ("Mcp-Session-Id", &session)], &Value::Null);
    assert_eq!(ended.status, 204);
}

#[test]
fn a_replica_that_hangs_holds_up_nobody_for_long_and_loses_its_sessions() {
    let (_folder, store) = folder();
    let cluster = Cluster::start(2, &store, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    let has_it = |index: usize| {
        let metrics = cluster.replica(index).send("GET", "/metrics", &[ADA], "").body;
        metrics.contains("pegboard_http_sessions_open 1\n")
    };
    let (owner, other) = if has_it(0) { (0, 1) } else { (1, 0) };
    cluster.replica(owner).signal("STOP");
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    let ask = || {
        cluster
            .replica(other)
            .post("/mcp", &[ADA, ("Mcp-Session-Id", &session)], &list)
    };
    let params = json!({"name": "fx__read", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params}).to_string();
    let told = cluster
        .replica(other)
        .post("/mcp", &[ADA, ("Mcp-Session-Id", &session)], &call);
    let may_have_run = told.message()["error"]["data"]["may_have_executed"].clone();
    assert_eq!((told.status, may_have_run), (200, true.into()), "{told:?}");
    until("the other one has taken it over", || {
        ask().message()["result"]["tools"].is_array()
    });
    cluster.replica(owner).signal("CONT");
    assert!(ask().message()["result"]["tools"].is_array(), "it stays there");
    // The one that was late notices that it lost the session.
    until("the session has one owner again", || {
        let late = cluster
            .replica(owner)
            .post("/mcp", &[ADA, ("Mcp-Session-Id", &session)], &list);
        late.message()["result"]["tools"].is_array() && !has_it(owner)
    });
    assert!(has_it(other));
}

#[test]
fn a_replica_whose_store_is_gone_serves_what_needs_none_and_refuses_the_rest() {
    let (folder, store) = folder();
    let cluster = Cluster::start(2, &store, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    let away = folder.path().with_extension("away");
    std::fs::rename(folder.path(), &away).unwrap();
    std::fs::write(folder.path(), "no folder").unwrap();
    // Longer than a replica may be late.
    until("it has failed for long", || {
        cluster.count("pegboard_store_failures_total") > 12
    });
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let listed = [(); 2].map(|()| {
        cluster
            .send("POST", &[ADA, ("Mcp-Session-Id", &session)], &list)
            .message()
    });
    let (listed, refused): (Vec<_>, Vec<_>) = listed.iter().partition(|message| message["result"]["tools"].is_array());
    assert_eq!((listed.len(), refused.len()), (1, 1), "{listed:?} {refused:?}");
    assert_eq!(refused[0]["error"]["data"]["may_have_executed"], false, "{refused:?}");
    let called = cluster.call(json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(called["result"]["content"][0]["text"], "read it", "{called}");
    until("it is told", || {
        cluster
            .served
            .iter()
            .flatten()
            .all(|served| served.err().contains("does not answer"))
    });
    std::fs::remove_file(folder.path()).unwrap();
    std::fs::rename(&away, folder.path()).unwrap();
    until("it has healed", || {
        cluster
            .served
            .iter()
            .flatten()
            .all(|served| served.err().contains("answers again"))
    });
    for _ in 0..4 {
        assert_eq!(cluster.list(&session, ADA), 200);
    }
}

/// What it says has no room in a header of every request.
#[test]
fn a_client_that_says_much_about_itself_reaches_all_replicas() {
    let (_folder, store) = folder();
    let mut cluster = Cluster::start(3, &store, fx, "stop_timeout = '200ms'");
    let icon = format!("data:image/png;base64,{}", "A".repeat(6000));
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1", "icons": [{"src": icon}]},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let session = cluster
        .send("POST", &[ADA], &hello)
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    assert_eq!(session.len(), 32);
    for _ in 0..3 {
        assert_eq!((cluster.list(&session, ADA), cluster.list(&session, BOB)), (200, 404));
    }
    (0..2).for_each(|index| cluster.kill(index));
    assert_eq!((cluster.list(&session, ADA), cluster.list(&session, BOB)), (200, 404));
}

/// A proxy between replicas answers for one that works on the request.
#[test]
fn a_call_is_not_made_again_when_something_else_answers_for_a_replica() {
    let (_folder, store) = folder();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(client);
            let _ = lines.read_line(&mut String::new());
            let _ = io::Write::write_all(
                lines.get_mut(),
                b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n",
            );
        }
    });
    let replicas = || format!("{{ listen = '127.0.0.1:0', address = '{address}' }}");
    let cluster = Cluster::start_with(2, &store, replicas, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize_at_first(ADA);
    let params = json!({"name": "fx__read", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).to_string();
    let lost = cluster
        .replica(1)
        .post("/mcp", &[ADA, ("Mcp-Session-Id", &session)], &call);
    assert_eq!(lost.message()["error"]["data"]["may_have_executed"], true, "{lost:?}");
    assert_eq!(cluster.homes[1].log("fx").count("tools/call"), 0);
}

#[test]
fn a_replica_is_reached_at_the_address_that_it_names() {
    let (_folder, store) = folder();
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let replicas = || {
        let port = port();
        format!("{{ listen = '0.0.0.0:{port}', address = 'localhost:{port}' }}")
    };
    let cluster = Cluster::start_with(2, &store, replicas, fx, "stop_timeout = '200ms'");
    let session = cluster.initialize(ADA);
    for _ in 0..4 {
        assert_eq!(cluster.list(&session, ADA), 200);
    }
    assert!(cluster.count("pegboard_replica_requests_forwarded_total") > 0);
}

#[test]
fn the_listener_for_replicas_tells_others_nothing() {
    let (_folder, store) = folder();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let replicas = || format!("{{ listen = '127.0.0.1:{port}' }}");
    let cluster = Cluster::start_with(1, &store, replicas, fx, "stop_timeout = '200ms'");
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    for (method, path) in [
        ("POST", "/mcp"),
        ("POST", "/forward"),
        ("GET", "/livez"),
        ("GET", "/metrics"),
        ("GET", "/"),
        ("GET", "/signin"),
        ("DELETE", "/forward"),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(30)))
            .unwrap();
        let body = if method == "POST" { list.as_str() } else { "" };
        cluster.replica(0).write_as(method, &mut stream, path, &[ADA], body);
        let response = Response::read(stream);
        assert_eq!(response.status, 404, "{method} {path}: {response:?}");
        assert!(response.body.contains("for the replicas"), "{response:?}");
    }
}

/// The background process that they start is for one user, and takes neither the port nor the store.
#[test]
fn commands_of_a_user_do_not_join_the_replicas() {
    let (home, listener) = (Home::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let taken = listener.local_addr().unwrap();
    home.config(&format!(
        "[serve]\nstate_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='\nstore = 'file:/proc/none'\nreplicas = {{ listen = '{taken}' }}\n{}",
        home.entry("fx", fx(), "")
    ));
    home.run(&["call", "fx.read"]).ends_with(0).prints("read it");
}

#[test]
fn settings_of_replicas_that_cannot_work_are_refused_with_what_to_do() {
    let home = Home::new();
    let key = "state_key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8='";
    let token = "[serve.tokens.ada]\nsha256 = '0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c'";
    let folder = tempfile::tempdir().unwrap();
    let store = format!("store = 'file:{}'", folder.path().join("store").display());
    let rows = [
        (format!("{store}\n"), "needs `serve.state_key`", "openssl rand"),
        (
            "replicas = { listen = '127.0.0.1:0' }\n".to_owned(),
            "needs a store",
            "serve.store",
        ),
        (
            format!("{key}\n{store}\nreplicas = {{ listen = '0.0.0.0:0' }}\n{token}\n"),
            "cannot connect",
            "serve.replicas.address",
        ),
        (
            format!("{key}\n{store}\nreplicas = {{ listen = '127.0.0.1:0' }}\n"),
            "need tokens",
            "pegboard token new",
        ),
        (
            format!("{key}\nstore = 'postgres://a'\n"),
            "must be the address of a store",
            "redis://",
        ),
        (
            format!("{key}\nstore = 'file:/proc/none'\nreplicas = {{ listen = '127.0.0.1:0' }}\n{token}\n"),
            "/proc/none",
            "serve.store",
        ),
    ];
    for (settings, message, hint) in rows {
        home.config(&format!("[serve]\n{settings}"));
        let ran = home.run(&["serve", "--listen", "0", "--no-socket"]);
        assert!(
            ran.err.contains(message) && ran.err.contains(hint),
            "{settings}: {}",
            ran.err
        );
        assert!(ran.code != Some(0), "{settings}");
    }
}
