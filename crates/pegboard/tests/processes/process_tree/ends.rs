//! A server that is stopped, dropped or exits by itself takes all its descendants with it.

use pegboard_testkit::{Child, FakeServer, Fault, is_alive};
use serde_json::json;

use crate::process_tree::program::{BOTH, Program, UnrelatedProcess, fake, gone, script};

const WAYS: [Child; 3] = [Child::SameGroup, Child::Setsid, Child::DoubleFork];

#[test]
fn a_closed_board_leaves_no_descendant_however_it_was_forked() {
    let mut stranger = UnrelatedProcess::start();
    for hook in BOTH {
        for how in WAYS {
            let mut program = Program::start(hook, |folder| {
                let server = FakeServer::new("fx").fault(Fault::SpawnsChildren {
                    how,
                    count: 2,
                    pid_file: folder.join("pids"),
                });
                json!({ "fx": fake(&server) })
            });
            let server = program.status()["servers"][0]["pid"].as_u64().expect("it is ready");
            let mut pids = program.pids("pids", 2);
            assert!(pids.iter().all(|pid| is_alive(*pid)), "{hook:?} {how:?}");
            pids.push(u32::try_from(server).unwrap());
            program.tell("close");
            gone(&pids, 3000, &format!("{hook:?} {how:?}"));
        }
    }
    assert!(stranger.is_well());
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_is_asked_to_end() {
    for hook in BOTH {
        let mut program = Program::start(hook, |folder| {
            let text = format!(
                "trap 'echo $$ > {}; exit 0' TERM; while :; do sleep 0.1; done",
                folder.join("pids").display()
            );
            let mut server = script(&text);
            server["stop_timeout"] = "300ms".into();
            server["connect_timeout"] = "500ms".into();
            server["restart"] = false.into();
            json!({ "fx": server })
        });
        assert_eq!(program.status()["servers"][0]["state"], "down");
        gone(&program.pids("pids", 1), 3000, &format!("{hook:?}"));
    }
}

#[test]
fn a_server_that_ignores_all_requests_to_end_is_killed_in_five_seconds() {
    for hook in BOTH {
        let mut program = Program::start(hook, |folder| {
            let children = |how| Fault::SpawnsChildren {
                how,
                count: 1,
                pid_file: folder.join("pids"),
            };
            let server = FakeServer::new("fx").fault(Fault::IgnoresEof).fault(Fault::IgnoresTerm);
            let server = WAYS.into_iter().fold(server, |server, how| server.fault(children(how)));
            json!({ "fx": fake(&server) })
        });
        let server = program.status()["servers"][0]["pid"].as_u64().expect("it is ready");
        let mut pids = program.pids("pids", 3);
        pids.push(u32::try_from(server).unwrap());
        let before = tokio::time::Instant::now();
        program.tell("close");
        let took = before.elapsed();
        assert!((3.9..5.0).contains(&took.as_secs_f64()), "{hook:?}: {took:?}");
        gone(&pids, 3000, &format!("{hook:?}"));
    }
}

#[test]
fn a_server_that_forks_a_daemon_and_exits_leaves_no_daemon() {
    for hook in BOTH {
        for keeps_stdout in [false, true] {
            let mut program = Program::start(hook, |folder| {
                let server = FakeServer::new("fx").fault(Fault::ForksAndExits {
                    pid_file: folder.join("pids"),
                    keeps_stdout,
                });
                json!({ "fx": fake(&server) })
            });
            let status = program.status();
            assert_eq!(status["servers"][0]["state"], "down");
            gone(&program.pids("pids", 1), 3000, &format!("{hook:?} {keeps_stdout}"));
        }
    }
}

#[test]
fn a_runtime_that_is_dropped_without_shutdown_leaves_nothing() {
    let mut stranger = UnrelatedProcess::start();
    for hook in BOTH {
        let mut program = Program::start(hook, |folder| {
            let server = |how| {
                FakeServer::new("fx")
                    .fault(Fault::IgnoresEof)
                    .fault(Fault::IgnoresTerm)
                    .fault(Fault::SpawnsChildren {
                        how,
                        count: 1,
                        pid_file: folder.join("pids"),
                    })
            };
            let servers = WAYS.map(|how| fake(&server(how)));
            json!({ "a": servers[0], "b": servers[1], "c": servers[2] })
        });
        let status = program.status();
        let servers = status["servers"].as_array().unwrap().iter();
        let servers = servers.map(|server| u32::try_from(server["pid"].as_u64().unwrap()).unwrap());
        let mut pids = program.pids("pids", 3);
        pids.extend(servers);
        let before = tokio::time::Instant::now();
        program.tell("drop");
        let took = before.elapsed();
        assert!(took.as_secs_f64() < 1.0, "{hook:?}: dropping took {took:?}");
        gone(&pids, 20_000, &format!("{hook:?}"));
    }
    assert!(stranger.is_well());
}

#[test]
fn a_server_that_kills_its_whole_group_leaves_nobody_outside_of_it() {
    for hook in BOTH {
        let mut program = Program::start(hook, |folder| {
            let file = folder.join("pids");
            let text = format!(
                "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! > {}; kill -9 0",
                file.display()
            );
            json!({ "fx": script(&text) })
        });
        let status = program.status();
        let message = status["servers"][0]["last_error"]["message"].as_str().unwrap();
        assert!(message.contains("killed by signal 9"), "{hook:?}: {message}");
        gone(&program.pids("pids", 1), 20_000, &format!("{hook:?}"));
    }
}

#[test]
fn the_end_of_a_server_is_told_exactly() {
    let cases = [
        ("exit 0", "exit code 0"),
        ("exit 7", "exit code 7"),
        ("exit 127", "exit code 127"),
        ("exit 143", "exit code 143"),
        ("kill -9 $$", "killed by signal 9"),
        ("kill -15 $$", "killed by signal 15"),
        ("kill -13 $$", "killed by signal 13"),
        ("kill -11 $$", "killed by signal 11"),
        ("kill -6 $$", "killed by signal 6"),
        // Not SIGINT: if the tests run in the background, their shell has set it to be ignored, also for all descendants.
        ("kill -10 $$", "killed by signal 10"),
        ("kill -34 $$", "killed by signal 34"),
    ];
    for hook in BOTH {
        let mut program = Program::start(hook, |_| {
            let servers = cases.iter().enumerate();
            let servers = servers.map(|(at, (text, _))| (format!("s{at:02}"), script(&format!("read line; {text}"))));
            serde_json::Value::Object(servers.collect())
        });
        let status = program.status();
        for (at, (text, expected)) in cases.iter().enumerate() {
            let message = status["servers"][at]["last_error"]["message"].as_str().unwrap();
            assert!(message.contains(expected), "{hook:?} {text}: {message}");
        }
    }
}

#[test]
fn a_program_that_cannot_be_started_is_told_in_the_same_words() {
    let mut told = BOTH.map(|hook| {
        let mut program = Program::start(hook, |folder| {
            let plain = folder.join("plain");
            std::fs::write(&plain, "text").unwrap();
            let orphan = folder.join("orphan");
            std::fs::write(&orphan, "#!/nonexistent/interpreter\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&orphan, mode).unwrap();
            json!({
                "a": { "command": "/nonexistent/program" },
                "b": { "command": "no-such-program" },
                "c": { "command": plain },
                "d": { "command": orphan },
                "e": { "command": "sh", "cwd": "/nonexistent" },
            })
        });
        let status = program.status();
        let folder = program.folder.path().display().to_string();
        let servers = status["servers"].as_array().unwrap().iter();
        let errors = servers.map(|server| server["last_error"]["message"].as_str().unwrap().replace(&folder, "…"));
        errors.collect::<Vec<_>>()
    });
    let [hooked, unhooked] = &mut told;
    assert_eq!(hooked, unhooked);
    for (error, expected) in hooked
        .iter()
        .zip(["not found", "not found", "may not", "interpreter", "folder"])
    {
        assert!(error.contains(expected), "{error}");
    }
}
