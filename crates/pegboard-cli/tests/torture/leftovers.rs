//! Nothing of a server outlives `torture`, also if a person interrupts it.

use std::{fs, process::Stdio};

use pegboard_testkit::is_alive;

use super::{
    home::{Home, Ran, until},
    python,
};

/// Starts a process in a session of its own, writes its id to a file, and answers nothing.
const DAEMON: &str = "import subprocess, sys
child = subprocess.Popen(['/bin/sleep', '300'], start_new_session=True)
open(sys.argv[1] + '.new', 'w').write(str(child.pid))
__import__('os').rename(sys.argv[1] + '.new', sys.argv[1])
sys.stdin.read()
";

#[test]
fn a_process_in_a_session_of_its_own_does_not_outlive_an_interrupted_run() {
    let home = Home::new();
    let (script, pid) = (home.write("server.py", DAEMON), home.path("pid"));
    let server = format!("{} -I -S {} {}", python(), script.display(), pid.display());
    let mut torture = home.pegboard(&["torture", &server, "--era", "legacy"]);
    let torture = torture.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the server has started its daemon", || pid.exists());
    let daemon = fs::read_to_string(&pid).unwrap().parse().unwrap();
    assert!(is_alive(daemon));
    rustix::process::kill_process(rustix::process::Pid::from_child(&torture), rustix::process::Signal::INT).unwrap();
    Ran::end_of(torture).ends_with(130);
    until("the daemon of the server is gone", || !is_alive(daemon));
}
