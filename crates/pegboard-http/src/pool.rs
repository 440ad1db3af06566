//! Connections that are kept for the next request.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use crate::connection::Connection;

/// The most connections that are kept.
const MAX_KEPT: usize = 256;
/// How long a kept connection may take until it can take a request. Its last response has just ended, so this is a matter of microseconds, unless
/// the server did not read its last request to the end.
const READY_TIME: Duration = Duration::from_millis(50);

/// The connections of one client that no request uses, and the one that requests share.
#[derive(Debug)]
pub(crate) struct Pool {
    kept: Mutex<Kept>,
    idle_time: Duration,
}

#[derive(Debug, Default)]
struct Kept {
    /// Those of HTTP/1.1, the last used one last.
    idle: Vec<KeptConnection>,
    /// That of HTTP/2.
    shared: Option<KeptConnection>,
    /// Whether a task closes connections that are idle for too long.
    is_watched: bool,
}

#[derive(Debug)]
struct KeptConnection {
    connection: Connection,
    used: Instant,
}

impl Pool {
    pub(crate) fn new(idle_time: Duration) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            idle_time,
        })
    }

    /// Takes a connection that can take a request now.
    pub(crate) async fn take(&self) -> Option<Connection> {
        loop {
            let mut connection = self.take_kept()?;
            if matches!(tokio::time::timeout(READY_TIME, connection.ready()).await, Ok(true)) {
                return Some(connection);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn has_open(&self) -> bool {
        self.kept.lock().idle.iter().any(|kept| !kept.connection.is_closed())
    }

    fn take_kept(&self) -> Option<Connection> {
        self.kept.lock().take(self.idle_time)
    }

    /// Lets other requests use a new connection while one does, if its version can do that.
    pub(crate) fn share(self: &Arc<Self>, connection: &Connection) {
        if let Some(shared) = connection.share() {
            self.kept.lock().shared = Some(KeptConnection::new(shared));
            self.watch();
        }
    }

    /// Keeps a connection whose last response has ended.
    pub(crate) fn keep(self: &Arc<Self>, connection: Connection) {
        let mut kept = self.kept.lock();
        match connection {
            Connection::Http2 { .. } => {
                if let Some(shared) = &mut kept.shared {
                    shared.used = Instant::now();
                }
                return;
            }
            Connection::Http1 { .. } if connection.is_closed() || kept.idle.len() == MAX_KEPT => return,
            Connection::Http1 { .. } => kept.idle.push(KeptConnection::new(connection)),
        }
        let is_watched = kept.is_watched;
        drop(kept);
        if !is_watched {
            self.watch();
        }
    }

    /// Starts the task that closes connections that are idle for too long.
    fn watch(self: &Arc<Self>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let is_watched = std::mem::replace(&mut self.kept.lock().is_watched, true);
            if !is_watched {
                runtime.spawn(close_old(Arc::downgrade(self), self.idle_time));
            }
        }
    }
}

impl Kept {
    fn take(&mut self, idle_time: Duration) -> Option<Connection> {
        if self.shared.as_ref().is_some_and(|shared| shared.is_over(idle_time)) {
            self.shared = None;
        }
        if let Some(shared) = &self.shared {
            return shared.connection.share();
        }
        let kept = self.idle.pop()?;
        if kept.is_over(idle_time) {
            self.idle.retain(|kept| !kept.is_over(idle_time));
            return self.idle.pop().map(|kept| kept.connection);
        }
        Some(kept.connection)
    }

    /// Closes the connections that are idle for too long. Returns whether one is left.
    fn close_old(&mut self, idle_time: Duration) -> bool {
        self.idle.retain(|kept| !kept.is_over(idle_time));
        self.shared.take_if(|shared| shared.is_over(idle_time));
        self.is_watched = !self.idle.is_empty() || self.shared.is_some();
        self.is_watched
    }
}

impl KeptConnection {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            used: Instant::now(),
        }
    }

    /// Whether it is closed, or idle for so long that the server may be closing it.
    fn is_over(&self, idle_time: Duration) -> bool {
        self.connection.is_closed() || self.connection.is_unused() && self.used.elapsed() >= idle_time
    }
}

/// Closes connections that are idle for too long, until none is left.
async fn close_old(pool: Weak<Pool>, idle_time: Duration) {
    loop {
        tokio::time::sleep(idle_time).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.kept.lock().close_old(idle_time) {
            return;
        }
    }
}
