//! The floor: requests written and answers read by hand, with nothing between the program and the system.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::Context;

use crate::client::{Place, TOOL};

/// A connection to one server, or one for each call that is under way.
pub enum Floor {
    Pipe {
        child: Child,
        output: std::process::ChildStdin,
        input: BufReader<std::process::ChildStdout>,
    },
    Sockets(Vec<BufReader<TcpStream>>),
}

impl Floor {
    /// Connects and shakes hands as the older era wants it.
    pub fn connect(place: &Place, concurrency: usize) -> anyhow::Result<Self> {
        match place {
            Place::Command(words) => {
                let mut child = Command::new(&words[0])
                    .args(&words[1..])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?;
                let output = child.stdin.take().context("no input")?;
                let input = BufReader::with_capacity(1 << 20, child.stdout.take().context("no output")?);
                let mut floor = Self::Pipe { child, output, input };
                floor.shake_hands()?;
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

    fn shake_hands(&mut self) -> anyhow::Result<()> {
        if let Self::Pipe { output, input, .. } = self {
            output.write_all(
                b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"floor\",\"version\":\"1\"}}}\n",
            )?;
            input.read_until(b'\n', &mut Vec::new())?;
            output.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        }
        Ok(())
    }

    /// Makes `count` calls at once, and notes how long each took. Returns how many bytes came.
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
