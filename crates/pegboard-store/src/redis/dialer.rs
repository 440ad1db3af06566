//! [`Dialer`]: finds the server that takes changes, connects to it, and checks that it is one that works.

use std::{fmt, io, time::Duration};

use redis::Value;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{
    connection::Connection,
    failure::{classify, is_lost, refused, timed_out, unexpected, unreachable},
    marker::{self, Marker},
    request::Request,
    server_name::ServerName,
    tls,
};
use crate::{
    address::{HostPort, Servers, Topology, UserAndPassword},
    error::{Refusal, StoreError},
};

/// The lowest version of Redis that has all the commands.
const LOWEST: &str = "6.2";

/// How often one dial follows what nodes of a cluster say about where the keys are.
const MAX_REDIRECTS: usize = 4;

/// Connects to the servers of one address.
pub(super) struct Dialer {
    servers: Servers,
    tls: Option<TlsConnector>,
    /// What all keys begin with.
    root: String,
    name: ServerName,
}

/// What became of the check of a server.
enum Checked {
    Usable,
    /// It is another node of the cluster that has the keys.
    Elsewhere(HostPort),
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dialer").field(&self.servers).finish()
    }
}

impl Dialer {
    /// Creates a dialer, which reads the files for TLS now.
    pub(super) fn new(servers: Servers, root: String, name: ServerName) -> Result<Self, StoreError> {
        Ok(Self {
            tls: servers.tls.as_ref().map(tls::connector).transpose()?,
            servers,
            root,
            name,
        })
    }

    /// Connects to the server that takes changes. `hint` is where a node of the cluster said that it is.
    pub(super) async fn dial(&self, hint: Option<HostPort>, time: Duration) -> Result<Connection, StoreError> {
        let hosts: Vec<&HostPort> = hint.iter().chain(&self.servers.hosts).collect();
        let share = time / u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        let mut failure = None;
        for host in hosts {
            match timeout(share, self.dial_by(host)).await {
                Ok(Ok(connection)) => return Ok(connection),
                // A server that is there and refuses is more worth saying than one that is not there.
                Ok(Err(error @ StoreError::Refused { .. })) => failure = Some(error),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => failure = failure.or(Some(timed_out(&self.name))),
            }
        }
        Err(failure.unwrap_or_else(|| timed_out(&self.name)))
    }

    /// Connects to a node that a cluster names for one request, without checks.
    pub(super) async fn dial_node(&self, node: &HostPort) -> Result<Connection, StoreError> {
        let connection = self.connect(node).await?;
        self.sign_in(&connection, self.servers.login.as_ref()).await?;
        Ok(connection)
    }

    /// Connects with what one of the hosts knows.
    async fn dial_by(&self, host: &HostPort) -> Result<Connection, StoreError> {
        let mut host = match &self.servers.topology {
            Topology::Sentinel { primary, login } => self.ask_sentinel(host, primary, login.as_ref()).await?,
            Topology::Single | Topology::Cluster => host.clone(),
        };
        for _ in 0..MAX_REDIRECTS {
            let connection = self.dial_node(&host).await?;
            match self.check(&connection).await? {
                Checked::Usable => return Ok(connection),
                Checked::Elsewhere(other) => host = other,
            }
        }
        let message = "its nodes do not agree on who has the keys";
        Err(unreachable(&self.name, io::Error::other(message)))
    }

    async fn connect(&self, host: &HostPort) -> Result<Connection, StoreError> {
        let opened = Connection::open(host, self.tls.as_ref()).await;
        opened.map_err(|error| {
            let message = format!("{host}: {error}");
            unreachable(&self.name, io::Error::new(error.kind(), message))
        })
    }

    async fn ask_sentinel(
        &self,
        sentinel: &HostPort,
        primary: &str,
        login: Option<&UserAndPassword>,
    ) -> Result<HostPort, StoreError> {
        let connection = self.connect(sentinel).await?;
        self.sign_in(&connection, login).await?;
        let question = Request::command("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(primary);
        let reply = self.send(&connection, &question).await?;
        if reply == Value::Nil {
            return Err(refused(&self.name, Refusal::UnknownPrimary(primary.to_owned())));
        }
        let Ok((host, port)) = redis::from_redis_value(reply) else {
            return Err(unexpected(&self.name));
        };
        Ok(HostPort { host, port })
    }

    async fn sign_in(&self, connection: &Connection, login: Option<&UserAndPassword>) -> Result<(), StoreError> {
        let Some(UserAndPassword { user, password }) = login else {
            return Ok(());
        };
        let mut auth = Request::command("AUTH");
        if let Some(user) = user {
            auth = auth.arg(user.as_str());
        }
        match connection.send(&auth.arg(password.expose())).await {
            Ok(_) => Ok(()),
            Err(error) if is_lost(&error) => Err(classify(&self.name, "", &error)),
            Err(_) => Err(refused(&self.name, Refusal::Credentials)),
        }
    }

    async fn check(&self, connection: &Connection) -> Result<Checked, StoreError> {
        self.check_version(connection).await?;
        if self.servers.database != 0 {
            let select = Request::command("SELECT").number(self.servers.database);
            self.send(connection, &select).await?;
        }
        let marker = marker::check(connection, &self.root).await;
        match marker.map_err(|error| (redirect(&error), error)) {
            Ok(Marker::Ours) => Ok(Checked::Usable),
            Ok(Marker::Refused(refusal)) => Err(refused(&self.name, refusal)),
            Err((Some(other), _)) => Ok(Checked::Elsewhere(other)),
            Err((None, error)) => Err(classify(&self.name, marker::KEY, &error)),
        }
    }

    /// Checks what the server says of itself.
    async fn check_version(&self, connection: &Connection) -> Result<(), StoreError> {
        let reply = match connection.send(&Request::command("HELLO").number(2)).await {
            // It is the word of Redis before 6.
            Err(error) if error.detail().is_some_and(|detail| detail.contains("unknown command")) => {
                let old = Refusal::OldServer {
                    found: "5 or lower".into(),
                    needed: LOWEST,
                };
                return Err(refused(&self.name, old));
            }
            reply => reply.map_err(|error| classify(&self.name, "", &error))?,
        };
        let Value::Array(facts) = reply else {
            return Err(unexpected(&self.name));
        };
        let fact = |name: &str| {
            let pair = facts.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name))?;
            text(&pair[1])
        };
        let Some(version) = fact("version") else {
            return Err(unexpected(&self.name));
        };
        if fact("server") == Some("redis") && number(version) < number(LOWEST) {
            let found = version.chars().take(20).collect();
            return Err(refused(&self.name, Refusal::OldServer { found, needed: LOWEST }));
        }
        // Nodes of a cluster say themselves who has a key.
        let is_replica = fact("role").is_some_and(|role| role != "master");
        if is_replica && self.servers.topology != Topology::Cluster {
            let message = "it is a replica, which takes no changes";
            return Err(unreachable(&self.name, io::Error::other(message)));
        }
        Ok(())
    }

    async fn send(&self, connection: &Connection, request: &Request) -> Result<Value, StoreError> {
        let reply = connection.send(request).await;
        reply.map_err(|error| classify(&self.name, "", &error))
    }
}

/// The node that has the keys, if this is what the error says.
pub(super) fn redirect(error: &redis::RedisError) -> Option<HostPort> {
    let (node, _) = error.redirect_node()?;
    let (host, port) = node.rsplit_once(':')?;
    // An IPv6 address has no brackets here.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| HostPort {
        host: host.to_owned(),
        port,
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// The first two numbers of a version.
fn number(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}
