//! The floor: requests and responses with blocking system calls, without a library or runtime.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::Context;

use crate::client::{Place, TOOL};

/// A connection to one server, or one for each call in flight.
pub enum Floor {
    Pipe {
        child: Child,
        output: std::process::ChildStdin,
        input: BufReader<std::process::ChildStdout>,
    },
    Sockets(Vec<BufReader<TcpStream>>),
}

impl Floor {
    /// Connects and performs the legacy handshake.
    pub fn connect(place: &Place, concurrency: usize) -> anyhow::Result<Self> {
        match place {
            Place::Command(words) => {
                let mut floor = Self::spawn(words)?;
                floor.say_hello()?;
                floor.shake_hands("")?;
                Ok(floor)
            }
            Place::Url(url) => {
                let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
                let socket = || -> anyhow::Result<_> {
                    let socket = TcpStream::connect(address)?;
                    socket.set_nodelay(true)?;
                    Ok(BufReader::with_capacity(64 << 10, socket))
                };
                Ok(Self::Sockets(
                    (0..concurrency).map(|_| socket()).collect::<anyhow::Result<_>>()?,
                ))
            }
        }
    }

    /// Starts all programs at once, then lists the tools of each in turn.
    pub fn list_all(places: &[Place]) -> anyhow::Result<Vec<Self>> {
        let commands = places.iter().filter_map(|place| match place {
            Place::Command(words) => Some(words),
            Place::Url(_) => None,
        });
        let mut floors = commands
            .map(|words| Self::spawn(words))
            .collect::<anyhow::Result<Vec<_>>>()?;
        floors.iter_mut().try_for_each(Self::say_hello)?;
        for floor in &mut floors {
            floor.shake_hands("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n")?;
        }
        for floor in &mut floors {
            floor.read_pages()?;
        }
        Ok(floors)
    }

    /// Reads the response to a listing, and requests all further pages.
    fn read_pages(&mut self) -> anyhow::Result<()> {
        const CURSOR: &str = "\"nextCursor\":\"";
        let mut line = String::new();
        if let Self::Pipe { output, input, .. } = self {
            while input.read_line(&mut line)? > 0 {
                let Some(at) = line.rfind(CURSOR) else { break };
                let cursor = line[at + CURSOR.len()..].split('"').next().unwrap_or_default();
                let params = format!("{{\"cursor\":\"{cursor}\"}}");
                writeln!(
                    output,
                    "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{params}}}"
                )?;
                line.clear();
            }
        }
        Ok(())
    }

    fn spawn(words: &[String]) -> anyhow::Result<Self> {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdin.take().context("no input")?;
        let input = BufReader::with_capacity(1 << 20, child.stdout.take().context("no output")?);
        Ok(Self::Pipe { child, output, input })
    }

    fn say_hello(&mut self) -> anyhow::Result<()> {
        if let Self::Pipe { output, .. } = self {
            output.write_all(
                b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"floor\",\"version\":\"1\"}}}\n",
            )?;
        }
        Ok(())
    }

    /// Reads the response to `initialize` and sends `notifications/initialized`.
    fn shake_hands(&mut self, more: &str) -> anyhow::Result<()> {
        if let Self::Pipe { output, input, .. } = self {
            input.read_until(b'\n', &mut Vec::new())?;
            let done = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
            output.write_all(format!("{done}{more}").as_bytes())?;
        }
        Ok(())
    }

    /// Makes `count` concurrent calls and records their latency. Returns the number of bytes received.
    pub fn calls(&mut self, count: usize, bytes: usize, times: &mut Vec<f64>) -> anyhow::Result<usize> {
        let body = |id: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{TOOL}","arguments":{{"n":{bytes}}}}}}}"#
            )
        };
        let (began, mut came, mut line) = (Instant::now(), 0, Vec::new());
        match self {
            Self::Pipe { output, input, .. } => {
                let requests: String = (1..=count).map(|id| body(id) + "\n").collect();
                output.write_all(requests.as_bytes())?;
                for _ in 0..count {
                    line.clear();
                    came += input.read_until(b'\n', &mut line)?;
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
            }
            Self::Sockets(sockets) => {
                for socket in &mut sockets[..count] {
                    let body = body(1);
                    let request = format!(
                        "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    socket.get_mut().write_all(request.as_bytes())?;
                }
                for socket in &mut sockets[..count] {
                    let mut length = 0;
                    loop {
                        line.clear();
                        socket.read_until(b'\n', &mut line)?;
                        let text = std::str::from_utf8(&line)?.trim_end();
                        if text.is_empty() {
                            break;
                        }
                        if let Some(value) = text.strip_prefix("Content-Length: ") {
                            length = value.parse()?;
                        }
                    }
                    line.resize(length, 0);
                    socket.read_exact(&mut line)?;
                    came += length;
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        Ok(came)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        if let Self::Pipe { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
