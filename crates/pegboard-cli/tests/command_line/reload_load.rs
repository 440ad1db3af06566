//! Reloads under load: no call is lost while the config changes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

const CLIENTS: usize = 64;
const RELOADS: usize = 8;

/// A modern call of `fx__read`.
fn request(host: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "fx__read", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: fx__read\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One connection of a client.
struct Client {
    stream: BufReader<TcpStream>,
    request: String,
}

impl Client {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self {
            stream: BufReader::new(stream),
            request: request(address),
        }
    }

    fn call(&mut self) -> Result<(), String> {
        let told = |error: std::io::Error| error.to_string();
        self.stream.get_mut().write_all(self.request.as_bytes()).map_err(told)?;
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).map_err(told)?;
            if line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(told)?;
        let text = String::from_utf8_lossy(&body).into_owned();
        let message: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {head}{text}"))?;
        match message["result"]["content"][0]["text"] == "read it" {
            true => Ok(()),
            false => Err(format!("{head}{text}")),
        }
    }
}

#[test]
fn reloads_under_load_lose_no_call() {
    let home = Home::new();
    let fx = FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let fx = home.entry("fx", fx, "required = true\nstop_timeout = '200ms'");
    let other = FakeServer::new("other").tool(Tool::new("write"));
    let other = home.entry("other", other, "stop_timeout = '200ms'");
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let lost: Vec<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::connect(&served.address);
                    while !is_over.load(Ordering::Relaxed) {
                        client.call()?;
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok::<(), String>(())
                })
            })
            .collect();
        for round in 0..RELOADS {
            // Another server comes and goes, settings of the busy one change, and some files are broken.
            let begun = answered.load(Ordering::Relaxed);
            let has_other = round % 2 == 0;
            match has_other {
                true => home.config(&format!("{fx}call_timeout = '{}s'\n{other}", 60 + round)),
                false => home.config(&fx),
            };
            served.signal("HUP");
            until("the reload is applied", || {
                served.tools("/mcp", &[]).contains(&"other__write".to_owned()) == has_other
            });
            home.config("[servers.fx\n");
            served.signal("HUP");
            until("calls go on", || {
                answered.load(Ordering::Relaxed) > begun + CLIENTS || clients.iter().any(|one| one.is_finished())
            });
        }
        is_over.store(true, Ordering::Relaxed);
        let ended = clients.into_iter().map(|client| client.join().unwrap());
        ended.filter_map(Result::err).collect()
    });
    assert_eq!(lost, Vec::<String>::new(), "{}", served.err());
    assert!(answered.load(Ordering::Relaxed) > RELOADS * CLIENTS);
}
