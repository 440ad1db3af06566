//! [`Callback`]: a listener on this machine that the browser is sent to after a sign-in.
//!
//! It also has the page that the browser begins at. Other users of the machine can read the arguments of the browser's process. With the address of
//! the authorization server they could sign in there themselves, and this command would store the tokens of *their* account. So the browser gets an
//! address of this listener instead, which cannot be guessed, leads on once, and only for connections of the same user where the system tells whose
//! they are.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pegboard::config::RedirectConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use tokio_util::task::AbortOnDropHandle;

#[cfg(unix)]
use super::peer_user;
use crate::{exit::Exit, settings::Complaint};

/// Tried first, so that an authorization server that knows this program by its redirect address knows it again.
const USUAL_PORT: u16 = 47_471;
/// How many other ports are tried for a host with two addresses.
const OTHER_PORTS: usize = 8;
/// The longest request, the most connections at a time, and how long one may take.
const MAX_REQUEST: usize = 32 << 10;
const MAX_CONNECTIONS: usize = 16;
const CONNECTION: Duration = Duration::from_secs(10);
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A listener that the browser is sent to.
pub(super) struct Callback {
    uri: String,
    site: Arc<Site>,
    visits: mpsc::Receiver<Visit>,
    _accepting: Vec<AbortOnDropHandle<()>>,
}

/// The pages of the listener.
struct Site {
    origin: String,
    path: String,
    start: OnceLock<StartPage>,
}

/// The page that leads to the authorization server.
struct StartPage {
    path: String,
    target: String,
    /// The browser that opened the page first has this cookie, and may open it again.
    cookie: String,
    is_opened: AtomicBool,
}

/// A request to the listener.
pub(super) enum Visit {
    /// The browser was sent to the redirect address.
    Redirected {
        /// The URL that it was sent to.
        redirected: String,
        page: BrowserWindow,
    },
    /// The first page was opened by two browsers. Only one of them can be the user's.
    OpenedTwice,
    /// Another user of this machine has opened the first page, and was refused.
    OtherUser,
}

impl Callback {
    /// Listens at the configured address. Any port is taken if the config names none.
    pub(super) async fn listen(redirect: &RedirectConfig) -> Result<Self, Complaint> {
        let (listeners, port) = bind(redirect).await?;
        let path = format!("/{}", redirect.path.trim_start_matches('/'));
        let origin = format!("http://{}:{port}", redirect.host);
        let uri = format!("{origin}{path}");
        let (sender, visits) = mpsc::channel(MAX_CONNECTIONS);
        let site = Arc::new(Site {
            origin,
            path,
            start: OnceLock::new(),
        });
        let accepting = listeners.into_iter().map(|listener| {
            let accepting = tokio::spawn(accept(listener, site.clone(), sender.clone()));
            AbortOnDropHandle::new(accepting)
        });
        Ok(Self {
            uri,
            _accepting: accepting.collect(),
            site,
            visits,
        })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Makes the page that leads to `target`, once. Returns its address.
    pub(super) fn start_page(&self, target: &str) -> Result<String, getrandom::Error> {
        let (name, cookie) = (random_text()?, random_text()?);
        let page = self.site.start.get_or_init(|| StartPage {
            path: format!("/start/{name}"),
            target: target.to_owned(),
            cookie: format!("pegboard_sign_in={cookie}"),
            is_opened: AtomicBool::new(false),
        });
        Ok(format!("{}{}", self.site.origin, page.path))
    }

    /// The next request to the listener.
    pub(super) async fn next(&mut self) -> Visit {
        match self.visits.recv().await {
            Some(visit) => visit,
            None => std::future::pending().await,
        }
    }
}

fn random_text() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The listeners: for `localhost` one at each of its two addresses, because the browser chooses between them.
async fn bind(redirect: &RedirectConfig) -> Result<(Vec<TcpListener>, u16), Complaint> {
    let addresses: &[IpAddr] = match redirect.host.as_str() {
        "127.0.0.1" => &[V4],
        "localhost" => &[V4, V6],
        "[::1]" => &[V6],
        host => {
            return Err(Complaint {
                message: format!("the redirect host `{host}` is not this machine"),
                hint: Some("set `oauth.callback_host` of the server to `127.0.0.1`, `localhost` or `[::1]`".to_owned()),
                exit: Exit::Usage,
            });
        }
    };
    let ports = match redirect.port {
        Some(port) => vec![port],
        None => std::iter::once(USUAL_PORT)
            .chain(std::iter::repeat_n(0, OTHER_PORTS))
            .collect(),
    };
    let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
    for port in ports {
        match bind_port(port, addresses).await {
            Ok(bound) => return Ok(bound),
            Err(error) => failure = error,
        }
    }
    Err(port_complaint(&failure, redirect.port))
}

async fn bind_port(mut port: u16, addresses: &[IpAddr]) -> io::Result<(Vec<TcpListener>, u16)> {
    let mut listeners = Vec::new();
    for address in addresses {
        match TcpListener::bind(SocketAddr::from((*address, port))).await {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(listener);
            }
            // There is no IPv6 on this machine, so no browser chooses it. A port in use is another matter: that program would get what is meant
            // for this one.
            Err(error) if !listeners.is_empty() && error.kind() != io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Ok((listeners, port))
}

fn port_complaint(error: &io::Error, port: Option<u16>) -> Complaint {
    let port = port.unwrap_or(USUAL_PORT);
    Complaint {
        message: format!("port {port} of this machine, where the browser is sent to, cannot be used: {error}"),
        hint: Some("end the program that uses it, or set another `oauth.callback_port` of the server".to_owned()),
        exit: Exit::Unavailable,
    }
}

async fn accept(listener: TcpListener, site: Arc<Site>, visits: mpsc::Sender<Visit>) {
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
        let (site, visits) = (site.clone(), visits.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let _ = tokio::time::timeout(CONNECTION, receive(stream, &site, &visits)).await;
        });
    }
}

async fn receive(mut stream: TcpStream, site: &Site, visits: &mpsc::Sender<Visit>) {
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
    let request = String::from_utf8_lossy(&request);
    let line = request.lines().next().unwrap_or_default();
    let target = line
        .strip_prefix("GET ")
        .and_then(|rest| rest.split_once(' '))
        .map(|(target, _)| target);
    let path = target.and_then(|target| target.split('?').next());
    match (target, path) {
        (Some(target), Some(path)) if path == site.path => {
            let visit = Visit::Redirected {
                redirected: format!("{}{target}", site.origin),
                page: BrowserWindow(stream),
            };
            let _ = visits.try_send(visit);
        }
        (_, Some(path)) if site.start.get().is_some_and(|start| start.path == path) => {
            if is_of_other_user(&stream).await {
                let _ = visits.try_send(Visit::OtherUser);
                let text = "This sign-in was begun by another user of this machine.";
                respond(&mut stream, "403 Forbidden", "", text).await;
            } else if let Some(start) = site.start.get() {
                lead_on(&mut stream, start, &request, visits).await;
            }
        }
        _ => respond(&mut stream, "404 Not Found", "", "There is nothing here.").await,
    }
}

#[cfg(unix)]
async fn is_of_other_user(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(peer), Ok(local)) => peer_user::is_other_user(peer, local).await,
        _ => false,
    }
}

#[cfg(not(unix))]
async fn is_of_other_user(_: &TcpStream) -> bool {
    false
}

/// Answers a request for the first page. The browser that opens it first goes on; a second one that has not the cookie of the first is another program.
async fn lead_on(stream: &mut TcpStream, start: &StartPage, request: &str, visits: &mpsc::Sender<Visit>) {
    let is_again = start.is_opened.swap(true, Ordering::SeqCst);
    let has_cookie = || {
        let headers = request.lines().filter_map(|line| line.split_once(':'));
        let cookies = headers.filter(|(name, _)| name.eq_ignore_ascii_case("cookie"));
        cookies
            .flat_map(|(_, values)| values.split(';'))
            .any(|cookie| cookie.trim() == start.cookie)
    };
    if is_again && !has_cookie() {
        let _ = visits.try_send(Visit::OpenedTwice);
        let text = "This page was opened before, so the sign-in has ended. The terminal says more.";
        return respond(stream, "403 Forbidden", "", text).await;
    }
    let headers = format!(
        "Location: {}\r\nSet-Cookie: {}; HttpOnly; SameSite=Lax; Path=/start\r\n",
        start.target, start.cookie
    );
    respond(
        stream,
        "302 Found",
        &headers,
        "The sign-in goes on at the authorization server.",
    )
    .await;
}

/// The browser's window, which waits for an answer.
pub(super) struct BrowserWindow(TcpStream);

impl BrowserWindow {
    /// Tells the person how the sign-in ended. What the authorization server said stays in the terminal.
    pub(super) async fn show(mut self, is_signed_in: bool) {
        let (status, text) = match is_signed_in {
            true => ("200 OK", "You are signed in. You can close this window."),
            false => ("400 Bad Request", "The sign-in did not succeed. The terminal says why."),
        };
        let _ = tokio::time::timeout(CONNECTION, respond(&mut self.0, status, "", text)).await;
    }

    /// Says that the request is not the answer to the sign-in, which goes on.
    pub(super) async fn reject(mut self) {
        let text = "This is not the answer to the sign-in that is under way.";
        let _ = tokio::time::timeout(CONNECTION, respond(&mut self.0, "400 Bad Request", "", text)).await;
    }
}

async fn respond(stream: &mut TcpStream, status: &str, headers: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>pegboard</title><p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // A browser that is gone does not need the page.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
