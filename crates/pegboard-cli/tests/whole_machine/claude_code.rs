//! Claude Code, as its npm package has it, checks a `pegboard mcp` with servers that are slow or dead. `scripts/peers` installs it.

use std::{path::Path, process::Command};

use pegboard_testkit::{FakeServer, Fault, Tool};

use crate::{
    gateway::Served,
    home::{Home, Ran},
};

/// The program of the package. It is run as it is: the package's own script would only link it.
fn program() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("target/peers/npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude");
    assert!(path.exists(), "run scripts/peers first");
    path.display().to_string()
}

fn claude(home: &Home, args: &[&str]) -> String {
    run(&home.path(""), args)
}

/// Runs a command of Claude Code in a home folder. It neither reports nor updates anything.
pub(crate) fn run(home: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program());
    command
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let ran = Ran::of(command);
    ran.ends_with(0);
    ran.out
}

/// A home with a server that works, one that needs 15 seconds and one that is dead, and with Claude Code set up for them.
fn home() -> Home {
    let home = Home::new();
    let fast = FakeServer::new("fast").tool(Tool::new("now"));
    let slow = FakeServer::new("slow").tool(Tool::new("late"));
    let dead = Fault::ExitsAtStart {
        code: 1,
        stderr: "no licence".to_owned(),
    };
    home.config(&format!(
        "{}\n{}\n{}",
        home.entry("fast", fast, ""),
        home.entry("slow", slow.fault(Fault::SlowStart { ms: 15_000 }), ""),
        home.entry("dead", FakeServer::new("dead").fault(dead), ""),
    ));
    let pegboard = env!("CARGO_BIN_EXE_pegboard");
    for (name, options) in ENTRIES {
        let words = ["mcp", "add", "--scope", "user", name, "--", pegboard, "mcp"];
        claude(&home, &[&words, options].concat());
    }
    home
}

/// What Claude Code starts: `pegboard mcp` with these options.
const ENTRIES: [(&str, &[&str]); 3] = [
    ("all", &[]),
    ("slow-one", &["--server", "slow"]),
    ("through-the-daemon", &["--daemon", "--idle", "2s"]),
];

#[test]
fn claude_code_connects_although_one_server_needs_15_seconds_and_one_is_dead() {
    let home = home();
    let check = |run: &str| {
        let checked = claude(&home, &["mcp", "list"]);
        for (name, _) in ENTRIES {
            let line = checked.lines().find(|line| line.starts_with(&format!("{name}:")));
            assert!(
                line.is_some_and(|line| line.ends_with("✔ Connected")),
                "{run}: {name}: {checked}"
            );
        }
    };
    check("nothing is known of the servers");
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("slow__late");
    drop(served);
    check("an earlier run has seen the slow server");
}
