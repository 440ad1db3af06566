//! The servers in the newcomer's Claude: one that works, one with a name of its own kind, one that is slow, one that is broken, and one to
//! sign in to.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use crate::newcomer::home::Home;

/// The entries of Claude's config file.
pub(crate) fn entries(home: &Home, remote: &str) -> Value {
    let add = Tool::new("add")
        .description("Add a note")
        .schema(json!({"type": "object", "properties": {"text": {"type": "string", "description": "The note"}}, "required": ["text"]}));
    let notes = FakeServer::new("notes").tool(add.echoes());
    let core =
        FakeServer::new("core").tool(Tool::new("prompt_understanding").description("Explain how to plan a solution"));
    let slow = FakeServer::new("slow")
        .tool(Tool::new("report").description("Write the report of the month"))
        .fault(Fault::SlowStart { ms: 1500 });
    json!({"mcpServers": {
        "notes": stdio(home, "notes", &notes),
        "awslabs.core-mcp-server": stdio(home, "core", &core),
        "slow": stdio(home, "slow", &slow),
        "broken": {"command": "no-such-program", "args": ["--stdio"]},
        "tracker": {"type": "http", "url": remote},
    }})
}

pub(crate) fn stdio(home: &Home, name: &str, fake: &FakeServer) -> Value {
    let (program, args) = fake.command_with_file(&home.path(&format!("{name}.json"))).unwrap();
    // A short name, the same on every machine: the screens show it.
    let link = home.path("mcp-server");
    if !link.exists() {
        std::os::unix::fs::symlink(program, &link).unwrap();
    }
    json!({"command": link, "args": args})
}

/// A server that refuses everybody who has not signed in. It lives as long as the test.
#[derive(Debug)]
pub(crate) struct SignIn {
    pub(crate) url: String,
}

impl SignIn {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{origin}/mcp");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let origin = origin.clone();
                // A client that leaves early is no fault of the server.
                thread::spawn(move || drop(answer(stream, &origin)));
            }
        });
        Self { url }
    }
}

/// Answers one request, and closes the connection.
fn answer(mut stream: TcpStream, origin: &str) -> std::io::Result<()> {
    let mut request = BufReader::new(stream.try_clone()?);
    let (mut line, mut header, mut length) = (String::new(), String::new(), 0);
    request.read_line(&mut line)?;
    while request.read_line(&mut header)? > 2 {
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        header.clear();
    }
    std::io::copy(&mut std::io::Read::take(request, length), &mut std::io::sink())?;
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let (status, challenge, body) = if line.contains("/.well-known/oauth-protected-resource") {
        let body = json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]});
        ("200 OK", String::new(), body.to_string())
    } else if line.contains("/mcp") {
        let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
        ("401 Unauthorized", challenge, String::new())
    } else {
        ("404 Not Found", String::new(), String::new())
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{challenge}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
