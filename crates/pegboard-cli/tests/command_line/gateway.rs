//! A running `pegboard serve`, and the smallest HTTP client that can talk to it.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

use serde_json::{Value, json};

use super::home::{Home, until};

/// How long a response may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running gateway. It is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    /// The first address.
    pub(crate) address: String,
    /// How many addresses it listens on.
    pub(crate) addresses: usize,
    /// What it printed when it began to listen.
    pub(crate) document: Value,
    /// The `Authorization` of the user who started it; `None` if tokens are configured.
    pub(crate) owner: Option<String>,
    err: PathBuf,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Starts `pegboard serve` on any free port, with more options, and waits until it listens.
    pub(crate) fn start(home: &Home, options: &[&str]) -> Self {
        Self::start_with(home, options, &[])
    }

    /// Like [`Self::start`], with more environment variables.
    pub(crate) fn start_with(home: &Home, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let listen: &[&str] = match options.contains(&"--listen") || options.contains(&"--no-listen") {
            true => &[],
            false => &["--listen", "127.0.0.1:0"],
        };
        let options = options.iter().filter(|option| **option != "--no-listen");
        let args: Vec<&str> = ["serve", "-o", "json"]
            .iter()
            .chain(listen)
            .chain(options)
            .copied()
            .collect();
        let (out, err) = (home.path("serve.out"), home.path("serve.err"));
        let child = home
            .pegboard(&args)
            .envs(variables.iter().copied())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let mut served = Self {
            child,
            address: String::new(),
            addresses: 0,
            document: Value::Null,
            owner: None,
            err,
        };
        until("the gateway listens", || {
            let has_ended = served.child.try_wait().unwrap().is_some();
            assert!(!has_ended, "it has ended: {}", served.err());
            fs::read_to_string(&out).unwrap().ends_with('\n')
        });
        let document: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
        served.address = document["addresses"][0].as_str().unwrap().to_owned();
        served.addresses = document["addresses"].as_array().unwrap().len();
        let endpoint = document["endpoints"][0].as_str().unwrap();
        assert!(endpoint.ends_with(&format!("://{}/mcp", served.address)), "{endpoint}");
        let token = document["token_file"]
            .as_str()
            .map(|file| fs::read_to_string(file).unwrap());
        served.owner = token.map(|token| format!("Bearer {}", token.trim()));
        served.document = document;
        served
    }

    /// What it has written to stderr so far.
    pub(crate) fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Waits until stderr contains these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        until(&format!("stderr has `{words}`: {}", self.err()), || {
            self.err().contains(words)
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end of the process, and returns its exit code.
    #[track_caller]
    pub(crate) fn code(mut self) -> Option<i32> {
        let mut ended = None;
        until("the gateway ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends one request with more headers, and reads the response.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut stream = self.connect();
        self.write(&mut stream, path, headers, body);
        Response::read(stream)
    }

    /// Sends a request with any method, and reads the response.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut stream = self.connect();
        self.write_as(method, &mut stream, path, headers, body);
        Response::read(stream)
    }

    /// Sends one request and does not read the response.
    pub(crate) fn write(&self, stream: &mut TcpStream, path: &str, headers: &[(&str, &str)], body: &str) {
        self.write_as("POST", stream, path, headers, body);
    }

    /// Requests that change what runs have the token of the user, unless the test names another one.
    pub(crate) fn write_as(
        &self,
        method: &str,
        stream: &mut TcpStream,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        let defaults = [
            ("Host", self.address.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            (
                "Authorization",
                self.owner
                    .as_deref()
                    .filter(|_| changes(method, path))
                    .unwrap_or_default(),
            ),
        ];
        let is_set = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let defaults = defaults.iter().filter(|(name, _)| !is_set(name));
        let given = headers.iter().chain(defaults);
        for (name, value) in given.filter(|(name, value)| !(value.is_empty() && name == &"Authorization")) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // A server that refuses a request may close the connection before it has read all of it.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
    }

    /// Shakes hands as a client of 2025-11-25, and returns the session's id and the result.
    pub(crate) fn initialize(&self, path: &str, headers: &[(&str, &str)]) -> (String, Value) {
        let response = self.post(path, headers, &initialize().to_string());
        assert_eq!(response.status, 200, "{response:?}");
        let session = response.header("mcp-session-id").unwrap_or_default().to_owned();
        let result = response.message()["result"].clone();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        let headers: Vec<(&str, &str)> = [headers, &[("Mcp-Session-Id", session.as_str())]].concat();
        assert_eq!(self.post(path, &headers, &ready).status, 202);
        (session, result)
    }

    /// Sends a request of a session, and returns the response message.
    pub(crate) fn ask(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        session: &str,
        method: &str,
        params: &Value,
    ) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).to_string();
        let headers: Vec<(&str, &str)> = [headers, &[("Mcp-Session-Id", session)]].concat();
        self.post(path, &headers, &request).message()
    }

    /// The names of the tools at a path, for a client without a session; `None` if the request is refused.
    pub(crate) fn tools_if_admitted(&self, path: &str, headers: &[(&str, &str)]) -> Option<Vec<String>> {
        let modern = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
        let response = self.post(path, &[headers, &modern].concat(), &request.to_string());
        if response.status != 200 {
            return None;
        }
        let message = response.message();
        let tools = message["result"]["tools"].as_array()?.iter();
        Some(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
    }

    /// The names of the tools at a path.
    #[track_caller]
    pub(crate) fn tools(&self, path: &str, headers: &[(&str, &str)]) -> Vec<String> {
        self.tools_if_admitted(path, headers)
            .unwrap_or_else(|| panic!("no tools at {path}: {}", self.err()))
    }

    /// Waits until a client gets a tool of this name at `/mcp`.
    #[track_caller]
    pub(crate) fn has_tool(&self, name: &str) {
        until(&format!("there is a tool `{name}`"), || {
            self.tools("/mcp", &[]).iter().any(|tool| tool == name)
        });
    }
}

/// The handshake of a legacy client.
pub(crate) fn initialize() -> Value {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Response {
    /// Reads until the server closes the connection.
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        if let Err(error) = stream.read_to_end(&mut bytes) {
            // A server that refuses a body may reset the connection after the response.
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "no response in time");
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no response: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        Self {
            status,
            head: head.to_owned(),
            body: if is_chunked { joined(body) } else { body.to_owned() },
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The response message: the body, or the last event with data of a stream.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let text = events.map(str::trim).rfind(|data| !data.is_empty());
        let text = text.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Joins the chunks of a body.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        body.push_str(&rest[..size]);
        chunks = rest[size..].trim_start_matches("\r\n");
    }
    body
}

/// Whether a request changes what runs, and so needs a token.
fn changes(method: &str, path: &str) -> bool {
    let verbs = ["reconnect", "enable", "disable", "refresh", "reload"];
    let is_verb = path.rsplit('/').next().is_some_and(|last| verbs.contains(&last));
    path.starts_with("/api/v1/mcp/") && (matches!(method, "PUT" | "DELETE") || (method == "POST" && is_verb))
}
