//! `pegboard serve` under a service manager that speaks systemd's protocol, and the unit files.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::home::{Home, until};

/// How long a notification may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a program as systemd does: the listening socket is descriptor 3, and the variables name the process itself. A shell is needed in
/// between, because a process cannot know its id before it exists.
const ACTIVATE: &str = r#"
import os, socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(8)
print(listener.getsockname()[1], flush=True)
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=os.environ.get("FORCED_PID") or str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="http")
os.execv(sys.argv[1], sys.argv[1:])
"#;

/// A service manager: the socket that services notify.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

/// A service. It is killed when it is dropped.
struct Service(Child);

impl Manager {
    fn new(home: &Home) -> Self {
        let path = home.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path }
    }

    /// Starts `pegboard serve` as its service.
    fn start(&self, home: &Home, more: &[(&str, &str)]) -> Service {
        let mut command = home.pegboard(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("NOTIFY_SOCKET", &self.path).envs(more.iter().copied());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Service(command.spawn().unwrap())
    }

    /// The next notification.
    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    /// The next notification that is not about the watchdog.
    fn next_state(&self) -> String {
        loop {
            let message = self.next();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }
}

impl Service {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn systemd_is_told_of_readiness_reload_and_stop() {
    let home = Home::new();
    let manager = Manager::new(&home);
    let mut service = manager.start(&home, &[]);
    let ready = manager.next();
    assert!(ready.starts_with("READY=1\nSTATUS=serving 1 server: demo"), "{ready}");
    service.signal("-HUP");
    let reloading = manager.next();
    let micros = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
    assert!(micros.parse::<u64>().unwrap() > 0);
    assert_eq!(manager.next(), "READY=1");
    service.signal("-TERM");
    assert!(manager.next().starts_with("STOPPING=1\n"));
    assert_eq!(service.0.wait().unwrap().code(), Some(0));
}

#[test]
fn the_watchdog_is_fed_while_the_service_runs_and_not_while_it_hangs() {
    let home = Home::new();
    let manager = Manager::new(&home);
    let service = manager.start(&home, &[("WATCHDOG_USEC", "400000")]);
    assert!(manager.next_state().starts_with("READY=1"));
    for _ in 0..3 {
        assert_eq!(manager.next(), "WATCHDOG=1");
    }
    service.signal("-STOP");
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut buffer = [0; 64];
    // What was sent before it stopped may still be there.
    let silent = (0..5).any(|_| manager.socket.recv(&mut buffer).is_err());
    assert!(silent, "a stopped service feeds no watchdog");
    service.signal("-CONT");
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(manager.next(), "WATCHDOG=1");
}

/// Starts `pegboard serve` with a socket that is open already. Returns its port.
fn activated(home: &Home, pid: Option<&str>, args: &[&str]) -> (Service, u16) {
    let of_home = home.pegboard(&[]);
    let mut command = Command::new("python3");
    command
        .args(["-c", ACTIVATE, of_home.get_program().to_str().unwrap(), "serve"])
        .args(args)
        .env_clear()
        .env("CI", "1")
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path(""))
        .current_dir(home.path(""))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(home.path("err")).unwrap());
    if let Some(pid) = pid {
        command.env("FORCED_PID", pid);
    }
    let mut child = command.spawn().unwrap();
    let mut port = String::new();
    let mut out = child.stdout.take().unwrap();
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        port.push(byte[0].into());
    }
    (Service(child), port.parse().unwrap())
}

fn livez(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_socket_of_systemd_is_served_and_not_inherited_by_servers() {
    let home = Home::new();
    let (service, port) = activated(&home, None, &[]);
    // The kernel has accepted the connection before the service runs.
    assert!(livez(port).starts_with("HTTP/1.1 200"));
    let said = || fs::read_to_string(home.path("err")).unwrap();
    until("it says where it listens", || {
        said().contains(&format!("listening on http://127.0.0.1:{port}/mcp"))
    });
    let sockets = |pid: u32| -> Vec<String> {
        let Ok(folder) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return Vec::new();
        };
        let links = folder.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.map(|link| link.display().to_string()).collect()
    };
    let listening = fs::read_link(format!("/proc/{}/fd/3", service.0.id()))
        .unwrap()
        .display()
        .to_string();
    // A process has the sockets of its parent until it runs its own program.
    until("its servers run, and none of them has the socket", || {
        let children = descendants(service.0.id());
        !children.is_empty() && !children.iter().any(|child| sockets(*child).contains(&listening))
    });
}

/// The processes that a process has started, directly or not.
fn descendants(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let own: Vec<u32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    let below = own.iter().flat_map(|child| descendants(*child));
    own.iter().copied().chain(below.collect::<Vec<_>>()).collect()
}

#[test]
fn sockets_of_another_process_are_not_served() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.config(&format!("[serve]\nlisten = ['{free}']\n"));
    let (_service, port) = activated(&home, Some("1"), &[]);
    let said = || fs::read_to_string(home.path("err")).unwrap();
    until("it says where it listens", || {
        said().contains(&format!("listening on http://{free}/mcp"))
    });
    assert!(!said().contains(&port.to_string()), "{}", said());
}

#[test]
fn a_socket_of_systemd_and_an_option_for_the_address_exclude_each_other() {
    let home = Home::new();
    let (mut service, _) = activated(&home, None, &["--listen", "127.0.0.1:0"]);
    assert_eq!(service.0.wait().unwrap().code(), Some(2));
    let said = fs::read_to_string(home.path("err")).unwrap();
    assert!(said.contains("systemd has opened the sockets already"), "{said}");
}

/// The folder of unit files.
fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd")
}

/// Copies the units of a folder, with a program that exists in place of the installed one.
fn copied(from: &Path, home: &Home, name: &str) -> PathBuf {
    let folder = home.path(name);
    fs::create_dir(&folder).unwrap();
    for unit in ["pegboard.service", "pegboard.socket"] {
        let text = fs::read_to_string(from.join(unit)).unwrap();
        let text = text.replace("/usr/local/bin/pegboard", env!("CARGO_BIN_EXE_pegboard"));
        let text = text.replace("%h/.local/bin/pegboard", env!("CARGO_BIN_EXE_pegboard"));
        fs::write(folder.join(unit), text).unwrap();
    }
    folder
}

/// The output of `systemd-analyze`; `None`, with a note, where it is not installed.
fn analyze(home: &Home, args: &[&str]) -> Option<(bool, String)> {
    let mut command = Command::new("systemd-analyze");
    command
        .args(args)
        .env("XDG_RUNTIME_DIR", home.path(""))
        .env("SYSTEMD_COLORS", "0");
    match command.output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
        }
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a skipped check is told")]
            {
                eprintln!("SKIPPED: systemd-analyze {}: {error}", args.join(" "));
            }
            None
        }
    }
}

#[test]
fn systemd_finds_no_fault_with_the_units() {
    let home = Home::new();
    for (name, from, user) in [("system", units(), false), ("user", units().join("user"), true)] {
        let folder = copied(&from, &home, name);
        let files = ["pegboard.service", "pegboard.socket"].map(|unit| folder.join(unit).display().to_string());
        let mut args = vec!["verify", "--man=no", &files[0], &files[1]];
        if user {
            args.insert(0, "--user");
        }
        if let Some((is_valid, text)) = analyze(&home, &args) {
            assert!(is_valid && text.trim().is_empty(), "{name}: {text}");
        }
    }
}

#[test]
fn the_service_of_the_system_is_exposed_little() {
    let home = Home::new();
    let service = copied(&units(), &home, "system").join("pegboard.service");
    // In tenths. A service without any sandboxing has 96.
    let args = [
        "security",
        "--offline=true",
        "--threshold=30",
        service.to_str().unwrap(),
    ];
    if let Some((is_below, text)) = analyze(&home, &args) {
        assert!(is_below, "{text}");
    }
}
