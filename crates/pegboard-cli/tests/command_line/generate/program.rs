//! A generated program of its own: it runs with Python alone, and reaches the server itself.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pegboard_testkit::{Era, FakeServer, Tool};
use serde_json::json;

use super::assert_golden;
use crate::{
    ends::Ends,
    home::{Home, Ran},
};

#[test]
fn a_file_whose_name_is_no_text_is_written_and_reported() {
    use std::os::unix::ffi::OsStrExt as _;

    let home = Home::new();
    home.config(&home.entry("fx", FakeServer::new("fx").tool(Tool::new("t")), ""));
    let file = home.path(".").join(std::ffi::OsStr::from_bytes(b"g\xff"));
    let generate = |format: &str| {
        let mut command = home.pegboard(&["generate", "cli", "fx", "-o", format, "--out"]);
        command.arg(&file);
        Ran::of(command)
    };
    generate("text").ends_with(0).prints("g\u{fffd}: 1 tools of fx");
    let document = generate("json").ends_with(0).json();
    assert!(document["file"].as_str().unwrap().ends_with("g\u{fffd}"), "{document}");
    assert!(file.is_file());
}

/// The start of the part that is the same in all programs.
const CLIENT: &str = "\n\nimport argparse";

/// Makes a program, and returns its path.
fn program(home: &Home, args: &[&str]) -> PathBuf {
    home.run(&[&["generate", "cli"][..], args, &["--out", "tools.py"]].concat())
        .ends_with(0);
    home.path("tools.py")
}

/// Runs a program where there is Python and nothing else.
fn alone(home: &Home, program: &Path, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let folder = home.path("only-python");
    if !folder.exists() {
        std::fs::create_dir(&folder).unwrap();
        let python = Ran::of({
            let mut command = Command::new("python3");
            command.args(["-c", "import sys; print(sys.executable)"]);
            command
        });
        symlink(python.out.trim(), folder.join("python3")).unwrap();
    }
    let mut command = Command::new(folder.join("python3"));
    command
        .arg(program)
        .args(args)
        .current_dir(home.path("."))
        .env_clear()
        .env("PATH", &folder)
        .env("HOME", home.path("."))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied());
    Ran::of(command)
}

/// Replaces a text of a program, which must be there once.
fn replace(program: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(program).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old}");
    std::fs::write(program, text.replace(old, new)).unwrap();
}

#[test]
fn it_says_how_the_server_is_started_and_what_its_tools_take() {
    let home = Home::new();
    let made = home.run(&["generate", "cli", "demo"]);
    let (own, _) = made.ends_with(0).out.split_once(CLIENT).unwrap();
    let own = own.replace(env!("CARGO_BIN_EXE_pegboard"), "/usr/local/bin/pegboard");
    assert_golden("demo_program.txt", &format!("{own}\n"));
}

#[test]
fn it_calls_a_server_that_it_starts_with_nothing_but_python() {
    let home = Home::new();
    let program = program(&home, &["demo"]);
    let run = |args: &[&str]| alone(&home, &program, &[], args);
    let called = run(&["calculate", "--expression", "6 * 7"]);
    assert_eq!(called.ends_with(0).out, "{\"value\":42}\n", "{called:?}");
    run(&["--json-output", "calculate", "--expression", "6 * 7"])
        .ends_with(0)
        .prints("\"structuredContent\":{\"value\":42}");
    run(&["fail", "--message", "on purpose"])
        .ends_with(1)
        .says("error: fail failed: on purpose");
    run(&["draw", "--shape", "line"]).ends_with(2).says("invalid choice");
    run(&["calculate", "--help"]).ends_with(0).prints("--expression TEXT");
    run(&["--save", "files", "draw", "--shape", "ellipse"])
        .ends_with(0)
        .prints("[image image/png, ")
        .says("saved files/draw-1.png");
    assert_eq!(&std::fs::read(home.path("files/draw-1.png")).unwrap()[1..4], b"PNG");
}

#[test]
fn it_calls_a_server_at_a_url_in_both_eras() {
    let home = Home::new();
    let mut command = home.pegboard(&["demo-server", "--transport", "http", "--listen", "127.0.0.1:0"]);
    let mut server = Ends(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let url = lines
        .find_map(|line| Some(format!("http://{}", line.unwrap().split_once("http://")?.1.trim())))
        .unwrap();
    let program = program(&home, &["far", &format!("--server=far={url}")]);
    for (old, new) in [("modern", "legacy"), ("legacy", "modern")] {
        let called = alone(&home, &program, &[], &["calculate", "--expression", "6 * 7"]);
        assert_eq!(called.ends_with(0).out, "{\"value\":42}\n", "{called:?}");
        replace(&program, &format!("\"era\": \"{old}\""), &format!("\"era\": \"{new}\""));
    }
    alone(&home, &program, &[], &["fail", "--message", "on purpose"])
        .ends_with(1)
        .says("on purpose");
    replace(&program, "/mcp\"", "/nothing\"");
    alone(&home, &program, &[], &["fail"]).ends_with(3).says("HTTP 404");
}

#[test]
fn it_finds_out_that_a_server_now_speaks_the_other_era() {
    let home = Home::new();
    for (era, fake) in [
        ("modern", FakeServer::new("fx").era(Era::Legacy)),
        ("legacy", FakeServer::new("fx").era(Era::Modern)),
    ] {
        let server = home.server("fx", fake.tool(Tool::new("go").answers_text("it went")));
        let program = program(&home, &["fx", &server]);
        let text = std::fs::read_to_string(&program).unwrap();
        let other = if era == "modern" { "legacy" } else { "modern" };
        assert!(
            text.contains(&format!("\"era\": \"{other}\"")),
            "the era is known: {other}"
        );
        replace(
            &program,
            &format!("\"era\": \"{other}\""),
            &format!("\"era\": \"{era}\""),
        );
        alone(&home, &program, &[], &["go"]).ends_with(0).prints("it went");
        home.assert_gone("fx");
    }
}

#[test]
fn secrets_are_variables_and_a_missing_one_is_named() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("env").shows_env());
    let entry = home.entry("fx", fake, "env = { API_TOKEN = 'c4nary-7f3a9b1e', TZ = 'UTC' }");
    home.config(&entry);
    let program = program(&home, &["fx"]);
    let text = std::fs::read_to_string(&program).unwrap();
    assert!(!text.contains("c4nary"), "{text}");
    alone(&home, &program, &[], &["env"])
        .ends_with(2)
        .says("error: the variable API_TOKEN is not set")
        .says("hint: the server fx needs it");
    alone(
        &home,
        &program,
        &[("API_TOKEN", "t0ken"), ("AWS_SECRET_ACCESS_KEY", "no")],
        &["env"],
    )
    .ends_with(0)
    .prints("t0ken")
    .prints("UTC");
    let shown = alone(
        &home,
        &program,
        &[("API_TOKEN", "t0ken"), ("AWS_SECRET_ACCESS_KEY", "no")],
        &["env"],
    );
    assert!(!shown.out.contains("AWS_SECRET"), "{shown:?}");
}

#[test]
fn a_server_that_is_not_there_ends_or_is_silent_has_an_exit_code() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("go").answers_text("it went"));
    let server = home.server("fx", fake);
    let program = program(&home, &["fx", &server]);
    let text = std::fs::read_to_string(&program).unwrap();
    let command = text.lines().find(|line| line.contains("\"command\": [")).unwrap();
    for (words, args, code, says) in [
        ("'nothing-here'", &["go"][..], 3, "nothing-here cannot be started"),
        (
            "'/bin/sh', '-c', 'echo no port >&2; exit 7'",
            &["go"],
            3,
            "has ended with exit code 7",
        ),
        ("'/bin/sh', '-c', 'echo no port >&2; exit 7'", &["go"], 3, "no port"),
        (
            "'/bin/sleep', '60'",
            &["--timeout", "1", "go"],
            124,
            "did not answer in time",
        ),
    ] {
        let broken = text.replace(command, &format!("    \"command\": [{words}],"));
        let broken = home.write("broken.py", &broken);
        alone(&home, &broken, &[], args).ends_with(code).says(says);
    }
}

#[test]
fn what_it_cannot_do_is_left_to_pegboard() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("go").schema(json!({})).answers_text("it went"));
    home.config(&home.entry("fx", fake, "sandbox = true"));
    home.run(&["generate", "cli", "fx"])
        .ends_with(2)
        .says("its sandbox would not apply")
        .says("--through-pegboard");
}
