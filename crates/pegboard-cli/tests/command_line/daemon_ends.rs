//! A daemon that ends between its answer to the hello and the request of a command.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Stdio,
};

use pegboard_testkit::{FakeServer, Tool};

use super::{
    daemon::RUN,
    gateway::Served,
    home::{Home, Ran},
};

/// The socket of the home's daemon.
pub(crate) fn socket(home: &Home) -> PathBuf {
    let run = fs::read_dir(home.path(RUN)).unwrap();
    let mut paths = run.map(|entry| entry.unwrap().path());
    paths
        .find(|path| path.extension().is_some_and(|end| end == "sock"))
        .unwrap()
}

/// The answer of the daemon to a request at its socket.
pub(crate) fn get(socket: &PathBuf, path: &str) -> String {
    let mut answer = String::new();
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn every_command_does_without_a_daemon_that_ends_after_its_hello() {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .resource("a://b", "its text")
        .prompt("greet", "hello there");
    home.config(&home.entry("fx", fx, "stop_timeout = '200ms'"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let socket = socket(&home);
    let hello = get(&socket, "/local/hello");
    served.signal("KILL");
    served.code();
    for (args, printed, told) in [
        (&["call", "fx.read"][..], "read it", "the daemon has ended"),
        (&["tools"], "fx.read", "the daemon has ended"),
        (&["resources"], "a://b", "the daemon has ended"),
        (&["resources", "read", "a://b"], "its text", "the daemon has ended"),
        (&["prompts"], "greet", "the daemon has ended"),
        (&["prompts", "get", "greet"], "hello there", "the daemon has ended"),
        (&["status"], "ready", "the daemon did not report its status"),
    ] {
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let mut command = home.pegboard(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(hello.as_bytes()).unwrap();
        drop((stream, listener));
        Ran::end_of(child).ends_with(0).says(told).prints(printed);
    }
}
