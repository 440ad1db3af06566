//! A small blocking client: raw JSON over each transport, so that the tests see the exact messages. Every wait has a
//! timeout.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// The demo server as a process. It is killed when the test is over.
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pegboard"))
            .arg("demo-server")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines }
    }

    /// Starts a network transport. Returns the address that it prints.
    pub(crate) fn listen(transport: &str) -> (Self, Address) {
        let server = Self::start(&["--transport", transport]);
        let line = server.lines.recv_timeout(WAIT).unwrap();
        let url = line.strip_prefix("listening on ").unwrap().to_owned();
        let address = url.split('/').nth(2).unwrap().parse().unwrap();
        (server, Address { url, address })
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn receive(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(WAIT).unwrap()).unwrap()
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        let answer = self.receive();
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the process to exit. Returns its remaining output.
    pub(crate) fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(WAIT) {
                Ok(line) => rest.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return (self.child.wait().unwrap(), rest),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the server does not end"),
            }
        }
    }

    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address of a server.
pub(crate) struct Address {
    pub(crate) url: String,
    address: SocketAddr,
}

impl Address {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream
    }

    /// Sends one request and reads the head of the response.
    pub(crate) fn request(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = self.connect();
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // This fails if the server refuses the request by its head and closes the connection.
        let _ = stream.write_all(body.as_bytes());
        Response::read(BufReader::new(stream))
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Response {
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        self.request("POST", path, &all, &message.to_string())
    }
}

/// A response whose body is read on demand.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    /// The decoded part of a chunked body that was not consumed yet.
    unpacked: String,
}

impl Response {
    fn read(mut reader: BufReader<TcpStream>) -> Self {
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = line();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Self {
            status,
            headers,
            reader,
            unpacked: String::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }

    pub(crate) fn text(&mut self) -> String {
        if self.header("transfer-encoding") == Some("chunked") {
            while self.unpack() {}
            return std::mem::take(&mut self.unpacked);
        }
        let mut text = String::new();
        self.reader.read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn json(&mut self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}: {text}", self.status))
    }

    /// The next event of a stream: its name and its data. `None` at the end.
    pub(crate) fn event(&mut self) -> Option<(String, String)> {
        let end = loop {
            match self.unpacked.find("\n\n") {
                Some(end) => break end,
                None if self.unpack() => {}
                None => return None,
            }
        };
        let event: String = self.unpacked.drain(..end + 2).collect();
        let field = |name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        match (field("event:"), field("data:")) {
            (Some(name), Some(data)) => Some((name, data)),
            // A keep-alive comment.
            _ => self.event(),
        }
    }

    pub(crate) fn message(&mut self) -> Option<Value> {
        self.event().map(|(name, data)| {
            assert_eq!(name, "message");
            serde_json::from_str(&data).unwrap()
        })
    }

    /// Reads one chunk of a chunked body. Returns `false` at the end.
    fn unpack(&mut self) -> bool {
        let mut size = String::new();
        self.reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        if size == 0 || self.reader.read_exact(&mut chunk).is_err() {
            return false;
        }
        self.unpacked.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        true
    }
}

/// A WebSocket with text frames under 64 KiB, which is all the tests need.
pub(crate) struct Socket {
    stream: BufReader<TcpStream>,
}

impl Socket {
    pub(crate) fn open(address: &Address, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut all = vec![
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        all.extend(headers);
        let mut head = "GET / HTTP/1.1\r\nConnection: Upgrade\r\n".to_owned();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", address.address));
        }
        for (name, value) in all {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = address.connect();
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let response = Response::read(BufReader::new(stream));
        if response.status != 101 {
            return Err(response.status);
        }
        if headers.iter().any(|(name, _)| *name == "Sec-WebSocket-Protocol") {
            assert_eq!(response.header("sec-websocket-protocol"), Some("mcp"));
        }
        Ok(Self {
            stream: response.reader,
        })
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string();
        // A final text frame. The mask is zero, so that the payload needs no masking.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.get_mut().write_all(&frame).unwrap();
    }

    /// The next frame: its opcode and its payload.
    pub(crate) fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.stream.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            short => usize::from(short),
        };
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).unwrap();
        (head[0] & 0x0f, content)
    }

    pub(crate) fn receive(&mut self) -> Value {
        let (kind, content) = self.frame();
        assert_eq!(kind, 1, "a text frame");
        serde_json::from_slice(&content).unwrap()
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive()
    }
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

/// A request of 2026-07-28.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    request(id, method, params)
}

pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    request(
        0,
        "initialize",
        json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}),
    )
}

pub(crate) fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}
