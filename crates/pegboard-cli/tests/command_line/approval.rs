//! `pegboard call` of tools that need approval or are denied.

use std::process::{Command, Stdio};

use pegboard_testkit::{FakeServer, Tool};

use super::home::{Home, Ran};

fn home() -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").read_only())
        .tool(Tool::new("wipe").description("Wipes.\x1b[2J"))
        .tool(Tool::new("secret"));
    let more = "trust = true\napproval = 'writes'\ndeny = ['secret']\n";
    home.config(&home.entry("fx", fake, more));
    home
}

#[test]
fn without_a_terminal_a_call_that_needs_agreement_is_refused() {
    let home = home();
    let ran = home.run(&["call", "fx.wipe"]);
    ran.ends_with(5)
        .says("error: the call of `fx.wipe` was not approved")
        .says("`--yes` agrees");
    assert_eq!(ran.out, "");
    let json = home.run(&["call", "fx.wipe", "-o", "json"]).ends_with(5).json();
    assert_eq!(
        (&json["status"], &json["outcome"]["kind"]),
        (&"refused".into(), &"not_permitted".into())
    );
    assert_eq!(home.log("fx").count("tools/call"), 0);
    assert_eq!(home.run(&["call", "fx.read"]).ends_with(0).out, "ok\n");
}

#[test]
fn yes_on_the_command_line_is_agreement_but_not_to_what_is_hidden() {
    let home = home();
    assert_eq!(home.run(&["call", "fx.wipe", "--yes"]).ends_with(0).out, "ok\n");
    let ran = home.run(&["call", "fx.secret", "--yes"]);
    ran.ends_with(5)
        .says("error: tool `fx.secret` may not be used: the config hides it. Available tools of server `fx`: read, wipe.\nhint: ");
}

/// Uses `script` for a terminal, where it is installed.
#[test]
fn at_a_terminal_the_person_is_asked() {
    if Command::new("script").arg("--version").output().is_err() {
        return;
    }
    for (answer, code, words) in [
        ("y", 0, "ok"),
        ("n", 5, "you did not say yes"),
        ("", 5, "you did not say yes"),
    ] {
        let home = home();
        let ran = at_terminal(&home, "call fx.wipe a=1", answer);
        ran.ends_with(code)
            .prints("fx.wipe with {\"a\":1}")
            .prints("  Wipes.[2J")
            .prints("Its risk is high. Call it? [y/N] ")
            .prints(words);
        assert_eq!(home.log("fx").count("tools/call"), usize::from(code == 0));
    }
}

/// Runs the program on a pseudo-terminal and types one line. All output is in `out`.
fn at_terminal(home: &Home, args: &str, line: &str) -> Ran {
    let program = home.pegboard(&[]).get_program().to_string_lossy().into_owned();
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("{program} {args}"), "/dev/null"])
        .current_dir(home.path("."))
        .env_clear()
        .env("CI", "1")
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path("."))
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::new(),
    }
}
