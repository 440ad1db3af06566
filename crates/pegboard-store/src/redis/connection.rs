//! [`Connection`]: one connection to one server, which many requests share.

use std::io;

use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisError, Value, aio::MultiplexedConnection,
};
use rustls_pki_types::ServerName as TlsName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use super::request::Request;
use crate::address::HostPort;

/// A connection and the task that drives it, which ends with it.
#[derive(Debug)]
pub(super) struct Connection {
    requests: MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Connects, and says nothing yet.
    pub(super) async fn open(host: &HostPort, tls: Option<&TlsConnector>) -> io::Result<Self> {
        let stream = TcpStream::connect((host.host.as_str(), host.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = tls else {
            return Self::over(stream).await;
        };
        let name = TlsName::try_from(host.host.clone()).map_err(io::Error::other)?;
        Self::over(tls.connect(name, stream).await?).await
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<Self> {
        // What is said first, and how long anything may take, is for our own code to say.
        let silent = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let opened = MultiplexedConnection::new_with_config(&silent, stream, config).await;
        let (requests, driver) = opened.map_err(io::Error::other)?;
        Ok(Self {
            requests,
            driver: tokio::spawn(driver),
        })
    }

    /// Sends a request and waits for the reply.
    pub(super) async fn send(&self, request: &Request) -> Result<Value, RedisError> {
        let mut requests = self.requests.clone();
        match request.encode(false).query_async(&mut requests).await {
            Err(error) if error.code() == Some("NOSCRIPT") => request.encode(true).query_async(&mut requests).await,
            reply => reply,
        }
    }

    /// Sends a request that has a script as a whole.
    pub(super) async fn send_whole(&self, request: &Request) -> Result<Value, RedisError> {
        let mut requests = self.requests.clone();
        request.encode(true).query_async(&mut requests).await
    }

    /// Whether the server has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.driver.is_finished()
    }

    /// Ends it, and all requests that wait for a reply.
    pub(super) fn close(&self) {
        self.driver.abort();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}
