//! A minimal HTTP/1.1 client for the socket of the daemon: GET and Upgrade, both with the token of the owner.

use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use super::owner_token::OwnerToken;

/// The longest head of a response.
const MAX_HEAD: usize = 16 * 1024;

/// The longest body of a response. The status of a board with a thousand servers fits.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// A response: its status, and its body.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a GET request and reads the response.
pub(super) async fn get(stream: &mut UnixStream, path: &str) -> io::Result<Response> {
    send(stream, path, "connection: close\r\n").await
}

/// Asks for an upgrade to one message per line. The stream carries messages if the status is 101.
pub(super) async fn upgrade(stream: &mut UnixStream, path: &str) -> io::Result<Response> {
    send(stream, path, "connection: upgrade\r\nupgrade: mcp-lines\r\n").await
}

async fn send(stream: &mut UnixStream, path: &str, headers: &str) -> io::Result<Response> {
    let token = OwnerToken::find().map(|token| format!("authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{token}{headers}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut read = Vec::with_capacity(1024);
    let end = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if read.len() > MAX_HEAD {
            return Err(invalid_response_error());
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = std::str::from_utf8(&read[..end]).map_err(|_| invalid_response_error())?;
    let status: u16 = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(invalid_response_error)?;
    // The daemon knows the length of all bodies that a command asks for.
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    let mut body = read.split_off(end);
    if length > MAX_BODY || (status == 101 && !body.is_empty()) {
        return Err(invalid_response_error());
    }
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(invalid_response_error());
        }
    }
    Ok(Response { status, body })
}

fn invalid_response_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the daemon sent no valid response")
}
