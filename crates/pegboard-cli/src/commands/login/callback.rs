//! [`Callback`]: a listener on this machine that the browser is sent to after a sign-in.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use pegboard::config::RedirectConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{exit::Exit, settings::Complaint};

/// Tried first, so that an authorization server that knows this program by its redirect address knows it again.
const USUAL_PORT: u16 = 47_471;
/// The longest request, the most connections at a time, and how long one may take.
const MAX_REQUEST: usize = 32 << 10;
const MAX_CONNECTIONS: usize = 16;
const CONNECTION: Duration = Duration::from_secs(10);

/// A listener that the browser is sent to.
pub(super) struct Callback {
    uri: String,
    visits: mpsc::Receiver<Visit>,
    _accepting: AbortOnDropHandle<()>,
}

/// A request to the redirect address.
pub(super) struct Visit {
    /// The URL that the browser was sent to.
    pub(super) redirected: String,
    pub(super) page: Page,
}

impl Callback {
    /// Listens at the configured address. Any port is taken if the config names none.
    pub(super) async fn listen(redirect: &RedirectConfig) -> Result<Self, Complaint> {
        let listener = bind(redirect).await?;
        let port = listener
            .local_addr()
            .map_err(|error| refused(&error, redirect.port))?
            .port();
        let path = format!("/{}", redirect.path.trim_start_matches('/'));
        let origin = format!("http://{}:{port}", redirect.host);
        let uri = format!("{origin}{path}");
        let (sender, visits) = mpsc::channel(MAX_CONNECTIONS);
        let accepting = tokio::spawn(accept(listener, origin, path, sender));
        Ok(Self {
            uri,
            visits,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// The next request to the redirect address.
    pub(super) async fn next(&mut self) -> Visit {
        match self.visits.recv().await {
            Some(visit) => visit,
            None => std::future::pending().await,
        }
    }
}

async fn bind(redirect: &RedirectConfig) -> Result<TcpListener, Complaint> {
    let at = |port: u16| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if !matches!(redirect.host.as_str(), "127.0.0.1" | "localhost") {
        return Err(Complaint {
            message: format!("the redirect host `{}` is not this machine", redirect.host),
            hint: Some("set it to `127.0.0.1` or `localhost`".to_owned()),
            exit: Exit::Usage,
        });
    }
    let bound = match redirect.port {
        Some(port) => at(port).await,
        None => match at(USUAL_PORT).await {
            Ok(listener) => Ok(listener),
            Err(_) => at(0).await,
        },
    };
    bound.map_err(|error| refused(&error, redirect.port))
}

fn refused(error: &io::Error, port: Option<u16>) -> Complaint {
    let port = port.unwrap_or(USUAL_PORT);
    Complaint {
        message: format!("port {port} of this machine, where the browser is sent to, cannot be used: {error}"),
        hint: Some("end the program that uses it, or configure another redirect port".to_owned()),
        exit: Exit::Unavailable,
    }
}

async fn accept(listener: TcpListener, origin: String, path: String, visits: mpsc::Sender<Visit>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files: others may end meanwhile.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (origin, path, visits) = (origin.clone(), path.clone(), visits.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let _ = tokio::time::timeout(CONNECTION, receive(stream, &origin, &path, &visits)).await;
        });
    }
}

async fn receive(mut stream: TcpStream, origin: &str, path: &str, visits: &mpsc::Sender<Visit>) {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > MAX_REQUEST {
            return;
        }
        match stream.read_buf(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let target = line
        .strip_prefix("GET ")
        .and_then(|rest| rest.split_once(' '))
        .map(|(target, _)| target)
        .filter(|target| target.split('?').next() == Some(path));
    match target {
        Some(target) => {
            let visit = Visit {
                redirected: format!("{origin}{target}"),
                page: Page(stream),
            };
            let _ = visits.try_send(visit);
        }
        None => respond(&mut stream, "404 Not Found", "There is nothing here.").await,
    }
}

/// The browser's window, which waits for an answer.
pub(super) struct Page(TcpStream);

impl Page {
    /// Tells the person how the sign-in ended. What the authorization server said stays in the terminal.
    pub(super) async fn show(mut self, is_signed_in: bool) {
        let (status, text) = match is_signed_in {
            true => ("200 OK", "You are signed in. You can close this window."),
            false => ("400 Bad Request", "The sign-in did not succeed. The terminal says why."),
        };
        let _ = tokio::time::timeout(CONNECTION, respond(&mut self.0, status, text)).await;
    }
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>pegboard</title><p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // A browser that is gone does not need the page.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
