//! One guard process for all servers: what happens when it is killed or stopped, and which orphans belong to which server.

use std::{path::Path, process::Command};

use pegboard_testkit::{Child, FakeServer, Fault, Tool, is_alive};
use serde_json::{Value, json};

use crate::process_tree::program::{Hook, Program, executable, fake, gone, processes, stat, within};

/// A server with two orphaned children that ignores the end of its parent.
fn with_daemons(folder: &Path, file: &str) -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t"))
        .fault(Fault::OutlivesParent)
        .fault(Fault::SpawnsChildren {
            how: Child::DoubleFork,
            count: 2,
            pid_file: folder.join(file),
        })
}

/// A server below a shell that runs another command beside it.
fn beside(server: &FakeServer, text: &str) -> Value {
    let (program, args) = server.command();
    let mut words = vec![
        "-c".to_owned(),
        format!("({text}) </dev/null >/dev/null 2>&1 & exec \"$0\" \"$@\"").replace('$', "$$"),
        program.display().to_string(),
    ];
    words.extend(args);
    json!({ "command": "/bin/sh", "args": words })
}

fn parent(pid: u32) -> u32 {
    stat(pid).expect("it lives").0
}

fn send(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn one_guard_serves_all_servers_and_ends_with_the_last() {
    let mut program = Program::start(
        Hook::Called,
        |folder| json!({ "a": fake(&with_daemons(folder, "a")), "b": fake(&with_daemons(folder, "b")) }),
    );
    program.status();
    let guard = parent(program.ready("a"));
    assert_eq!(parent(program.ready("b")), guard);
    assert_eq!(parent(guard), program.pid());
    program.tell("close");
    gone(&[guard], 20_000, "the guard");
}

#[test]
fn a_server_that_kills_its_guard_leaves_nothing_behind() {
    let mut program = Program::start(Hook::Called, |folder| {
        let kill = format!(
            "while ! test -e {0}; do sleep 0.02; done; rm {0}; kill -9 $PPID; exec sleep 300",
            folder.join("go").display()
        );
        json!({ "a": beside(&with_daemons(folder, "a"), &kill), "b": fake(&with_daemons(folder, "b")) })
    });
    program.status();
    let mut pids = vec![program.ready("a"), program.ready("b")];
    let guard = parent(pids[0]);
    pids.push(guard);
    pids.extend(program.pids("a", 2));
    pids.extend(program.pids("b", 2));
    // The process that kills the guard belongs to the server too.
    let below = |pid: &u32| stat(*pid).is_some_and(|(parent, _)| pids.contains(&parent));
    let below: Vec<u32> = processes().into_iter().filter(below).collect();
    pids.extend(below);
    std::fs::write(program.folder.path().join("go"), "").unwrap();
    gone(&pids, 20_000, "the guard was killed");
    for (server, before) in [("a", pids[0]), ("b", pids[1])] {
        let again = program.ready_after(server, before);
        assert_ne!(parent(again), guard);
        assert_eq!(program.tell(&format!("call {server}.t"))["is_error"], false);
    }
}

#[test]
fn the_end_of_a_guard_is_told_as_the_end_of_its_servers() {
    let mut program = Program::start(Hook::Called, |folder| {
        let mut server = fake(&with_daemons(folder, "a"));
        // Keeps the error in the status for the rest of the test.
        server["restart"] = json!({ "backoff": ["1h"] });
        json!({ "a": server })
    });
    program.status();
    pegboard_testkit::kill(parent(program.ready("a")));
    let error = |program: &mut Program| {
        let status = program.tell("status");
        status["servers"][0]["last_error"].to_string()
    };
    let told = within(10_000, || error(&mut program).contains("its guard ended by signal: 9"));
    assert!(told, "{}", error(&mut program));
}

#[test]
fn a_server_that_ends_takes_its_own_daemons_with_it_and_no_others() {
    let mut program = Program::start(
        Hook::Called,
        |folder| json!({ "a": fake(&with_daemons(folder, "a")), "b": fake(&with_daemons(folder, "b")) }),
    );
    program.status();
    let (a, b) = (program.ready("a"), program.ready("b"));
    let (of_a, of_b) = (program.pids("a", 2), program.pids("b", 2));
    pegboard_testkit::kill(a);
    gone(&of_a, 20_000, "daemons of a");
    assert!(of_b.iter().all(|pid| is_alive(*pid)));
    // This holds after `a` was restarted and killed again as well.
    let again = program.ready_after("a", a);
    let of_a = program.pids("a", 4);
    pegboard_testkit::kill(again);
    gone(&of_a, 20_000, "daemons of a");
    assert!(of_b.iter().all(|pid| is_alive(*pid)) && is_alive(b));
    assert_eq!(program.tell("call b.t")["is_error"], false);
}

#[test]
fn where_processes_cannot_be_told_apart_each_server_has_a_guard_of_its_own() {
    let mut command = Command::new("prlimit");
    // Guards tag processes by a resource limit; this one leaves no room for tags.
    command.arg("--locks=100:100").arg(executable());
    let mut program = Program::start_by(
        command,
        Hook::Called,
        |folder| json!({ "a": fake(&with_daemons(folder, "a")), "b": fake(&with_daemons(folder, "b")) }),
    );
    program.status();
    let (a, b) = (program.ready("a"), program.ready("b"));
    assert_ne!(parent(a), parent(b));
    let (of_a, mut pids) = (program.pids("a", 2), program.pids("b", 2));
    pegboard_testkit::kill(a);
    gone(&of_a, 20_000, "daemons of a");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    // A hanging guard is told from its server here as well.
    send("-STOP", parent(b));
    pids.extend([b, parent(b)]);
    program.tell("close");
    gone(&pids, 20_000, "all of b");
}

#[test]
fn a_guard_that_hangs_costs_its_own_servers_some_seconds_and_others_nothing() {
    let mut program = Program::start(Hook::Called, |folder| json!({ "a": fake(&with_daemons(folder, "a")) }));
    program.status();
    let server = program.ready("a");
    let (guard, daemons) = (parent(server), program.pids("a", 2));
    send("-STOP", guard);
    pegboard_testkit::kill(server);
    // The guard's processes are found without it; then the next start waits for it in vain.
    gone(&daemons, 20_000, "daemons");
    let again = program.ready_after("a", server);
    assert_ne!(parent(again), guard);
    assert_eq!(program.tell("call a.t")["is_error"], false);
    gone(&[guard], 20_000, "the guard that hangs");
}

#[test]
fn a_guard_that_hangs_does_not_hang_the_end_of_a_board() {
    let mut program = Program::start(Hook::Called, |folder| {
        let server = with_daemons(folder, "a")
            .fault(Fault::IgnoresEof)
            .fault(Fault::IgnoresTerm);
        json!({ "a": fake(&server) })
    });
    program.status();
    let server = program.ready("a");
    let mut pids = program.pids("a", 2);
    pids.extend([server, parent(server)]);
    send("-STOP", parent(server));
    let before = tokio::time::Instant::now();
    program.tell("close");
    let took = before.elapsed();
    assert!(took.as_secs_f64() < 15.0, "{took:?}");
    gone(&pids, 20_000, "the guard hangs");
}

#[test]
fn a_server_that_has_a_guard_of_its_own_is_ended_with_all_below_it() {
    for is_killed in [false, true] {
        let mut program = Program::start(Hook::Called, |folder| {
            let inner = folder.join("inner.json");
            let servers = json!({ "servers": { "i": fake(&with_daemons(folder, "inner")) } });
            std::fs::write(&inner, servers.to_string()).unwrap();
            let text = format!(
                "sleep 300 | exec {} {} > {}",
                executable().display(),
                inner.display(),
                folder.join("status").display()
            );
            json!({ "a": beside(&FakeServer::new("fx"), &text), "b": fake(&with_daemons(folder, "b")) })
        });
        program.status();
        let (server, other) = (program.ready("a"), program.ready("b"));
        let mut pids = program.pids("inner", 2);
        // A double fork leaves a child of the nearest guard, which is the inner one.
        let inner = parent(pids[0]);
        assert_ne!(inner, parent(server));
        pids.push(inner);
        if is_killed {
            pegboard_testkit::kill(parent(server));
            pids.push(other);
        } else {
            pegboard_testkit::kill(server);
        }
        pids.push(server);
        gone(&pids, 20_000, &format!("{is_killed}"));
        assert!(is_killed || is_alive(other));
    }
}

#[test]
fn fifty_starts_and_stops_leave_no_file_and_no_process() {
    let mut program = Program::start(
        Hook::Called,
        |folder| json!({ "a": fake(&with_daemons(folder, "a")), "b": fake(&FakeServer::new("fx")) }),
    );
    program.status();
    program.tell("close");
    let pid = program.pid();
    let files = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let threads = || {
        let names = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let names = names.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("pegboard-guard")).count()
    };
    let children = || {
        let all = processes().into_iter();
        all.filter(|child| stat(*child).is_some_and(|(parent, _)| parent == pid))
            .count()
    };
    assert!(within(5000, || children() == 0 && threads() == 0));
    program.tell("cycle");
    assert!(within(5000, || children() == 0 && threads() == 0));
    let before = files();
    for _ in 0..50 {
        program.tell("cycle");
    }
    let is_clean = || children() == 0 && threads() == 0 && files() <= before;
    assert!(
        within(5000, is_clean),
        "{} children, {} threads, {} files after {before}",
        children(),
        threads(),
        files()
    );
    gone(&program.pids("a", 102), 20_000, "daemons");
}

#[test]
fn a_guard_that_was_stopped_ends_all_servers_when_the_program_is_killed() {
    let mut program = Program::start(Hook::Called, |folder| json!({ "a": fake(&with_daemons(folder, "a")) }));
    program.status();
    let mut pids = vec![program.ready("a")];
    pids.push(parent(pids[0]));
    pids.extend(program.pids("a", 2));
    send("-STOP", pids[1]);
    program.kill();
    gone(&pids, 20_000, "the guard was stopped and the program killed");
}

#[test]
fn many_servers_with_many_daemons_end_together() {
    const SERVERS: usize = 20;
    const DAEMONS: u32 = 10;
    let mut program = Program::start(Hook::Called, |folder| {
        let servers = (0..SERVERS).map(|number| {
            let server = FakeServer::new("fx").fault(Fault::SpawnsChildren {
                how: Child::DoubleFork,
                count: DAEMONS,
                pid_file: folder.join(number.to_string()),
            });
            (format!("s{number}"), fake(&server))
        });
        Value::Object(servers.collect())
    });
    program.status();
    let pids: Vec<u32> = (0..SERVERS)
        .flat_map(|number| program.pids(&number.to_string(), DAEMONS as usize))
        .collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    program.tell("close");
    gone(&pids, 3000, "daemons of servers that were shut down");
}
