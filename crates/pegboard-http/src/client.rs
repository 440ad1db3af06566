//! Sends requests to one origin.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Request, header};
use hyper::body::Incoming;
use rustls::ClientConfig;

use crate::{
    Body, Error, Response, Target,
    connection::Connection,
    connector::{AGENT, Connector},
    pool::Pool,
    resolver::{Pinned, Resolver},
    response::Held,
};

const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// How a client connects.
#[derive(Debug)]
pub struct Settings {
    /// TLS of connections to URLs with `https`. Its protocols decide about HTTP/2. Without it, such connections fail.
    pub tls: Option<ClientConfig>,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_time: Duration,
    /// The only addresses that the host is connected to, also through a SOCKS proxy. Other proxies of the system look up the host themselves.
    pub addresses: Option<Vec<SocketAddr>>,
    /// Whether the proxy of the system is used, if there is one for the host.
    pub uses_proxy: bool,
}

impl Settings {
    /// Settings with this TLS, for connections that are kept for a few seconds.
    pub fn new(tls: impl Into<Option<ClientConfig>>) -> Self {
        Self {
            tls: tls.into(),
            connect_timeout: Duration::from_secs(10),
            idle_time: Duration::from_secs(3),
            addresses: None,
            uses_proxy: true,
        }
    }
}

/// Sends requests to one origin, and keeps connections to it. Clones share them.
#[derive(Debug, Clone)]
pub struct Client {
    connector: Arc<Connector>,
    pool: Arc<Pool>,
}

impl Client {
    /// A client for the origin of a target.
    pub fn new(target: &Target, settings: Settings) -> Self {
        let host = target.url().host_str().unwrap_or_default().to_owned();
        let pinned = settings
            .addresses
            .map(|addresses| Arc::new(Pinned::from((host, addresses))));
        let resolver = Resolver { pinned };
        Self {
            connector: Arc::new(Connector::new(
                target,
                settings.tls,
                resolver,
                settings.connect_timeout,
                settings.uses_proxy,
            )),
            pool: Pool::new(settings.idle_time),
        }
    }

    /// Sends a request and waits for the head of its response. A request that the server has provably not received, because it closed a kept
    /// connection, is sent again on another one.
    pub async fn send(
        &self,
        method: Method,
        target: &Arc<Target>,
        headers: HeaderMap,
        body: impl Into<Body>,
    ) -> Result<Response, Error> {
        if !target.is_at(self.connector.origin()) {
            return Err(Error::OtherOrigin);
        }
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let sent = request.headers_mut();
        sent.entry(header::USER_AGENT).or_insert(AGENT);
        sent.entry(header::ACCEPT).or_insert(ANYTHING);
        if let Some(authorization) = &target.authorization {
            sent.entry(header::AUTHORIZATION)
                .or_insert_with(|| authorization.clone());
        }
        while let Some(mut connection) = self.pool.take().await {
            match connection.send(request, target).await {
                Ok(response) => return Ok(self.received(response, target, connection)),
                Err(mut failure) => match failure.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Error::Request(failure.into_error())),
                },
            }
        }
        // Boxed: a request on a kept connection does not carry its size.
        let mut connection = Box::pin(self.connector.connect()).await?;
        self.pool.share(&connection);
        match connection.send(request, target).await {
            Ok(response) => Ok(self.received(response, target, connection)),
            Err(failure) => Err(Error::Request(
                connection.take_failure().unwrap_or(failure.into_error()),
            )),
        }
    }

    fn received(&self, response: http::Response<Incoming>, target: &Arc<Target>, connection: Connection) -> Response {
        let pool = self.pool.clone();
        Response::new(response, target.clone(), Held { connection, pool })
    }
}

#[cfg(test)]
mod tests;
