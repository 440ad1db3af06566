//! Opens connections: through a proxy if the system has one for the host, and with TLS if the URL wants it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Uri, header::USER_AGENT, uri::Scheme};
use hyper::{
    client::conn::{http1, http2},
    rt::{Read, Write},
};
use hyper_util::{
    client::{
        legacy::connect::{
            HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio_rustls::TlsConnector;
use tower_service::Service;
use url::{Host, Url};

use crate::{
    Error, Target,
    connection::{Connection, Driver, ToProxy},
    error::BoxError,
    is_this_machine,
    resolver::Resolver,
};

/// Sent with requests that have no user agent of their own, and to proxies.
pub(crate) const AGENT: HeaderValue = HeaderValue::from_static(concat!("pegboard/", env!("CARGO_PKG_VERSION")));

/// How often a peer that sends nothing is asked whether it is there, and after how many such questions the connection is given up.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;
/// How long data may stay unacknowledged by the peer's system.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The protocol by which the TLS handshake selects HTTP/2.
const HTTP2: &[u8] = b"h2";

/// Opens connections to one origin.
pub(crate) struct Connector {
    origin: Uri,
    resolver: Resolver,
    tcp: HttpConnector<Resolver>,
    tls: Option<Arc<ClientConfig>>,
    proxy: Option<Intercept>,
    limit: Duration,
}

impl Connector {
    /// Opens connections to the origin of a target. Its proxy is what the system says now, if one is to be used.
    pub(crate) fn new(
        target: &Target,
        tls: Option<ClientConfig>,
        resolver: Resolver,
        limit: Duration,
        uses_proxy: bool,
    ) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limit));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let origin = target.absolute.clone();
        let proxy = match !uses_proxy || is_local(target.url()) {
            true => None,
            false => Matcher::from_system().intercept(&origin),
        };
        Self {
            origin,
            resolver,
            tcp,
            tls: tls.map(Arc::new),
            proxy,
            limit,
        }
    }

    #[cfg(test)]
    pub(crate) fn set_proxy(&mut self, proxy: Option<Intercept>) {
        self.proxy = proxy;
    }

    pub(crate) fn origin(&self) -> &Uri {
        &self.origin
    }

    /// Opens a connection, including TLS and what the proxy wants.
    pub(crate) async fn connect(&self) -> Result<Connection, Error> {
        match tokio::time::timeout(self.limit, self.open()).await {
            Ok(opened) => opened.map_err(Error::Connect),
            Err(_) => Err(Error::ConnectTimeout(self.limit)),
        }
    }

    async fn open(&self) -> Result<Connection, BoxError> {
        let mut tcp = self.tcp.clone();
        let Some(proxy) = &self.proxy else {
            let stream = Box::new(tcp.call(self.origin.clone()).await?);
            return self.speak(stream, None).await;
        };
        let mut stream: BoxedStream = Box::new(tcp.call(with_port(proxy.uri())?).await?);
        if proxy.uri().scheme() == Some(&Scheme::HTTPS) {
            let mut tls = ClientConfig::clone(self.tls()?);
            tls.alpn_protocols.clear();
            (stream, _) = encrypt(stream, Arc::new(tls), proxy.uri()).await?;
        }
        self.open_through(proxy, stream).await
    }

    /// Opens a connection over a stream to a proxy.
    async fn open_through(&self, proxy: &Intercept, stream: BoxedStream) -> Result<Connection, BoxError> {
        let authorization = proxy.basic_auth().cloned();
        match proxy.uri().scheme_str() {
            Some("http" | "https") if self.origin.scheme() == Some(&Scheme::HTTP) => {
                self.speak(stream, Some(ToProxy { authorization })).await
            }
            Some("http" | "https") => {
                let agent = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
                let mut tunnel = Tunnel::new(proxy.uri().clone(), Opened(Some(stream))).with_headers(agent);
                if let Some(authorization) = authorization {
                    tunnel = tunnel.with_auth(authorization);
                }
                self.speak(tunnel.call(self.origin.clone()).await?, None).await
            }
            Some(scheme @ ("socks5" | "socks5h")) => {
                let mut socks = SocksV5::new(proxy.uri().clone(), Opened(Some(stream)));
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                let destination = self.behind_socks(scheme == "socks5").await?;
                self.speak(socks.call(destination).await?, None).await
            }
            scheme => Err(format!(
                "the system's proxy is of the kind `{}`; use one of `http`, `https`, `socks5` and `socks5h`",
                scheme.unwrap_or_default()
            )
            .into()),
        }
    }

    /// Where a SOCKS proxy is to connect to: an address of the origin that is given or looked up here, or else its name.
    async fn behind_socks(&self, looks_up_here: bool) -> Result<Uri, BoxError> {
        let origin = with_port(&self.origin)?;
        let host = origin.host().unwrap_or_default();
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        if is_address || !looks_up_here && self.resolver.pinned.is_none() {
            return Ok(origin);
        }
        let mut found = self.resolver.clone().call(host.parse()?).await?;
        let address = found.find(SocketAddr::is_ipv4);
        let address = address.ok_or("the host has no IPv4 address, and SOCKS proxies are asked for those only")?;
        let authority = format!("{}:{}", address.ip(), origin.port_u16().unwrap_or_default());
        Ok(Uri::builder()
            .scheme("http")
            .authority(authority)
            .path_and_query("/")
            .build()?)
    }

    fn tls(&self) -> Result<&Arc<ClientConfig>, NoTls> {
        self.tls.as_ref().ok_or(NoTls)
    }

    /// Begins HTTP on a stream that leads to the origin, or to a proxy that takes its requests.
    async fn speak(&self, stream: BoxedStream, proxy: Option<ToProxy>) -> Result<Connection, BoxError> {
        if self.origin.scheme() != Some(&Scheme::HTTPS) {
            return speak_http1(stream, proxy).await;
        }
        let (stream, protocol) = encrypt(stream, self.tls()?.clone(), &self.origin).await?;
        match protocol.as_deref() {
            Some(HTTP2) => speak_http2(stream).await,
            _ => speak_http1(stream, None).await,
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("origin", &self.origin)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// Whether a host is this machine or an address that only this machine has, so that no proxy can reach it.
fn is_local(url: &Url) -> bool {
    let is_local = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
    is_this_machine(url)
        || match url.host() {
            Some(Host::Ipv4(address)) => is_local(address.into()),
            Some(Host::Ipv6(address)) => is_local(address.into()),
            Some(Host::Domain(_)) | None => false,
        }
}

/// A URI whose port is written out.
fn with_port(uri: &Uri) -> Result<Uri, BoxError> {
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default());
    let port = uri.port_u16().unwrap_or(match scheme {
        "https" => 443,
        "socks5" | "socks5h" => 1080,
        _ => 80,
    });
    let authority = format!("{host}:{port}");
    Ok(Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query("/")
        .build()?)
}

/// A stream to the other side, whatever it leads through. Boxed, so that HTTP is compiled for one kind of stream only.
type BoxedStream = Box<dyn Stream>;

trait Stream: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> Stream for T {}

/// Begins TLS. Also returns the protocol that the server has chosen.
async fn encrypt(
    stream: BoxedStream,
    tls: Arc<ClientConfig>,
    to: &Uri,
) -> Result<(BoxedStream, Option<Vec<u8>>), BoxError> {
    let host = to.host().unwrap_or_default();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let name = ServerName::try_from(host.to_owned())?;
    let stream = TlsConnector::from(tls).connect(name, TokioIo::new(stream)).await?;
    let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    Ok((Box::new(TokioIo::new(stream)), protocol))
}

async fn speak_http1(stream: BoxedStream, proxy: Option<ToProxy>) -> Result<Connection, BoxError> {
    let (sender, connection) = http1::handshake(stream).await?;
    let driver = Driver::new(connection);
    Ok(Connection::Http1 { sender, driver, proxy })
}

async fn speak_http2(stream: BoxedStream) -> Result<Connection, BoxError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.timer(TokioTimer::new()).handshake(stream).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended badly");
        }
    });
    let user = Arc::default();
    Ok(Connection::Http2 { sender, user })
}

/// A connection needs TLS, and the client has no settings for it.
#[derive(Debug, thiserror::Error)]
#[error("this program was built without cryptography for TLS")]
struct NoTls;

/// A connector that hands out a stream that is open already.
struct Opened<T>(Option<T>);

/// A stream can be used once.
#[derive(Debug, thiserror::Error)]
#[error("the stream is in use")]
struct AlreadyTaken;

impl<T> Service<Uri> for Opened<T> {
    type Response = T;
    type Error = AlreadyTaken;
    type Future = std::future::Ready<Result<T, AlreadyTaken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), AlreadyTaken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        std::future::ready(self.0.take().ok_or(AlreadyTaken))
    }
}
