//! A program that is killed takes its servers with it, if it has called the hook.

use std::{path::Path, time::Duration};

use pegboard_testkit::{Child, FakeServer, Fault, read_pids};
use serde_json::{Value, json};

use crate::process_tree::program::{Hook, Program, UnrelatedProcess, fake, gone, processes, stat};

/// The number of kills per test. `PEGBOARD_KILLS` overrides it.
const ROUNDS: u64 = 20;

fn rounds() -> u64 {
    let set = std::env::var("PEGBOARD_KILLS").ok();
    set.and_then(|set| set.parse().ok()).unwrap_or(ROUNDS)
}

/// Three servers that resist every way of ending them.
fn stubborn(folder: &Path) -> Value {
    let server = |how| {
        let server = FakeServer::new("fx")
            .fault(Fault::IgnoresEof)
            .fault(Fault::IgnoresTerm)
            .fault(Fault::OutlivesParent)
            .fault(Fault::SpawnsChildren {
                how,
                count: 2,
                pid_file: folder.join("pids"),
            })
            .log(folder.join("log"));
        fake(&server)
    };
    json!({ "a": server(Child::SameGroup), "b": server(Child::Setsid), "c": server(Child::DoubleFork) })
}

/// All processes with the folder on their command line: shims and servers.
fn named_after(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap().as_bytes();
    let names = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(folder.len()).any(|part| part == folder)
    };
    processes().into_iter().filter(names).collect()
}

#[test]
fn nothing_outlives_a_program_that_was_killed() {
    let mut stranger = UnrelatedProcess::start();
    for round in 0..rounds() {
        let mut program = Program::start(Hook::Called, stubborn);
        let status = program.status();
        let mut pids = program.pids("pids", 6);
        for server in status["servers"].as_array().unwrap() {
            let server = u32::try_from(server["pid"].as_u64().expect("it is ready")).unwrap();
            let (shim, _) = stat(server).unwrap();
            pids.extend([server, shim]);
        }
        program.kill();
        gone(&pids, 20_000, &format!("round {round}"));
    }
    assert!(stranger.is_well());
}

#[test]
fn nothing_outlives_a_program_that_was_killed_while_it_started_servers() {
    for round in 0..rounds() {
        let mut program = Program::start(Hook::Called, stubborn);
        std::thread::sleep(Duration::from_millis(round * 3 % 90));
        program.kill();
        let folder = program.folder.path();
        let mut pids = named_after(folder);
        // A process that was started at the last moment writes its pid a moment later.
        std::thread::sleep(Duration::from_millis(500));
        pids.extend(named_after(folder));
        pids.extend(read_pids(folder.join("pids")));
        gone(&pids, 20_000, &format!("round {round}"));
    }
}
