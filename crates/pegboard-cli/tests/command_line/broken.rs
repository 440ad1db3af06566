//! Servers that do not work: the error, its hint, the exit code, and no process left behind.

use std::time::Duration;

use pegboard_testkit::{FakeServer, Fault, Tool};
use tokio::time::Instant;

use super::home::Home;

fn fake() -> FakeServer {
    // Only a signal ends this server, so that a leaked process is noticed.
    FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("fine"))
        .fault(Fault::OutlivesParent)
        .fault(Fault::IgnoresEof)
}

/// A setting that keeps tests short.
const QUICK: &str = "stop_timeout = '200ms'";
/// Settings for servers that do not answer.
const SILENT: &str = "connect_timeout = '4s'\nstop_timeout = '200ms'\nera_silence = '300ms'";

#[test]
fn a_missing_program_is_named() {
    let ran = Home::new().run(&["tools", "--server=x=no-such-program --flag"]);
    ran.ends_with(3)
        .says("error: server `x` is down: `no-such-program` was not found")
        .says("\nhint: install");
    let ran = Home::new().run(&["call", "x.t", "--server=x=no-such-program --flag"]);
    ran.ends_with(3)
        .says("error: server `x` is down: `no-such-program` was not found")
        .says("\nhint: install");
    let ran = Home::new().run(&["call", "x__t", "-o", "json", "--server=x=no-such-program --flag"]);
    let json = ran.ends_with(3).json();
    assert_eq!(
        (&json["server"], &json["tool"], &json["name"]),
        (&"x".into(), &"t".into(), &"x.t".into())
    );
}

#[test]
fn servers_that_do_not_come_up_are_told_and_ended() {
    for (fault, code, words) in [
        (
            Fault::ExitsAtStart {
                code: 7,
                stderr: "no database\n".into(),
            },
            3,
            "no database",
        ),
        (
            Fault::ExitsAtHandshake {
                code: 7,
                stderr: "bad token\n".into(),
            },
            3,
            "bad token",
        ),
        (Fault::SilentHandshake, 3, "error: server `fx`"),
        (
            Fault::Prompts {
                text: "Install? [y/N] ".into(),
            },
            3,
            "error: server `fx`",
        ),
        (
            Fault::ForksAndExits {
                pid_file: "/dev/null".into(),
                keeps_stdout: false,
            },
            3,
            "error: server `fx`",
        ),
    ] {
        let home = Home::new();
        home.config(&home.entry("fx", fake().fault(fault.clone()), SILENT));
        let began = Instant::now();
        let ran = home.run(&["tools"]);
        ran.ends_with(code).says(words);
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{fault:?}: {:?}",
            began.elapsed()
        );
        assert_eq!(ran.out, "");
        home.assert_gone("fx");
        let json = home.run(&["tools", "-o", "json"]).ends_with(code).json();
        assert_eq!(json["unavailable"][0]["server"], "fx", "{json}");
        home.assert_gone("fx");
    }
}

#[test]
fn a_program_that_only_makes_noise_is_told_and_ended() {
    let home = Home::new();
    let command = "/bin/sh -c 'while :; do echo this is no JSON; sleep 0.05; done'";
    home.config(&format!(
        "[servers.x]\ncommand = '/bin/sh'\nargs = ['-c', {:?}]\n{SILENT}\n",
        &command[11..].trim_matches('\'')
    ));
    home.run(&["tools"])
        .ends_with(3)
        .says("error: server `x`")
        .says("hint: ");
}

#[test]
fn one_bad_server_of_three_does_not_hide_the_others() {
    let home = Home::new();
    let bad = fake().fault(Fault::ExitsAtStart {
        code: 1,
        stderr: "no database".into(),
    });
    let entries = [("a", fake()), ("b", bad), ("c", fake())].map(|(name, fake)| home.entry(name, fake, QUICK));
    home.config(&entries.concat());
    let ran = home.run(&["tools"]);
    ran.ends_with(0)
        .prints("a.t")
        .prints("c.t")
        .says("error: server `b` is down");
    let json = home.run(&["tools", "-o", "json"]).ends_with(0).json();
    assert_eq!(
        (
            json["tools"].as_array().unwrap().len(),
            &json["unavailable"][0]["server"]
        ),
        (2, &"b".into())
    );
    assert_eq!(home.run(&["call", "a.t"]).ends_with(0).out, "fine\n");
    home.run(&["call", "b.t"]).ends_with(3).says("no database");
    let unknown = home.run(&["call", "nobody_has_this"]);
    unknown.ends_with(2).says("warning: server `b` could not be asked: ");
    let also_bad = home.server(
        "d",
        fake().fault(Fault::ExitsAtStart {
            code: 1,
            stderr: "no disk".into(),
        }),
    );
    home.run(&["call", "nobody_has_this", &also_bad])
        .ends_with(2)
        .says("warning: 2 servers could not be asked: `b` is down, `d` is down; `pegboard doctor` says why\n");
    for name in ["a", "b", "c"] {
        home.assert_gone(name);
    }
}

#[test]
fn a_server_that_ignores_every_request_to_end_is_killed() {
    let home = Home::new();
    home.config(&home.entry("fx", fake().fault(Fault::IgnoresTerm), QUICK));
    assert_eq!(home.run(&["call", "fx.t"]).ends_with(0).out, "fine\n");
    home.assert_gone("fx");
}
