//! A plain HTTP/1.1 client on a socket: one request per connection, and the response's messages as they come.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// How long anything may take. Long enough for a loaded machine, short enough for a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A response whose head was read.
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    /// What is left of the body: a length, or chunks.
    body: Body,
    /// Lines of an event stream that were read.
    data: String,
}

enum Body {
    Length(usize),
    Chunks { buffer: Vec<u8>, is_done: bool },
}

/// Sends a request and reads the head of the response.
pub(crate) async fn send(address: &str, method: &str, path: &str, headers: &[(&str, String)], body: &str) -> Response {
    let mut stream = TcpStream::connect(address).await.expect("the gateway listens");
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if method == "POST" {
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.expect("the socket works");
    stream.write_all(body.as_bytes()).await.expect("the socket works");
    let mut reader = BufReader::new(stream);
    let status = line(&mut reader).await;
    let status = status
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status line");
    let mut headers = Vec::new();
    loop {
        let header = line(&mut reader).await;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').expect("a header");
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let body = match length {
        Some((_, length)) => Body::Length(length.parse().expect("a valid message")),
        None => Body::Chunks {
            buffer: Vec::new(),
            is_done: false,
        },
    };
    Response {
        status,
        headers,
        reader,
        body,
        data: String::new(),
    }
}

async fn line(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = timeout(PATIENCE, reader.read_line(&mut line)).await;
    read.expect("the gateway responds in time").expect("a line");
    line.trim_end().to_owned()
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The next message of the body: the whole body, or an event.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        timeout(PATIENCE, self.next_message()).await.expect("a message in time")
    }

    /// The same without a limit.
    pub(crate) async fn next_or_wait(&mut self) -> Option<Value> {
        self.next_message().await
    }

    async fn next_message(&mut self) -> Option<Value> {
        if self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
        {
            return self.next_event().await;
        }
        let mut text = Vec::new();
        while let Some(part) = self.part().await {
            text.extend(part);
        }
        (!text.is_empty()).then(|| serde_json::from_slice(&text).expect("a JSON body"))
    }

    async fn next_event(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.data.split_once("\n\n") {
                let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                self.data = rest.to_owned();
                if !data.trim().is_empty() {
                    return Some(serde_json::from_str(&data).expect("a JSON event"));
                }
            }
            let part = self.part().await?;
            self.data
                .push_str(&String::from_utf8(part).expect("text").replace("\r\n", "\n"));
        }
    }

    /// The next part of the body.
    async fn part(&mut self) -> Option<Vec<u8>> {
        match &mut self.body {
            Body::Length(0) => None,
            Body::Length(left) => {
                let mut part = vec![0; std::mem::take(left)];
                self.reader.read_exact(&mut part).await.expect("the whole body");
                Some(part)
            }
            Body::Chunks { is_done: true, .. } => None,
            Body::Chunks { buffer, is_done } => {
                let mut size = String::new();
                let read = self.reader.read_line(&mut size).await;
                let size = match read {
                    Ok(0) | Err(_) => 0,
                    Ok(_) => usize::from_str_radix(size.trim(), 16).expect("the size of a chunk"),
                };
                if size == 0 {
                    *is_done = true;
                    return None;
                }
                buffer.resize(size + 2, 0);
                self.reader.read_exact(buffer).await.ok()?;
                buffer.truncate(size);
                Some(std::mem::take(buffer))
            }
        }
    }
}
