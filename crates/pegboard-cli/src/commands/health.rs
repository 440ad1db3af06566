//! `pegboard health`: asks a running `serve` whether it is alive, or ready. For health checks of containers and for scripts.

mod tls;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use clap::Args;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use url::Url;

use super::{
    command::Run,
    context::{Context, empty},
};
use crate::{
    exit::Exit,
    output,
    settings::{Complaint, Settings},
};
use tls::ProbeTrust;

/// How long the answer may take. Callers repeat the check, and have limits of their own.
const LIMIT: Duration = Duration::from_secs(2);

/// The most bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 << 10;

/// The most characters of an answer that are shown.
const SHOWN: usize = 500;

/// What the service answered.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: String,
}

/// Check whether a running `serve` is alive, or ready
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard health\n  pegboard health --ready --url http://127.0.0.1:8080")]
pub(crate) struct Health {
    /// Where it listens, instead of `listen` of the config
    #[arg(long)]
    url: Option<String>,
    /// Check that it is ready to take calls, not only alive
    #[arg(long)]
    ready: bool,
}

impl Run for Health {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let path = if self.ready { "readyz" } else { "livez" };
        let target = match &self.url {
            Some(url) => parse(url).map(|url| (url, ProbeTrust::System)),
            None => read_config(&Settings::load(&context.global)),
        };
        let (url, trust) = match target {
            Ok((base, trust)) => (below(&base, path), trust),
            Err(complaint) => {
                let nothing = json!({"ok": false, "url": null, "status": null, "error": complaint.message});
                return context.refuse(&complaint, &nothing).await;
            }
        };
        let limit = context.global.timeout.unwrap_or(LIMIT).min(LIMIT);
        let asked = tokio::select! {
            biased;
            () = context.signals.heard() => return Exit::Interrupted,
            asked = timeout(limit, ask(&url, &trust)) => asked,
        };
        let (status, problem) = match asked {
            Ok(Ok(answer)) => (Some(answer.status), problem(&answer, self.ready)),
            Ok(Err(error)) => (None, Some(format!("{url} cannot be reached: {error}"))),
            Err(_) => (None, Some(format!("{url} has not answered within {limit:?}"))),
        };
        let hint = match (status, &self.url) {
            (Some(_), _) => None,
            (None, None) => Some("`pegboard serve` starts the service; `--url URL` asks one at another address"),
            (None, Some(_)) => Some("`pegboard serve` says at its start at which address it listens"),
        };
        // `ToolError` is the code 1, which health checks expect.
        let exit = problem.as_ref().map_or(Exit::Done, |_| Exit::ToolError);
        let document = json!({"ok": problem.is_none(), "url": url.as_str(), "status": status, "error": problem});
        let mut report = empty(&context.output, exit, &document);
        match &problem {
            Some(problem) => report = report.error(problem, hint),
            None if context.output.is_json() => {}
            None => report.data = if self.ready { "ready\n" } else { "alive\n" }.to_owned(),
        }
        context.print(report).await
    }
}

/// Why an answer is not a good one.
fn problem(answer: &Answer, asks_ready: bool) -> Option<String> {
    let what = if asks_ready { "ready" } else { "alive" };
    match answer.status {
        200 | 204 => None,
        status => {
            let body: String = output::one_line(answer.body.trim()).chars().take(SHOWN).collect();
            let body = if body.is_empty() { body } else { format!(": {body}") };
            Some(format!("it is not {what}: HTTP {status}{body}"))
        }
    }
}

fn parse(text: &str) -> Result<Url, Complaint> {
    let url = Url::parse(text).ok().filter(|url| url.has_host());
    match url {
        Some(url) if ["http", "https"].contains(&url.scheme()) => Ok(url),
        _ => Err(Complaint {
            message: "`--url` must be an http or https address".to_owned(),
            hint: Some("write the address of `serve`, such as http://127.0.0.1:7337".to_owned()),
            exit: Exit::Usage,
        }),
    }
}

/// The first address that the config listens on, as this machine reaches it.
fn read_config(settings: &Settings) -> Result<(Url, ProbeTrust), Complaint> {
    let config = settings.selected_config()?;
    let unknown = || Complaint {
        message: "the config does not say where `serve` listens".to_owned(),
        hint: Some("`--url URL` names its address".to_owned()),
        exit: Exit::Usage,
    };
    let address = config.serve.listen.first().filter(|address| address.port() != 0);
    let address = to_reachable(*address.ok_or_else(unknown)?);
    let (scheme, trust) = match &config.serve.tls {
        Some(tls) => ("https", ProbeTrust::Only(tls.cert.clone())),
        None => ("http", ProbeTrust::System),
    };
    let url = Url::parse(&format!("{scheme}://{address}")).map_err(|_| unknown())?;
    Ok((url, trust))
}

/// The address at which this machine reaches a listener: that of loopback, if it listens on every interface.
fn to_reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The address of a path below another one.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// The status with which something answers a request for `url` without a token, or why nothing does.
pub(super) async fn status_of(url: &Url) -> Result<u16, String> {
    match timeout(LIMIT, ask_for(url, &ProbeTrust::System, Reading::Head)).await {
        Ok(Ok(answer)) => Ok(answer.status),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {LIMIT:?}")),
    }
}

/// How much of an answer is read.
#[derive(Clone, Copy)]
enum Reading {
    All,
    /// What follows may be a stream without an end.
    Head,
}

async fn ask(url: &Url, trust: &ProbeTrust) -> io::Result<Answer> {
    ask_for(url, trust, Reading::All).await
}

async fn ask_for(url: &Url, trust: &ProbeTrust, reading: Reading) -> io::Result<Answer> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "the address has no host");
    let (host, port) = (
        url.host().ok_or_else(missing)?,
        url.port_or_known_default().unwrap_or(80),
    );
    let stream = match host {
        url::Host::Domain(name) => TcpStream::connect((name, port)).await?,
        url::Host::Ipv4(ip) => TcpStream::connect((ip, port)).await?,
        url::Host::Ipv6(ip) => TcpStream::connect((ip, port)).await?,
    };
    let authority = format!("{host}:{port}");
    if url.scheme() == "http" {
        return get(stream, &authority, url.path(), reading).await;
    }
    // The name in a certificate has no brackets.
    let name = host.to_string().trim_matches(['[', ']']).to_owned();
    let stream = tls::connect(stream, name, trust).await?;
    get(stream, &authority, url.path(), reading).await
}

/// Sends one request and reads the answer to the end of the connection, or as much of it as is ever shown.
async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
    reading: Reading,
) -> io::Result<Answer> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: pegboard-health\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    let mut stream = stream.take(MAX_ANSWER);
    loop {
        if matches!(reading, Reading::Head) && bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            break;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) => break,
            Ok(_) => {}
            // A server may close a TLS connection without a word.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    answer(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_interface_is_asked_at_loopback() {
        for (listens, asked) in [
            ("0.0.0.0:7337", "127.0.0.1:7337"),
            ("[::]:7337", "[::1]:7337"),
            ("10.0.0.7:80", "10.0.0.7:80"),
            ("127.0.0.1:7337", "127.0.0.1:7337"),
        ] {
            assert_eq!(to_reachable(listens.parse().unwrap()).to_string(), asked);
        }
    }

    #[test]
    fn the_path_goes_below_the_address() {
        for (base, expected) in [
            ("http://h:1", "http://h:1/livez"),
            ("http://h:1/", "http://h:1/livez"),
            ("http://h:1/a/b/?c#d", "http://h:1/a/b/livez"),
        ] {
            assert_eq!(below(&Url::parse(base).unwrap(), "livez").as_str(), expected);
        }
        for bad in ["", "127.0.0.1:7337", "ftp://h", "http://"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_success_is_healthy() {
        let parsed = |text: &str| answer(text.as_bytes());
        assert_eq!(parsed("SSH-2.0-x\r\n\r\n"), None);
        assert_eq!(parsed("HTTP/1.1 200 OK"), None);
        let ok = parsed("HTTP/1.1 200 OK\r\nA: b\r\n\r\nok").unwrap();
        assert_eq!(problem(&ok, true), None);
        let busy = parsed("HTTP/1.1 503 Service Unavailable\r\n\r\nserver `a`\nis down").unwrap();
        let told = problem(&busy, true).unwrap();
        assert!(told.contains("not ready: HTTP 503: server `a`"), "{told}");
        for status in [301, 401, 404, 500] {
            let body = String::new();
            assert!(problem(&Answer { status, body }, false).is_some(), "{status}");
        }
    }
}
