//! Findings about the machine: what daemons left behind.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::PathBuf,
    process::Stdio,
    thread,
};

use pegboard_testkit::{Fault, Tool, When};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::diagnosis::{Diagnosis, QUICK, fake, well};
use crate::{
    gateway::Served,
    home::{Home, Ran, until},
};

/// The folder of daemons.
fn run_folder(home: &Home, mode: u32) -> PathBuf {
    let folder = home.path(".local/state/pegboard/run");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    folder
}

#[test]
fn the_socket_of_a_daemon_that_was_killed() {
    let home = Home::new();
    home.config(&well(&home));
    let folder = run_folder(&home, 0o700);
    drop(UnixListener::bind(folder.join("gone.sock")).unwrap());
    fs::write(folder.join("gone.lock"), "1\n").unwrap();
    Diagnosis::of(&home, &[]).shows("daemon-leftovers");
    Diagnosis::of(&home, &["--fix", "--yes"]).is_well_without("daemon-leftovers");
    assert!(!folder.join("gone.sock").exists());
}

#[test]
fn a_folder_of_sockets_that_others_can_enter() {
    let home = Home::new();
    home.config(&well(&home));
    let folder = run_folder(&home, 0o755);
    Diagnosis::of(&home, &[]).shows("daemon-folder");
    Diagnosis::of(&home, &["--fix", "--yes"]).is_well_without("daemon-folder");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_daemon_of_another_version() {
    let home = Home::new();
    home.config(&well(&home));
    let folder = run_folder(&home, 0o700);
    let lock = File::create(folder.join("old.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let listener = UnixListener::bind(folder.join("old.sock")).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let body = r#"{"version":"0.0.1","pid":4711,"config":""}"#;
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let found = Diagnosis::of(&home, &[]);
    found.shows("daemon-version");
    assert_eq!(found.finding("daemon-version").unwrap()["fix"], "kill 4711");
    drop(lock);
    fs::remove_file(folder.join("old.sock")).unwrap();
    Diagnosis::of(&home, &[]).is_well_without("daemon-version");
}

#[test]
fn a_call_that_a_killed_daemon_did_not_finish() {
    let home = Home::new();
    let mute = Tool::new("mute").answers_text("never");
    let fake = fake().tool(mute).fault_on(When::tool("mute"), Fault::NeverAnswers);
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let mut call = home.pegboard(&["call", "fx.mute"]);
    let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    served.signal("KILL");
    served.code();
    Ran::end_of(call).ends_with(3);
    // The socket that the daemon left is another finding, which can be mended.
    Diagnosis::of(&home, &["--offline", "--fix", "--yes"]).is_well_without("daemon-leftovers");
    let found = Diagnosis::of(&home, &[]);
    let found = found.shows("unfinished-calls").finding("unfinished-calls").unwrap();
    assert!(found["found"].as_str().unwrap().contains("fx.mute"), "{found}");
    // The fix is to look at them.
    let fix = found["fix"].as_str().unwrap();
    assert_eq!(fix, "pegboard status");
    home.run(&[fix.split(' ').nth(1).unwrap()])
        .ends_with(0)
        .says("may have run");
    Diagnosis::of(&home, &[]).is_well_without("unfinished-calls");
}

#[test]
fn servers_in_the_files_of_this_project_are_listed_and_never_started() {
    let home = Home::new();
    home.config(&well(&home));
    let shadow = home.command_of("shadow", fake());
    let (program, args) = shadow.split_once(' ').unwrap();
    let entry = json!({"command": program, "args": args.split(' ').collect::<Vec<_>>()});
    fs::create_dir_all(home.path("project/.git")).unwrap();
    fs::create_dir_all(home.path("project/src/deep")).unwrap();
    let doctor = |folder: &str| {
        let mut command = home.pegboard(&["doctor", "-o", "json"]);
        command.current_dir(home.path("project").join(folder));
        Diagnosis::from(&Ran::of(command))
    };
    for (file, key, fix) in [
        (".cursor/mcp.json", "mcpServers", "pegboard import --project cursor"),
        (".vscode/mcp.json", "servers", "pegboard import --project vscode"),
    ] {
        let file = home.write(&format!("project/{file}"), &json!({key: {"shadow": entry}}).to_string());
        let found = doctor(".");
        let found = found.shows("unmanaged-server").finding("unmanaged-server").unwrap();
        let said = found["found"].as_str().unwrap();
        assert!(
            said.contains("in this project") && said.contains(&file.display().to_string()),
            "{said}"
        );
        assert_eq!(found["fix"], fix);
        // The project begins at its repository, and not above it.
        let found = doctor("src/deep");
        let found = found.shows("unmanaged-server").finding("unmanaged-server").unwrap();
        assert_eq!(found["fix"], format!("cd {} && {fix}", home.path("project").display()));
        fs::rename(home.path("project/.git"), home.path("project/src/.git")).unwrap();
        doctor("src/deep").is_well_without("unmanaged-server");
        fs::rename(home.path("project/src/.git"), home.path("project/.git")).unwrap();
        fs::remove_file(file).unwrap();
    }
    doctor(".").is_well_without("unmanaged-server");
    // Pegboard reads this one itself, once it is approved.
    home.write(
        "project/.mcp.json",
        &json!({"mcpServers": {"shadow": entry}}).to_string(),
    );
    let found = doctor(".");
    assert!(found.finding("project-untrusted").is_some(), "{found:#?}");
    assert!(found.finding("unmanaged-server").is_none(), "{found:#?}");
    // It does not read it beside a file of its own.
    home.write("project/pegboard.toml", "");
    doctor(".").shows("unmanaged-server");
    assert!(!home.path("shadow.log").exists(), "it was started");
}

#[test]
fn servers_of_other_programs_are_listed_and_never_started() {
    let home = Home::new();
    home.config(&well(&home));
    let command = home.command_of("shadow", fake());
    let (program, args) = command.split_once(' ').unwrap();
    let args: Vec<&str> = args.split(' ').collect();
    let entry = json!({"command": program, "args": args, "env": {"TOKEN": "hunter2hunter2"}});
    let files = [".cursor/mcp.json", ".claude.json"];
    for file in files {
        home.write(file, &json!({"mcpServers": {"shadow": entry}}).to_string());
    }
    let ran = home.run(&["doctor", "-o", "json"]);
    let found = Diagnosis::from(&ran);
    found.shows("unmanaged-server");
    let said = found.document["machine"].to_string();
    assert!(
        said.contains(".cursor/mcp.json") && said.contains(".claude.json"),
        "{said}"
    );
    assert!(said.contains("pegboard import cursor"), "{said}");
    assert!(!ran.out.contains("hunter2"), "{ran:?}");
    assert!(!home.path("shadow.log").exists(), "it was started");
    home.config(&format!("{}{}", well(&home), home.entry("shadow", fake(), QUICK)));
    Diagnosis::of(&home, &[]).is_well_without("unmanaged-server");
}

#[test]
fn a_server_of_another_folder_is_not_started_here_and_not_listed() {
    let home = Home::new();
    home.config(&well(&home));
    let of = |folder: &std::path::Path| {
        let servers = json!({"mcpServers": {"projtime": {"command": "uvx", "args": ["mcp-server-time"]}}});
        let folder = folder.display().to_string();
        home.write(".claude.json", &json!({"projects": {folder: servers}}).to_string());
    };
    of(&home.path("elsewhere"));
    Diagnosis::of(&home, &[]).is_well_without("unmanaged-server");
    of(&home.path("").canonicalize().unwrap());
    Diagnosis::of(&home, &[]).shows("unmanaged-server");
}

#[test]
fn servers_that_a_host_has_from_its_own_file_and_from_pegboard() {
    let home = Home::new();
    home.config(&well(&home));
    let listed = home.run(&["config", "show", "-o", "json"]).json();
    let (_, server) = listed["servers"].as_object().unwrap().iter().next().unwrap();
    let own = json!({"command": server["command"], "args": server["args"]});
    let pegboard = json!({"command": "pegboard", "args": ["mcp"]});
    home.write(".cursor/mcp.json", &json!({"mcpServers": {"mine": own}}).to_string());
    Diagnosis::of(&home, &[]).is_well_without("server-twice");
    home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": {"mine": own, "pegboard": pegboard}}).to_string(),
    );
    let found = Diagnosis::of(&home, &[]);
    let found = found.shows("server-twice").finding("server-twice").unwrap();
    assert!(found["found"].as_str().unwrap().contains("`mine`"), "{found}");
    assert_eq!(found["fix"], "pegboard install cursor --take-over");
    // Its fix mends it.
    let fix = found["fix"].as_str().unwrap().split(' ').skip(1);
    let fix: Vec<&str> = fix.chain(["--yes"]).collect();
    home.run(&fix).ends_with(0).prints("taken over: mine");
    Diagnosis::of(&home, &[]).is_well_without("server-twice");
}
