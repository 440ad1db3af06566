//! Nothing of a server outlives `torture`, also if a person interrupts it, its terminal is closed or it is killed.

use std::{
    fs,
    process::{Child, Stdio},
};

use pegboard_testkit::is_alive;
use rustix::process::{Pid, Signal, kill_process};

use super::python;
use crate::home::{Home, Ran, until};

/// Starts a process in a session of its own, writes its id to a file, and answers nothing.
const DAEMON: &str = "import subprocess, sys
child = subprocess.Popen(['/bin/sleep', '300'], start_new_session=True)
open(sys.argv[1] + '.new', 'w').write(str(child.pid))
__import__('os').rename(sys.argv[1] + '.new', sys.argv[1])
sys.stdin.read()
";

/// Starts a process in the background, of its own process group, and answers nothing. The variables of both are cleared.
const WITHOUT_VARIABLES: &str = "import os, subprocess, sys
if 'IS_CLEARED' not in os.environ:
    os.execve(sys.executable, [sys.executable] + sys.orig_argv[1:], {'IS_CLEARED': '1'})
child = subprocess.Popen(['/bin/sleep', '300'])
open(sys.argv[1] + '.new', 'w').write(str(child.pid))
os.rename(sys.argv[1] + '.new', sys.argv[1])
sys.stdin.read()
";

/// A run whose server has started a process, and the id of that process.
fn running(home: &Home, server: &str) -> (Child, u32) {
    let (script, pid) = (home.write("server.py", server), home.path("pid"));
    let server = format!("{} -I -S {} {}", python(), script.display(), pid.display());
    let mut torture = home.pegboard(&["torture", &server, "--era", "legacy"]);
    let torture = torture.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the server has started its daemon", || pid.exists());
    let daemon = fs::read_to_string(&pid).unwrap().parse().unwrap();
    assert!(is_alive(daemon));
    (torture, daemon)
}

#[test]
fn a_process_in_a_session_of_its_own_does_not_outlive_an_interrupted_run() {
    let home = Home::new();
    let (torture, daemon) = running(&home, DAEMON);
    kill_process(Pid::from_child(&torture), Signal::INT).unwrap();
    Ran::end_of(torture).ends_with(130);
    until("the daemon of the server is gone", || !is_alive(daemon));
}

#[test]
fn no_process_of_the_server_outlives_a_run_that_is_killed_or_whose_terminal_is_closed() {
    for signal in [Signal::HUP, Signal::KILL] {
        for server in [DAEMON, WITHOUT_VARIABLES] {
            let home = Home::new();
            let (torture, daemon) = running(&home, server);
            kill_process(Pid::from_child(&torture), signal).unwrap();
            assert_eq!(Ran::end_of(torture).code, None, "it was ended by {signal:?}");
            until("the process that the server started is gone", || !is_alive(daemon));
        }
    }
}
