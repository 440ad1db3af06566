//! A server whose state is a running browser: it keeps its page from one command to the next, through the daemon. `scripts/peers` installs
//! both.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
};

use super::{
    gateway::Served,
    home::{Home, until},
};

/// Where Debian installs the browser.
const BROWSER: &str = "/usr/bin/chromium";

/// A home with the browser's server.
fn home() -> Home {
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/npm");
    assert!(peers.join(".stamp").exists(), "run scripts/peers first");
    let packages = peers.join("node_modules");
    let args = [
        packages.join("@playwright/mcp/cli.js").display().to_string(),
        "--headless".to_owned(),
        "--isolated".to_owned(),
        "--no-sandbox".to_owned(),
        format!("--executable-path={BROWSER}"),
    ];
    let home = Home::new();
    let node = packages.join(".bin/node");
    home.config(&format!(
        "[servers.playwright]\ncommand = {node:?}\nargs = {args:?}\nera = 'legacy'\n"
    ));
    home
}

/// Serves one page to everyone who connects, until the test ends.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let body = "<title>Trees</title><h1>Oak and elm</h1>";
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_browser_keeps_its_page_between_two_commands_through_the_daemon() {
    if !Path::new(BROWSER).exists() {
        eprintln!("not tried: there is no {BROWSER}; scripts/peers installs it if it may");
        return;
    }
    let (home, url) = (home(), page());
    let go = format!("url={url}");
    let go = ["call", "playwright.browser_navigate", &go, "--timeout", "60s"];
    let look = ["call", "playwright.browser_snapshot", "--timeout", "60s"];
    let alone = home.run(&go);
    alone.ends_with(0).prints("Trees");
    let alone = home.run(&look);
    assert!(
        !alone.out.contains("Oak and elm"),
        "a new browser has no page: {alone:?}"
    );

    let served = Served::start(&home, &[]);
    until("the server is listed", || {
        let tools = served.tools("/mcp", &[]);
        tools.iter().any(|tool| tool == "playwright__browser_snapshot")
    });
    home.run(&go).ends_with(0).prints("Trees");
    home.run(&look).ends_with(0).prints("Oak and elm");
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
}
