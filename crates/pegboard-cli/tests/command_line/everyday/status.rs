//! `pegboard status` for scripts and for people who wait.

use std::process::{Command, Stdio};

use pegboard_testkit::{FakeServer, Tool};

use crate::home::{Home, Ran};

fn good() -> FakeServer {
    FakeServer::new("good").tool(Tool::new("echo").echoes())
}

#[test]
fn a_check_fails_if_one_server_is_not_ready() {
    let home = Home::new();
    let server = home.server("good", good());
    let broken = "--server=broken=/nowhere/program";
    home.run(&["status", "--check", &server]).ends_with(0);
    home.run(&["status", &server, broken]).ends_with(0);
    home.run(&["status", "--check", &server, broken])
        .ends_with(3)
        .prints("broken");
    home.run(&["status", "--check", "-o", "json", &server, broken])
        .ends_with(3)
        .json();
}

#[test]
fn a_wait_ends_when_the_servers_are_ready_or_the_time_is_up() {
    let home = Home::new();
    home.run(&["status", "--wait", "--timeout", "60s", &home.server("good", good())])
        .ends_with(0)
        .prints("ready");
    let gate = home.path("gate");
    // The program appears after the first attempt.
    let later = home.write(
        "later.sh",
        "#!/bin/sh\n[ -e gate ] || { touch gate; exit 1; }\nexec $0.real\n",
    );
    let real = home.command_of("good", good());
    home.write("later.sh.real", &format!("#!/bin/sh\nexec {real}\n"));
    for script in ["later.sh", "later.sh.real"] {
        let mut chmod = Command::new("chmod");
        assert!(chmod.arg("755").arg(home.path(script)).status().unwrap().success());
    }
    home.run(&[
        "status",
        "--wait",
        "--timeout",
        "60s",
        &format!("--server=late={}", later.display()),
    ])
    .ends_with(0)
    .prints("ready");
    assert!(gate.exists());
}

#[test]
fn a_watch_shows_every_change_until_it_is_stopped() {
    let home = Home::new();
    let server = home.server("good", good());
    let ran = home.run(&["status", "--watch", "--timeout", "6s", "-o", "json", &server]);
    assert_eq!(
        ran.ends_with(0)
            .out
            .lines()
            .next()
            .map(|line| line.contains("\"state\":\"ready\"")),
        Some(true),
        "{ran:?}"
    );
    let mut child = home.pegboard(&["status", "--watch", &server]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"NAME");
    let mut kill = Command::new("kill");
    assert!(kill.arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    Ran::end_of(child).ends_with(130);
}
