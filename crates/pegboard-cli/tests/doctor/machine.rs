//! Findings about the machine: what daemons left behind.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::PathBuf,
    thread,
};

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::{
    diagnosis::{Diagnosis, QUICK, fake, well},
    home::Home,
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
