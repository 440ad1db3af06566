//! The server of all measurements. It searches each request for three keywords and copies bytes, so that its own cost is negligible.
//!
//! `echo stdio|http [--tools N] [--page N] [--listeners N] [--number N]`; the last only makes command lines
//! differ. Over HTTP it prints the address of each listener on its own line. A call's argument `n` is the number of bytes of text in the
//! response, as escaped JSON.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, OnceLock},
};

use pegboard_benches::options;

fn main() -> std::io::Result<()> {
    let server = Arc::new(Server::new(
        options::number("--tools", 1),
        options::number("--page", 500),
    ));
    match std::env::args().nth(1).as_deref() {
        Some("http") => http(&server, options::number("--listeners", 1)),
        _ => stdio(&server),
    }
}

struct Server {
    pages: Vec<String>,
    /// Created at the first call, to keep starts cheap.
    text: OnceLock<String>,
}

/// A typical tool result: records with quotes and newlines.
const RECORD: &str =
    r#"{\"file\": \"docs/guide.md\", \"line\": 7, \"words\": \"a board with pegs, and on each peg a tool\"}\n"#;

impl Server {
    fn new(tools: usize, page: usize) -> Self {
        let tools: Vec<String> = (0..tools).map(tool).collect();
        let pages = tools.chunks(page.max(1)).map(|tools| tools.join(","));
        Self {
            pages: pages.collect(),
            text: OnceLock::new(),
        }
    }

    /// The response to a request; `None` for a notification.
    fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(id) = word_after(request, b"\"id\":") else {
            return false;
        };
        let method = word_after(request, b"\"method\":\"").unwrap_or_default();
        let modern = find(request, b"io.modelcontextprotocol/protocolVersion").is_some();
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id);
        out.extend_from_slice(br#","result":{"#);
        if modern {
            out.extend_from_slice(br#""resultType":"complete","#);
        }
        match method {
            b"tools/call" => self.call(request, out),
            b"tools/list" => self.list(request, out),
            b"initialize" => out.extend_from_slice(
                br#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}"#,
            ),
            b"server/discover" => out.extend_from_slice(
                br#""supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1"}},"ttlMs":3600000,"cacheScope":"public""#,
            ),
            _ => out.extend_from_slice(br#""ok":true"#),
        }
        out.extend_from_slice(b"}}");
        true
    }

    fn call(&self, request: &[u8], out: &mut Vec<u8>) {
        let wanted = word_after(request, b"\"n\":").and_then(number).unwrap_or(100);
        let text = self.text.get_or_init(|| RECORD.repeat((4 << 20) / RECORD.len()));
        let mut end = wanted.min(text.len());
        while text.as_bytes()[..end].ends_with(b"\\") {
            end -= 1;
        }
        out.extend_from_slice(br#""content":[{"type":"text","text":""#);
        out.extend_from_slice(&text.as_bytes()[..end]);
        out.extend_from_slice(br#""}],"isError":false"#);
    }

    fn list(&self, request: &[u8], out: &mut Vec<u8>) {
        let page = word_after(request, b"\"cursor\":\"").and_then(number).unwrap_or(0);
        out.extend_from_slice(br#""tools":["#);
        out.extend_from_slice(self.pages.get(page).map_or(b"".as_slice(), |page| page.as_bytes()));
        out.push(b']');
        if page + 1 < self.pages.len() {
            out.extend_from_slice(format!(r#","nextCursor":"{}""#, page + 1).as_bytes());
        }
    }
}

fn tool(number: usize) -> String {
    format!(
        r#"{{"name":"echo_{number:05}","description":"Gives back as much text as is asked for. This is number {number} of many, and each says a little about itself so that a model can choose.","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer","minimum":0,"description":"How many bytes"}},"kind":{{"type":"string","enum":["plain","records"],"description":"What the text looks like"}},"paths":{{"type":"array","items":{{"type":"string"}},"description":"Where to look"}},"deep":{{"type":"boolean","default":false}}}},"required":["n"]}},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

fn stdio(server: &Server) -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let (mut line, mut out) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if server.answer(&line, &mut out) {
            out.push(b'\n');
        }
        // All requests in the buffer are answered with one write.
        if !input.buffer().contains(&b'\n') || out.len() > 1 << 20 {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
    }
}

fn http(server: &Arc<Server>, listeners: usize) -> std::io::Result<()> {
    let mut threads = Vec::new();
    for _ in 0..listeners {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        println!("{}", listener.local_addr()?);
        let server = server.clone();
        threads.push(std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || converse(&server, stream));
            }
        }));
    }
    // The server ends with its parent.
    std::io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

fn converse(server: &Server, stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(64 << 10, stream.try_clone()?);
    let mut output = stream;
    let (mut line, mut body, mut answer, mut out) = (String::new(), Vec::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let is_post = line.starts_with("POST");
        let mut length = 0;
        loop {
            line.clear();
            input.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        input.read_exact(&mut body)?;
        answer.clear();
        out.clear();
        if !is_post {
            out.extend_from_slice(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        } else if server.answer(&body, &mut answer) {
            let session = if find(&body, b"\"initialize\"").is_some() {
                "Mcp-Session-Id: one\r\n"
            } else {
                ""
            };
            out.extend_from_slice(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n",
                    answer.len()
                )
                .as_bytes(),
            );
            out.extend_from_slice(&answer);
        } else {
            out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        }
        output.write_all(&out)?;
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The word or number that follows `what`.
fn word_after<'a>(text: &'a [u8], what: &[u8]) -> Option<&'a [u8]> {
    let rest = &text[find(text, what)? + what.len()..];
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b'"'))
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
