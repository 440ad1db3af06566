//! A small HTTP/1.1 client that keeps its connection, for JSON and event streams.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// A connection to the gateway.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// The head of a response.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    length: usize,
    is_chunked: bool,
    is_events: bool,
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            address,
        })
    }

    /// Sends a request and reads the head of the response.
    pub(crate) async fn send(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Head> {
        let mut request = format!("{verb} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("Accept: application/json, text/event-stream\r\n");
        if verb == "POST" {
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.stream.write_all(request.as_bytes()).await?;
        self.head().await
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(broken("the connection was closed"));
        }
        Ok(line.trim_end().to_owned())
    }

    async fn head(&mut self) -> io::Result<Head> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut head = Head {
            status: status.ok_or_else(|| broken("no status line"))?,
            ..Head::default()
        };
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(head);
            }
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().map_err(|_| broken("content-length"))?,
                "transfer-encoding" => head.is_chunked = value == "chunked",
                "content-type" => head.is_events = value.starts_with("text/event-stream"),
                "mcp-session-id" => head.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    /// Reads the response message: the body, or the last event of a stream that ends with it.
    pub(crate) async fn message(&mut self, head: &Head) -> io::Result<String> {
        if !head.is_chunked {
            let mut body = vec![0; head.length];
            self.stream.read_exact(&mut body).await?;
            return String::from_utf8(body).map_err(|_| broken("not UTF-8"));
        }
        let mut body = String::new();
        while let Some(chunk) = self.chunk().await? {
            body.push_str(&chunk);
        }
        if !head.is_events {
            return Ok(body);
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = data.map(str::trim).rfind(|data| !data.is_empty());
        last.map(str::to_owned)
            .ok_or_else(|| broken("a stream without a message"))
    }

    /// Reads the next chunk of a chunked body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<String>> {
        let size = self.line().await?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| broken("the size of a chunk"))?;
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).await?;
        chunk.truncate(size);
        if size == 0 {
            return Ok(None);
        }
        String::from_utf8(chunk).map(Some).map_err(|_| broken("not UTF-8"))
    }
}
