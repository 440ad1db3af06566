//! The baseline of gateway measurements: takes `tools/call` over HTTP, hands it to one stdio server under another id, and hands the response
//! back. No routing, no limits, no checks, no masking.
//!
//! `relay COMMAND…` prints its address.

use std::{
    collections::HashMap,
    io::Write,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    process::{ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
};

/// The requests that wait for their response, by the id that the server knows.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let input = child.stdin.take().context("no input")?;
    let output = BufReader::with_capacity(1 << 20, child.stdout.take().context("no output")?);
    let waiting = Waiting::default();
    let (lines, queue) = mpsc::channel(1024);
    tokio::spawn(write_lines(input, queue));
    tokio::spawn(read_lines(output, waiting.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let mut next_id = 0;
    loop {
        let (stream, _) = listener.accept().await?;
        next_id += 1_000_000_000;
        tokio::spawn(converse(stream, lines.clone(), waiting.clone(), next_id));
    }
}

async fn write_lines(mut input: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) -> std::io::Result<()> {
    while let Some(mut line) = queue.recv().await {
        while let Ok(more) = queue.try_recv() {
            line.extend_from_slice(&more);
        }
        input.write_all(&line).await?;
    }
    Ok(())
}

/// The echo server writes the id first, as `{"jsonrpc":"2.0","id":N,…`.
async fn read_lines(mut output: BufReader<ChildStdout>, waiting: Waiting) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if output.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let digits = line.iter().skip(22).take_while(|byte| byte.is_ascii_digit());
        let id = digits.fold(0, |id, digit| id * 10 + u64::from(digit - b'0'));
        let waiter = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiter) = waiter {
            let end = line.iter().skip(22).position(|byte| *byte == b',').unwrap_or(0) + 22;
            let _ = waiter.send(line[end..line.len() - 1].to_vec());
        }
    }
}

async fn converse(stream: TcpStream, lines: mpsc::Sender<Vec<u8>>, waiting: Waiting, first: u64) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(16 << 10, stream);
    let (mut line, mut body, mut id) = (Vec::new(), Vec::new(), first);
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if stream.read_until(b'\n', &mut line).await? == 0 {
                return Ok(());
            }
            if line.len() <= 2 {
                break;
            }
            if let Some(value) = line.strip_prefix(b"Content-Length: ") {
                length = std::str::from_utf8(value)?.trim().parse()?;
            }
        }
        body.resize(length, 0);
        stream.read_exact(&mut body).await?;
        id += 1;
        let (answer, came) = oneshot::channel();
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, answer);
        // The load generator writes `{"jsonrpc":"2.0","id":1,…`.
        let mut request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}").into_bytes();
        request.extend_from_slice(&body[23..]);
        request.push(b'\n');
        lines.send(request).await?;
        let rest = came.await?;
        let mut response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{{\"jsonrpc\":\"2.0\",\"id\":1",
            rest.len() + 23
        )
        .into_bytes();
        response.extend_from_slice(&rest);
        stream.write_all(&response).await?;
    }
}
