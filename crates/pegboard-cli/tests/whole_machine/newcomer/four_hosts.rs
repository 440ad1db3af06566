//! The servers of a newcomer with four hosts: in Claude Code, Cursor, VS Code and Claude Desktop. One is slow, one is dead, one needs a sign-in,
//! and one lacks a key.

use std::{fs, path::Path};

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    home::Home,
    servers::{SignIn, stdio},
};

/// The tools that a host has once every server runs that can, as Claude Code is offered them.
pub(crate) const HEALTHY: [&str; 3] = ["notes__add", "core__plan", "slow__report"];

/// Writes the config files of the hosts. Returns the server to sign in to, which lives as long as the test.
pub(crate) fn write(home: &Home<'_>) -> SignIn {
    let tracker = SignIn::start();
    let fake = |name: &str, tool: &str| stdio(home, name, &FakeServer::new(name).tool(Tool::new(tool)));
    let notes = fake("notes", "add");
    let slow = FakeServer::new("slow")
        .tool(Tool::new("report"))
        .fault(Fault::SlowStart { ms: 15_000 });
    let mut keyed = fake("keyed", "search");
    keyed["env"] = json!({"SEARCH_API_KEY": "${env:SEARCH_API_KEY}"});
    let files = [
        (
            ".claude.json",
            json!({"mcpServers": {"notes": notes, "slow": stdio(home, "slow", &slow)}}),
        ),
        (
            ".cursor/mcp.json",
            json!({"mcpServers": {"notes": notes, "broken": {"command": "no-such-program"}, "keyed": keyed}}),
        ),
        (
            ".config/Code/User/mcp.json",
            json!({"servers": {"tracker": {"type": "http", "url": tracker.url}}}),
        ),
        (
            ".config/Claude/claude_desktop_config.json",
            json!({"mcpServers": {"core": fake("core", "plan")}}),
        ),
    ];
    for (file, servers) in files {
        write_file(&home.path(file), &servers);
    }
    tracker
}

fn write_file(path: &Path, servers: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{servers:#}\n")).unwrap();
}
