//! [`Link`]: the present connection of a store, and how another one takes its place.

use std::{sync::Arc, time::Duration};

use pegboard_base::sync::Mutex;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use super::{
    connection::Connection,
    dialer::{Dialer, redirect},
    failure::{classify, is_demoted, is_lost, timed_out},
    request::Request,
    server_name::ServerName,
};
use crate::{address::HostPort, error::StoreError};

/// The most requests at the same time. Each holds a value, and others wait.
const MAX_REQUESTS: usize = 256;

/// How often one operation is sent: after a failover, and while a cluster moves the keys.
const MAX_ATTEMPTS: usize = 4;

/// The wait after the first failure to connect. It doubles with each, up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Sends requests over one connection, which is replaced when it is lost. There is no connection in the background: an operation connects if that is
/// due, and fails at once if it is not.
#[derive(Debug)]
pub(super) struct Link {
    dialer: Dialer,
    name: ServerName,
    state: Mutex<State>,
    /// One operation connects, and others wait for it.
    dialing: Semaphore,
    requests: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Where the keys are, as a node of the cluster said.
    hint: Option<HostPort>,
    outage: Option<Outage>,
}

/// Why there is no connection.
#[derive(Debug)]
struct Outage {
    error: StoreError,
    failures: u32,
    retry_at: Instant,
}

impl Link {
    pub(super) fn new(dialer: Dialer, name: ServerName) -> Self {
        Self {
            dialer,
            name,
            state: Mutex::default(),
            dialing: Semaphore::new(1),
            requests: Semaphore::new(MAX_REQUESTS),
        }
    }

    /// Sends a request about a key, again if it was certainly not done or changes nothing.
    pub(super) async fn send(&self, key: &str, request: &Request) -> Result<Value, StoreError> {
        let deadline = Instant::now() + self.name.limit();
        let too_late = |_| timed_out(&self.name);
        let _permit = timeout_at(deadline, self.requests.acquire()).await.map_err(too_late)?;
        let mut attempts = 1;
        loop {
            let connection = timeout_at(deadline, self.connection()).await.map_err(too_late)??;
            let Ok(reply) = timeout_at(deadline, connection.send(request)).await else {
                // Its replies would be those to earlier requests for as long as it hangs.
                self.lose(&connection, None);
                return Err(timed_out(&self.name));
            };
            let error = match reply {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_moved = error.kind() == ErrorKind::Server(ServerErrorKind::Moved);
            let retries = if is_moved || is_demoted(&error) {
                self.lose(&connection, redirect(&error));
                true
            } else if is_lost(&error) {
                self.lose(&connection, None);
                request.is_read
            } else if let Some(node) = redirect(&error) {
                let asked = timeout_at(deadline, self.ask(&node, request)).await.map_err(too_late)?;
                return asked?.map_err(|error| classify(&self.name, key, &error));
            } else {
                false
            };
            if !retries || attempts == MAX_ATTEMPTS {
                return Err(classify(&self.name, key, &error));
            }
            attempts += 1;
        }
    }

    /// Sends one request to the node that takes the keys over at this moment.
    async fn ask(&self, node: &HostPort, request: &Request) -> Result<Result<Value, RedisError>, StoreError> {
        let connection = self.dialer.dial_node(node).await?;
        // It is for the next command only, and a script that the node does not know takes two.
        let asking = Request::command("ASKING");
        let reply = match connection.send(&asking).await {
            Ok(_) => connection.send_whole(request).await,
            Err(error) => Err(error),
        };
        Ok(reply)
    }

    /// The present connection, or a new one.
    async fn connection(&self) -> Result<Arc<Connection>, StoreError> {
        if let Some(connection) = self.present() {
            return Ok(connection);
        }
        let _one = self.dialing.acquire().await;
        if let Some(connection) = self.present() {
            return Ok(connection);
        }
        let hint = {
            let mut state = self.state.lock();
            match &state.outage {
                Some(outage) if Instant::now() < outage.retry_at => return Err(outage.error.clone()),
                _ => state.hint.take(),
            }
        };
        // Half of the time is left to send the request, and to let those that wait know of a failure.
        let time = self.name.limit() / 2;
        let dialed = timeout(time, self.dialer.dial(hint, time)).await;
        let mut state = self.state.lock();
        match dialed.unwrap_or_else(|_| Err(timed_out(&self.name))) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(connection.clone());
                if state.outage.take().is_some() {
                    tracing::info!(store = %self.name.shown(), "store is back");
                }
                Ok(connection)
            }
            Err(error) => {
                let failures = state.outage.as_ref().map_or(0, |outage| outage.failures);
                if failures == 0 {
                    tracing::warn!(store = %self.name.shown(), %error, "store is away");
                }
                state.outage = Some(Outage {
                    error: error.clone(),
                    failures: failures + 1,
                    retry_at: Instant::now() + wait_after(failures),
                });
                Err(error)
            }
        }
    }

    fn present(&self) -> Option<Arc<Connection>> {
        let mut state = self.state.lock();
        if state
            .connection
            .as_ref()
            .is_some_and(|connection| connection.is_closed())
        {
            state.connection = None;
        }
        state.connection.clone()
    }

    /// Forgets a connection. The next operation connects, to `hint` first.
    fn lose(&self, connection: &Arc<Connection>, hint: Option<HostPort>) {
        let mut state = self.state.lock();
        if state
            .connection
            .as_ref()
            .is_some_and(|present| Arc::ptr_eq(present, connection))
        {
            state.connection = None;
            state.hint = hint;
        }
        drop(state);
        connection.close();
    }
}

/// How long to wait after so many failures: half of it is random, so that replicas do not all come back at once.
fn wait_after(failures: u32) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << failures.min(16)).min(LONGEST_WAIT);
    let mut random = [0; 1];
    let _ = SystemRandom::new().fill(&mut random);
    longest / 2 + longest * u32::from(random[0]) / 512
}
