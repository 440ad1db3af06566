//! Replicas that are killed and started again one after the other, and their store with them, while clients of both eras call through the balancer.
//! Every call has a number, and the logs of the servers tell how often each was made.

use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    ADA, BOB, Cluster,
    store::{RedisServer, folder},
};

/// How many clients of each era there are.
const CLIENTS: usize = 12;

/// How often a replica is killed.
const KILLS: usize = 6;

/// What a client was told of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Told {
    Done,
    /// It did not run.
    NotRun,
    MayHaveRun,
}

struct Client<'a> {
    address: &'a str,
    token: (&'static str, &'static str),
    session: Option<String>,
}

impl Client<'_> {
    /// Sends a message on a connection of its own. `None` if the connection broke off.
    fn post(&self, message: &Value, modern: bool) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        let body = message.to_string();
        let (name, value) = self.token;
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{name}: {value}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if modern {
            let method = message["method"].as_str().unwrap();
            let tool = message["params"]["name"].as_str().unwrap();
            head += &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {tool}\r\n");
        }
        if let Some(session) = &self.session {
            head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let status = text.split(' ').nth(1)?.parse().ok()?;
        Some((status, text))
    }

    /// Shakes hands, however often the replica is killed meanwhile.
    fn initialize(&mut self) {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        loop {
            if let Some((200, text)) = self.post(&hello, false) {
                let id = text.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("mcp-session-id")
                        .then(|| value.trim().to_owned())
                });
                self.session = Some(id.unwrap());
                return;
            }
        }
    }

    fn call(&self, number: usize) -> Told {
        let mut params = json!({"name": "fx__count", "arguments": {"number": number}});
        let modern = self.session.is_none();
        if modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let call = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        match self.post(&call, modern) {
            // The balancer closed the connection, or the replica died with it.
            None => Told::MayHaveRun,
            Some((status, text)) => {
                assert!(status != 404 && status != 401, "a session is lost: {text}");
                told(status, &text)
            }
        }
    }
}

fn told(status: u16, text: &str) -> Told {
    let may_have_run = text.contains("\"may_have_executed\":true") || text.contains("may_have_executed\":true");
    let is_answer = text.contains("\"result\"") && !text.contains("\"isError\":true");
    match status {
        200 if is_answer => Told::Done,
        _ if may_have_run => Told::MayHaveRun,
        // A stream that broke off before its result.
        200 if !text.contains("\"error\"") && !text.contains("\"isError\":true") => Told::MayHaveRun,
        _ => Told::NotRun,
    }
}

/// Kills and starts replicas, and every third time the store, while clients call.
fn under_fire(store: &str, mut kill_store: impl FnMut()) {
    let fake = || {
        FakeServer::new("fx")
            .tool(Tool::new("count").answers_text("counted"))
            .tool(Tool::new("read"))
    };
    let mut cluster = Cluster::start(3, store, fake, "stop_timeout = '200ms'");
    let (address, numbers, is_over) = (cluster.address.clone(), AtomicUsize::new(1), AtomicBool::new(false));
    let clients: Vec<_> = (0..2 * CLIENTS)
        .map(|index| (index % 2 == 0, [ADA, BOB][index % 3 % 2]))
        .collect();
    let told: Vec<(usize, Told)> = std::thread::scope(|scope| {
        let calling: Vec<_> = clients
            .into_iter()
            .map(|(is_legacy, token)| {
                let (address, numbers, is_over) = (&address, &numbers, &is_over);
                scope.spawn(move || {
                    let mut client = Client {
                        address,
                        token,
                        session: None,
                    };
                    if is_legacy {
                        client.initialize();
                    }
                    let mut told = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        let number = numbers.fetch_add(1, Ordering::Relaxed);
                        told.push((number, client.call(number)));
                    }
                    told
                })
            })
            .collect();
        for kill in 0..KILLS {
            let before = numbers.load(Ordering::Relaxed);
            // Some calls with all three replicas, then with two.
            crate::home::until("calls are made", || numbers.load(Ordering::Relaxed) > before + 60);
            cluster.kill(kill % 3);
            if kill % 3 == 2 {
                kill_store();
            }
            let before = numbers.load(Ordering::Relaxed);
            crate::home::until("calls are made", || numbers.load(Ordering::Relaxed) > before + 60);
            cluster.restart(kill % 3);
        }
        is_over.store(true, Ordering::Relaxed);
        calling
            .into_iter()
            .flat_map(|calling| calling.join().unwrap())
            .collect()
    });
    let mut made: HashMap<usize, usize> = HashMap::new();
    for received in cluster.homes.iter().flat_map(|home| home.log("fx").requests) {
        if received.method == "tools/call" {
            let number = received.params["arguments"]["number"].as_u64().unwrap();
            *made.entry(usize::try_from(number).unwrap()).or_default() += 1;
        }
    }
    let count = |wanted: Told| told.iter().filter(|(_, told)| *told == wanted).count();
    for (number, told) in &told {
        let times = made.get(number).copied().unwrap_or_default();
        let is_true = match told {
            Told::Done => times == 1,
            Told::NotRun => times == 0,
            Told::MayHaveRun => times <= 1,
        };
        assert!(is_true, "call {number} was made {times} times and told as {told:?}");
    }
    let counts = [count(Told::Done), count(Told::NotRun), count(Told::MayHaveRun)];
    // What is in flight at a replica when it is killed is lost: at most one call of each client.
    assert!(counts[2] <= KILLS * 2 * CLIENTS, "{counts:?}");
    assert!(counts[0] > KILLS * 60, "{counts:?}");
    (0..3).for_each(|index| cluster.kill(index));
    cluster.homes.iter().for_each(|home| home.assert_gone("fx"));
}

#[test]
fn no_call_is_doubled_or_told_wrongly_while_replicas_and_their_redis_are_killed() {
    let mut redis = RedisServer::start();
    let address = redis.address();
    under_fire(&address, || redis.restart());
}

#[test]
fn no_call_is_doubled_or_told_wrongly_while_replicas_of_a_folder_are_killed() {
    let (_folder, store) = folder();
    under_fire(&store, || ());
}
