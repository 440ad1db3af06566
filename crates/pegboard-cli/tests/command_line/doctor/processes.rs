//! Findings about programs and their starts.

use std::{fs, os::unix::fs::PermissionsExt as _};

use pegboard_testkit::Fault;

use super::diagnosis::{Diagnosis, QUICK, SILENT, fake, mended_by, mends_itself, well};
use crate::home::{Home, Ran};

/// A script in the home folder. It is a new file: one that a process is just being started from cannot be written.
pub(super) fn script(home: &Home, name: &str, text: &str, mode: u32) -> String {
    let _ = fs::remove_file(home.path(name));
    let path = home.write(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

/// A script that starts the fake.
fn starter(home: &Home, name: &str, first_line: &str, mode: u32) -> String {
    let command = home.command_of("fx", fake());
    script(home, name, &format!("{first_line}\nexec {command}\n"), mode)
}

pub(super) fn entry(program: &str, args: &[&str]) -> String {
    format!("[servers.fx]\ncommand = {program:?}\nargs = {args:?}\n{QUICK}\n")
}

#[test]
fn a_program_that_is_not_installed() {
    let home = Home::new();
    mended_by(&home, "program-missing", &entry("no-such-program", &[]), &well(&home));
    home.config(&entry("npx", &["-y", "server@1.0.0"]));
    let mut command = home.pegboard(&["doctor", "-o", "json"]);
    command.env("PATH", home.path("empty"));
    let found = Diagnosis::from(&Ran::of(command));
    let found = found.finding("program-missing").unwrap();
    assert!(
        found["found"].as_str().unwrap().contains("empty"),
        "the PATH is not named: {found}"
    );
    assert!(found["fix"].as_str().unwrap().contains("Node.js"), "{found}");
}

#[test]
fn a_program_that_may_not_be_executed() {
    let home = Home::new();
    let program = starter(&home, "server.sh", "#!/bin/sh", 0o644);
    home.config(&entry(&program, &[]));
    Diagnosis::of(&home, &[]).shows("program-not-executable");
    Diagnosis::of(&home, &["--fix", "--yes"]).is_well_without("program-not-executable");
}

#[test]
fn a_folder_in_place_of_a_program() {
    let home = Home::new();
    let folder = home.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let broken = entry(folder.to_str().unwrap(), &[]);
    mended_by(&home, "program-not-executable", &broken, &well(&home));
    home.config(&broken);
    let called = home.run(&["call", "fx.read", "-o", "json"]).json();
    assert_eq!(called["outcome"]["code"], "program-not-executable", "{called}");
}

#[test]
fn an_interpreter_that_is_not_installed() {
    let home = Home::new();
    let broken = starter(&home, "broken.sh", "#!/usr/bin/env no-such-interpreter", 0o755);
    let absolute = starter(&home, "absolute.sh", "#!/no/such/interpreter", 0o755);
    let mended = starter(&home, "mended.sh", "#!/usr/bin/env sh", 0o755);
    mended_by(&home, "interpreter-missing", &entry(&broken, &[]), &entry(&mended, &[]));
    mended_by(
        &home,
        "interpreter-missing",
        &entry(&absolute, &[]),
        &entry(&mended, &[]),
    );
}

#[test]
fn a_script_that_does_not_exist() {
    let home = Home::new();
    let there = starter(&home, "server.sh", "", 0o644);
    mended_by(
        &home,
        "script-missing",
        &entry("sh", &["/no/such/server.sh"]),
        &entry("sh", &[&there]),
    );
}

#[test]
fn a_folder_that_does_not_exist() {
    let home = Home::new();
    let entry = |folder: &str| home.entry("fx", fake(), &format!("cwd = '{folder}'\n{QUICK}"));
    mended_by(&home, "folder-missing", &entry("/no/such/folder"), &entry("/"));
}

#[test]
fn a_program_that_only_the_shell_finds() {
    let home = Home::new();
    let program = starter(&home, "bin/my-server", "#!/bin/sh", 0o755);
    let doctor = || {
        let mut command = home.pegboard(&["doctor", "-o", "json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
        Diagnosis::from(&Ran::of(command))
    };
    home.config(&entry("my-server", &[]));
    doctor().shows("path-differs");
    home.config(&entry(&program, &[]));
    doctor().is_well_without("path-differs");
}

#[test]
fn packages_without_a_version() {
    let home = Home::new();
    // The names of the runners stand for scripts that start the fake, so nothing is fetched.
    for runner in ["npx", "uvx", "bunx", "docker"] {
        starter(&home, &format!("bin/{runner}"), "#!/bin/sh", 0o755);
    }
    let path = format!("env = {{ PATH = '{}:/usr/bin:/bin' }}", home.path("bin").display());
    for (program, broken, mended) in [
        ("npx", &["-y", "server"][..], &["-y", "server@1.2.3"][..]),
        ("npx", &["-y", "server@latest"], &["-y", "server@1.2.3"]),
        ("uvx", &["server"], &["server==1.2.3"]),
        ("uvx", &["--from", "pkg", "server"], &["--from", "pkg==1.2.3", "server"]),
        (
            "docker",
            &["run", "-i", "mcp/server:latest"],
            &["run", "-i", "mcp/server:1.2"],
        ),
    ] {
        let entry = |args: &[&str]| format!("{}{path}\n", entry(program, args));
        mended_by(&home, "unpinned-package", &entry(broken), &entry(mended));
    }
}

#[test]
fn the_fix_of_a_package_without_a_version_has_its_name() {
    let home = Home::new();
    for runner in ["npx", "uvx"] {
        starter(&home, &format!("bin/{runner}"), "#!/bin/sh", 0o755);
    }
    let path = format!("env = {{ PATH = '{}:/usr/bin:/bin' }}\n", home.path("bin").display());
    for (program, args, fix) in [
        ("npx", &["-y", "@scope/server@latest"][..], "@scope/server@VERSION"),
        ("uvx", &["mcp-server-time"], "mcp-server-time==VERSION"),
    ] {
        home.config(&(entry(program, args) + &path));
        let found = Diagnosis::of(&home, &["--offline"]);
        let found = found.finding("unpinned-package").unwrap();
        assert_eq!(found["fix"], format!("write one version: `{fix}`"));
    }
}

/// A home whose commands start daemons. They end with it.
struct Desk(Home);

impl Desk {
    fn command(&self, path: &str, args: &[&str]) -> std::process::Command {
        let mut command = self.0.pegboard(args);
        command.env_remove("CI").env("PATH", path);
        command
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.command("/usr/bin:/bin", &["daemon", "stop", "--all"]).output();
    }
}

#[test]
fn a_daemon_that_does_not_find_a_program_of_this_terminal_is_named() {
    let desk = Desk(Home::new());
    let command = desk.0.command_of("fx", fake());
    desk.0.write("bin/fx-server", &format!("#!/bin/sh\nexec {command}\n"));
    let program = desk.0.path("bin/fx-server");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    desk.0.config("[servers.fx]\ncommand = 'fx-server'\n");
    // A program of the desktop starts the daemon first.
    Ran::of(desk.command("/usr/bin:/bin", &["call", "fx.read"])).ends_with(3);
    let terminal = format!("{}:/usr/bin:/bin", desk.0.path("bin").display());
    let called = Ran::of(desk.command(&terminal, &["call", "fx.read"]));
    called
        .ends_with(3)
        .says("pegboard daemon restart")
        .says("PATH of this terminal");
    let found = Diagnosis::from(&Ran::of(desk.command(&terminal, &["doctor", "-o", "json"])));
    assert!(found.finding("daemon-differs").is_some(), "{found:#?}");
    Ran::of(desk.command(&terminal, &["daemon", "restart"])).ends_with(0);
    Ran::of(desk.command(&terminal, &["call", "fx.read"])).ends_with(0);
}

#[test]
fn a_package_is_pinned_to_the_version_that_was_fetched_last() {
    let home = Home::new();
    starter(&home, "bin/npx", "#!/bin/sh", 0o755);
    let manifest = ".npm/_npx/0123/node_modules/@scope/server/package.json";
    home.write(manifest, r#"{"name": "@scope/server", "version": "1.4.2"}"#);
    let path = format!("env = {{ PATH = '{}:/usr/bin:/bin' }}\n", home.path("bin").display());
    let broken = entry("npx", &["-y", "@scope/server"]) + &path;
    let mended = mends_itself(&home, "unpinned-package", &broken, &[]);
    assert!(mended.contains(r#"["-y", "@scope/server@1.4.2"]"#), "{mended}");
}

#[test]
fn a_file_in_the_form_of_another_program_is_mended_where_its_servers_are() {
    let home = Home::new();
    starter(&home, "bin/my-server", "#!/bin/sh", 0o755);
    let file = home.write("other.json", r#"{"mcpServers": {"fx": {"command": "my-server"}}}"#);
    let mut command = home.pegboard(&["doctor", "--offline", "--fix", "--yes", "-o", "json", "-c"]);
    command.arg(&file);
    command.env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
    Diagnosis::from(&Ran::of(command)).is_well_without("path-differs");
    let mended: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let program = home.path("bin/my-server").display().to_string();
    assert_eq!(mended, serde_json::json!({"mcpServers": {"fx": {"command": program}}}));
}

#[test]
fn a_server_that_ends_at_once_is_told_with_its_last_words() {
    let home = Home::new();
    for (id, program, words) in [
        ("exits-at-start", "server", "no database"),
        (
            "module-missing",
            "python3.12",
            "ModuleNotFoundError: No module named mcp",
        ),
        ("module-missing", "node", "Error: Cannot find module /x/index.js"),
        ("package-unknown", "npx", "npm error code E404"),
        (
            "docker-not-running",
            "docker",
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
        ),
    ] {
        let text = format!("#!/bin/sh\necho '{words}' >&2\nexit 7\n");
        let broken = entry(&script(&home, &format!("bin/{program}"), &text, 0o755), &[]);
        mended_by(&home, id, &broken, &well(&home));
        home.config(&broken);
        let found = Diagnosis::of(&home, &[]);
        let said = found.finding(id).unwrap()["found"].as_str().unwrap();
        assert!(said.contains(words) && said.contains("exit code 7"), "{said}");
    }
}

#[test]
fn a_variable_that_a_server_asks_for_and_does_not_get_is_named() {
    let home = Home::new();
    let fault = Fault::ExitsAtStart {
        code: 1,
        stderr: "Set HUB_ACCESS_TOKEN in your environment variables and retry\n".to_owned(),
    };
    home.config(&home.entry("fx", fake().fault(fault), QUICK));
    let run = |args: &[&str], is_set: bool| {
        let mut command = home.pegboard(args);
        if is_set {
            command.env("HUB_ACCESS_TOKEN", "canary");
        }
        Ran::of(command)
    };
    let settings = "`env_pass = [\"HUB_ACCESS_TOKEN\"]`, or `env = { HUB_ACCESS_TOKEN = \"${HUB_ACCESS_TOKEN}\" }`";
    let withheld = format!("`HUB_ACCESS_TOKEN` is set here, but not passed on to the server: {settings}");
    for (is_set, advice) in [
        (true, withheld.clone()),
        (
            false,
            "`pegboard secret set HUB_ACCESS_TOKEN --for fx` stores it and passes it on to the server".to_owned(),
        ),
    ] {
        let found = Diagnosis::from(&run(&["doctor", "-o", "json"], is_set));
        let found = found.shows("exits-at-start").finding("exits-at-start").unwrap();
        assert_eq!(found["fix"], advice);
    }
    // Other commands say so too.
    run(&["tools"], true).says(&withheld);
    run(&["call", "fx.read"], true).says(&withheld);
}

#[test]
fn a_server_that_says_nothing() {
    let home = Home::new();
    let broken = home.entry("fx", fake().fault(Fault::SilentHandshake), SILENT);
    mended_by(&home, "silent", &broken, &well(&home));
}

#[test]
fn what_was_found_is_told_when_the_time_is_up() {
    let home = Home::new();
    let silent = fake().fault(Fault::SilentHandshake);
    let slow = home.entry("slow", silent, QUICK);
    home.config(&format!("{slow}[servers.fx]\ncommand = 'no-such-program'\n"));
    let found = Diagnosis::of(&home, &["--timeout", "2"]);
    assert_eq!(
        (found.code, &found.document["ok"]),
        (Some(124), &false.into()),
        "{found:#?}"
    );
    assert_eq!(found.problems(), ["program-missing", "still-starting"], "{found:#?}");
    home.run(&["doctor", "--timeout", "2"]).prints("still-starting");
}

#[test]
fn a_server_that_is_not_there_is_not_well() {
    let home = Home::new();
    home.config(&well(&home));
    let found = Diagnosis::of(&home, &["other"]);
    assert_eq!(
        (found.code, &found.document["ok"]),
        (Some(2), &false.into()),
        "{found:#?}"
    );
}

#[test]
fn a_server_that_writes_json_that_is_no_message() {
    let home = Home::new();
    for json in ["{}", r#"{"level":30,"msg":"listening"}"#, "[1, 2]"] {
        let program = script(
            &home,
            "json.sh",
            &format!("#!/bin/sh\necho '{json}'\ncat > /dev/null\n"),
            0o755,
        );
        let broken = format!("[servers.fx]\ncommand = {program:?}\n{SILENT}\n");
        home.config(&broken);
        let found = Diagnosis::of(&home, &[]);
        let said = found.shows("other-json").finding("other-json").unwrap()["found"].clone();
        assert!(said.as_str().unwrap().ends_with(json), "{said}");
        mended_by(&home, "other-json", &broken, &well(&home));
    }
}

#[test]
fn a_server_that_logs_json_to_stdout_and_works() {
    let home = Home::new();
    let command = home.command_of("fx", fake());
    let log = r#"echo '{"level":30,"msg":"up"}'"#;
    let logging = script(
        &home,
        "logging.sh",
        &format!("#!/bin/sh\n{log}\nexec {command}\n"),
        0o755,
    );
    let quiet = script(
        &home,
        "quiet.sh",
        &format!("#!/bin/sh\n{log} >&2\nexec {command}\n"),
        0o755,
    );
    mended_by(&home, "stdout-noise", &entry(&logging, &[]), &entry(&quiet, &[]));
}

#[test]
fn a_file_that_is_no_program_for_this_system() {
    let home = Home::new();
    // A program for another machine begins like one for this machine.
    let foreign = script(&home, "foreign", "\u{7f}ELF", 0o755);
    mended_by(&home, "start-failed", &entry(&foreign, &[]), &well(&home));
}

#[test]
fn a_server_that_is_slow_to_start() {
    let home = Home::new();
    let slow = home.entry(
        "fx",
        fake().fault(Fault::SlowStart { ms: 3500 }),
        "connect_timeout = '6s'\nstop_timeout = '200ms'",
    );
    home.config(&slow);
    let found = Diagnosis::of(&home, &[]);
    found.shows("slow-start");
    // Both halves of the fix: more time, and a server that is there at once.
    home.config(&slow.replace("'6s'", "'300s'"));
    Diagnosis::of(&home, &[]).is_well_without("slow-start");
    home.config(&well(&home));
    Diagnosis::of(&home, &[]).is_well_without("slow-start");
}

#[test]
fn a_server_that_asks_a_question() {
    let home = Home::new();
    let fault = Fault::Prompts {
        text: "Install? [y/N] ".into(),
    };
    mended_by(
        &home,
        "waits-for-input",
        &home.entry("fx", fake().fault(fault), SILENT),
        &well(&home),
    );
}

#[test]
fn a_server_that_floods_stdout_is_told_without_its_stderr() {
    let home = Home::new();
    let text = "#!/bin/sh\nfor word in a b c; do echo \"noise $word\" >&2; done\nexec yes 'some text'\n";
    let program = script(&home, "flood.sh", text, 0o755);
    home.config(&entry(&program, &[]));
    let diagnosis = Diagnosis::of(&home, &[]);
    let found = diagnosis.shows("stdout-flood").finding("stdout-flood").unwrap();
    let words = found["found"].as_str().unwrap();
    assert!(words.contains("some text") && !words.contains("noise"), "{words}");
    home.config(&well(&home));
    Diagnosis::of(&home, &[]).is_well_without("stdout-flood");
}

#[test]
fn a_server_that_prints_text_where_messages_belong() {
    let home = Home::new();
    let noisy = home.entry("fx", fake().fault(Fault::NoiseAtStart { lines: 3 }), QUICK);
    mended_by(&home, "stdout-noise", &noisy, &well(&home));
}

#[test]
fn a_server_that_refuses_the_handshake() {
    let home = Home::new();
    let refusing = script(
        &home,
        "refusing.sh",
        r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
  echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"no license"}}'
done
"#,
        0o755,
    );
    mended_by(&home, "handshake-refused", &entry(&refusing, &[]), &well(&home));
}

#[test]
fn a_server_of_an_unknown_version() {
    let home = Home::new();
    let old = fake().era(pegboard_testkit::Era::Legacy).versions(&["1999-01-01"]);
    mended_by(
        &home,
        "protocol-unsupported",
        &home.entry("fx", old, QUICK),
        &well(&home),
    );
}

#[test]
fn a_server_that_is_switched_off_is_not_started_and_not_a_problem() {
    let home = Home::new();
    home.config(&format!("{}enabled = false\n", well(&home)));
    Diagnosis::of(&home, &[]).is_well_without("silent");
    assert!(!home.path("well.log").exists());
}

#[test]
fn offline_starts_nothing() {
    let home = Home::new();
    home.config(&well(&home));
    Diagnosis::of(&home, &["--offline"]).is_well_without("silent");
    assert!(!home.path("well.log").exists());
}
