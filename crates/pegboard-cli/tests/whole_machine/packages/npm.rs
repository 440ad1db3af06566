//! The npm packages, run by `npx` as people do who have Node.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::packages::{Packages, TARGET, VERSION, peer, registry::Registry, run};

/// `npx` that knows one registry, on the Node in `node` or that of the machine.
fn npx(packages: &Packages, registry: &Registry, node: Option<&Path>, args: &[&str]) -> Command {
    let mut command = packages.command("npx");
    let path = env::var("PATH").unwrap();
    if let Some(node) = node {
        command.env("PATH", format!("{}:{path}", node.display()));
    }
    command
        .arg("--yes")
        .args(args)
        .env("npm_config_registry", format!("http://{}/", registry.address))
        .env("npm_config_cache", packages.path("cache"))
        .env("npm_config_update_notifier", "false")
        .env("npm_config_audit", "false")
        .env("npm_config_fund", "false");
    command
}

fn system() -> &'static str {
    if TARGET.starts_with("aarch64") {
        "linux-arm64"
    } else {
        "linux-x64"
    }
}

#[test]
fn npx_fetches_the_program_of_this_system_and_runs_it() {
    let packages = Packages::of_this_program("npm", &[]);
    let registry = Registry::of(&packages.path("packages"));
    let called = run(&mut npx(
        &packages,
        &registry,
        None,
        &["pegboard", "call", "demo.calculate", "expression=6*7"],
    ));
    assert_eq!(called.succeeds(), "{\"value\":42}\n");
    let expected = [
        format!("/-/pegboard-{VERSION}.tgz"),
        format!("/-/pegboard-{}-{VERSION}.tgz", system()),
    ];
    assert_eq!(registry.fetched(), expected);
    // A newer Node becomes the program instead of starting it.
    let node = peer("npm/node_modules/.bin/node").canonicalize().unwrap();
    let unknown = run(&mut npx(
        &packages,
        &registry,
        node.parent(),
        &["pegboard", "call", "demo.nothing"],
    ));
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
    assert!(!unknown.err.contains("Warning"), "{unknown:#?}");
}

/// A folder with the launcher and, in place of the program of this system, a script.
fn launcher_of(packages: &Packages, script: &str) -> Command {
    let program = packages.path("program");
    fs::write(&program, script).unwrap();
    run(Command::new("chmod").arg("+x").arg(&program)).succeeds();
    packages.make(&["--only", "npm", "--program", program.to_str().unwrap(), TARGET]);
    let modules = packages.path("node_modules");
    for (name, folder) in [
        ("pegboard".to_owned(), "pegboard".to_owned()),
        (format!("pegboard-{}", system()), format!("@pegboard/{}", system())),
    ] {
        let folder = modules.join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf")
            .arg(packages.path(&format!("packages/{name}-{VERSION}.tgz")));
        run(tar.args(["--strip-components", "1", "-C"]).arg(folder)).succeeds();
    }
    let mut command = packages.command("node");
    command.arg(modules.join("pegboard/bin/pegboard.js"));
    command
}

#[test]
fn a_signal_to_the_launcher_ends_the_program() {
    let packages = Packages::new();
    let mut command = launcher_of(&packages, "#!/bin/sh\necho $$\nexec sleep 60\n");
    let mut launcher = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(launcher.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let program = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    kill_process(Pid::from_child(&launcher), Signal::TERM).unwrap();
    let ended = launcher.wait().unwrap();
    assert!(!ended.success());
    // A process that was killed takes a moment to disappear.
    let is_gone = || {
        thread::sleep(Duration::from_millis(10));
        test_kill_process(program).is_err()
    };
    assert!((0..2000).any(|_| is_gone()), "the program still runs");
}

#[test]
fn the_launcher_passes_arguments_and_the_exit_code() {
    let packages = Packages::new();
    let mut command = launcher_of(&packages, "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 124\n");
    let ended = run(command.args(["call", "a b", "*", ""]));
    assert_eq!((ended.code, ended.out.as_str()), (Some(124), "call|a b|*||"));
}

#[test]
fn a_launcher_without_the_program_says_what_to_install() {
    let packages = Packages::new();
    let mut command = launcher_of(&packages, "#!/bin/sh\n");
    fs::remove_dir_all(packages.path("node_modules/@pegboard")).unwrap();
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains(&format!("@pegboard/{} is not installed", system())),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("hint: "), "{}", ended.err);
    let ended = run(command.env("PEGBOARD_BINARY", "/bin/echo").arg("hello"));
    assert_eq!(ended.succeeds(), "hello\n");
}
