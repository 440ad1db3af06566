//! Runs the steps of a page with `bash`, and compares what they print.

use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
};

use tokio::net::TcpSocket;

use super::{
    page::{Page, Shown, Step},
    root,
};

/// The port that the pages use, which is replaced by a reserved one.
const PORT: &str = "7337";

/// Runs the pinned package of the same name, as `uvx PACKAGE` and `npx -y PACKAGE` would.
const RUNNER: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
package=${1##*/}
shift
exec "@FOLDER@/@PREFIX@${package%%[@=]*}" "$@"
"#;

/// Servers end with the page. `ready` waits for the required servers of `serve`.
const START: &str = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
ready() { for _ in $(seq 1200); do pegboard health --ready && return; sleep 0.05; done; return 1; }
";

/// What is wrong with a page: commands that fail, or print something else than it shows.
pub(crate) fn problems(page: &Page) -> Vec<String> {
    if !page.steps.iter().any(|step| matches!(step, Step::Run(_))) {
        return Vec::new();
    }
    let folder = tempfile::tempdir().unwrap();
    let [home, runs, programs, runtime] = ["home", "runs", "bin", "run"].map(|name| folder.path().join(name));
    for folder in [&home, &runs, &programs, &runtime] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    programs_in(&programs);
    let (_reserved, port) = reserve_port();
    let script = script(page, &home, &runs).replace(PORT, &port);
    let file = folder.path().join("page.sh");
    fs::write(&file, script).unwrap();
    let ran = Command::new("timeout")
        .args(["-k", "5", "400", "bash"])
        .arg(&file)
        .current_dir(&home)
        .env_clear()
        .env("CI", "1")
        .env("HOME", &home)
        .env(
            "PATH",
            format!("{}:{}/bin:/usr/bin:/bin", programs.display(), home.display()),
        )
        .env("LANG", "C.UTF-8")
        .env("XDG_RUNTIME_DIR", &runtime)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut problems = Vec::new();
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        problems.push(format!("{}: ended with {}\n{said}", page.name, ran.status));
    }
    for (index, step) in page.steps.iter().enumerate() {
        let output = fs::read_to_string(runs.join(format!("{index}.out"))).unwrap_or_default();
        let output = output
            .replace(&port, PORT)
            .replace(home.to_str().unwrap(), "/home/ada")
            .replace(runtime.to_str().unwrap(), "/run/user/1000")
            .replace(programs.to_str().unwrap(), "/usr/local/bin");
        let code = fs::read_to_string(runs.join(format!("{index}.code"))).unwrap_or_default();
        problems.extend(match step {
            Step::Run(shown) => problem(page, shown, code.trim(), &output),
            Step::Setup { line, command } if code.trim() != "0" => {
                Some(format!("{}:{line}: `{command}` ended with {code}{output}", page.name))
            }
            Step::Setup { .. } | Step::Write { .. } => None,
        });
    }
    problems
}

/// The command itself, and those that start servers of packages.
fn programs_in(folder: &Path) {
    symlink(env!("CARGO_BIN_EXE_pegboard"), folder.join("pegboard")).unwrap();
    let peers = root().join("target/peers");
    let node = peers.join("npm/node_modules/.bin");
    symlink(node.join("node"), folder.join("node")).unwrap();
    let generator = "openapi-python-client";
    symlink(peers.join("python-openapi/bin").join(generator), folder.join(generator)).unwrap();
    for (name, place, prefix) in [("uvx", peers.join("python-modern/bin"), ""), ("npx", node, "mcp-")] {
        let text = RUNNER
            .replace("@FOLDER@", place.to_str().unwrap())
            .replace("@PREFIX@", prefix);
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A port that the system gives to no other program while the socket is bound. A server may listen on it, because both reuse addresses.
fn reserve_port() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    (socket, port)
}

/// All steps in one shell, so that variables and the folder stay. Each writes its output and its exit code to files.
fn script(page: &Page, home: &Path, runs: &Path) -> String {
    let mut script = START.to_owned();
    for (index, step) in page.steps.iter().enumerate() {
        let out = runs.join(format!("{index}.out")).display().to_string();
        let code = runs.join(format!("{index}.code")).display().to_string();
        match step {
            Step::Write { path, text } => {
                let path = home.join(path).display().to_string();
                writeln!(
                    script,
                    "mkdir -p \"$(dirname '{path}')\"\ncat >'{path}' <<'END OF FILE'\n{text}END OF FILE"
                )
                .unwrap();
            }
            Step::Setup { command, .. } => {
                writeln!(script, "{{ {command}\n}} >'{out}' 2>&1; echo $? >'{code}'").unwrap();
            }
            Step::Run(shown) if keeps_running(&shown.command) => {
                let lines = shown.output.iter().filter(|line| *line != "…").count();
                writeln!(
                    script,
                    "{{ ( exec {}\n) & }} >'{out}' 2>&1; echo 0 >'{code}'\n\
                     for _ in $(seq 1200); do [ \"$(wc -l <'{out}')\" -ge {lines} ] && break; sleep 0.05; done",
                    shown.command.trim_end_matches([' ', '&'])
                )
                .unwrap();
            }
            Step::Run(shown) => {
                writeln!(script, "{{ {}\n}} >'{out}' 2>&1; echo $? >'{code}'", shown.command).unwrap();
            }
        }
    }
    script.push_str("exit 0\n");
    script
}

fn keeps_running(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.last() == Some(&"&") || (words.first() == Some(&"pegboard") && words.contains(&"serve"))
}

fn problem(page: &Page, shown: &Shown, code: &str, output: &str) -> Option<String> {
    let place = format!("{}:{}: `{}`", page.name, shown.line, shown.command);
    if code != shown.code.to_string() {
        return Some(format!("{place} ended with {code}, and printed:\n{output}"));
    }
    let lines: Vec<String> = output.trim_end().lines().map(one_space).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let expected: Vec<String> = shown.output.iter().map(|line| one_space(line)).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    if expected.is_empty() || match_lines(&expected, &lines) {
        return None;
    }
    Some(format!(
        "{place} printed:\n{output}\nand the page shows:\n{}",
        expected.join("\n")
    ))
}

/// The words of a line, whatever the width of its columns.
fn one_space(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn match_lines(expected: &[&str], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|skipped| match_lines(rest, &lines[skipped..])),
        Some((first, rest)) => match lines.split_first() {
            Some((line, others)) => match_line(first, line) && match_lines(rest, others),
            None => false,
        },
    }
}

/// Whether a line is as expected, with `…` for any text.
fn match_line(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[test]
fn a_page_that_shows_something_else_is_a_problem() {
    let text = "```console\n$ echo one; echo two\none\n$ false\n$ echo a b c\na … c\n$ (exit 3)   # exit code 3\n$ seq 9\n1\n…\n9\n```\n";
    let page = Page::read("made-up.md", text);
    let problems = problems(&page);
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].starts_with("made-up.md:2: `echo one; echo two` printed:\none\ntwo"));
    assert!(problems[1].starts_with("made-up.md:4: `false` ended with 1"));
}
