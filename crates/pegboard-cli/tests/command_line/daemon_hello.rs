//! What a command does with a daemon that says it is another version.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixListener,
    path::PathBuf,
    thread,
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use super::{
    daemon_ends::{get, socket},
    gateway::Served,
    home::Home,
    mcp::Mcp,
};

/// A home with the server `fx`, the socket of its daemon, which was killed, and the response in which that daemon said who it was.
fn killed() -> (Home, PathBuf, String) {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let socket = socket(&home);
    let hello = get(&socket, "/local/hello");
    served.signal("KILL");
    served.code();
    fs::remove_file(&socket).unwrap();
    (home, socket, hello)
}

/// Answers every request at a socket with this response, until the test ends.
fn answers(socket: &PathBuf, response: String) {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(response.as_bytes());
        }
    });
}

/// Nobody may guess whether two versions mean the same, so the command does its work itself and says so.
#[test]
fn a_daemon_of_another_version_is_named_and_not_used() {
    let (home, socket, hello) = killed();
    let version = env!("CARGO_PKG_VERSION");
    let other = "9".repeat(version.len());
    let response = hello.replace(&format!("{version:?}"), &format!("{other:?}"));
    assert_ne!(response, hello);
    answers(&socket, response);
    let note = format!("is version {other} and this program is {version}, so the servers are started without it");
    let ran = home.run(&["call", "fx.read"]);
    assert_eq!(ran.ends_with(0).says(&note).says("(process ").out, "read it\n");
    home.run(&["status"]).ends_with(0).says(&note).prints("fx");
    home.run(&["tools"]).ends_with(0).says(&note).prints("fx.read");
    let quiet = home.run(&["call", "fx.read", "-q"]);
    assert_eq!((quiet.ends_with(0).out.as_str(), quiet.err.as_str()), ("read it\n", ""));
    // A host does not start a second daemon beside it.
    let (mut mcp, _) = Mcp::start(&home, &["--daemon"]);
    mcp.ready();
    let message = mcp.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(message["result"]["content"][0]["text"], "read it", "{message}");
    drop(mcp);
    home.assert_gone("fx");
}

#[test]
fn a_version_that_says_nothing_else_is_still_named() {
    let (home, socket, _) = killed();
    let body = json!({"version": "99.0.0", "language": "klingon"}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    answers(&socket, format!("{head}\r\nconnection: close\r\n\r\n{body}"));
    home.run(&["call", "fx.read"])
        .ends_with(0)
        .says("is version 99.0.0 and");
}
