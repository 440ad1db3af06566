//! [`Subscriptions`]: subscribes to notifications of servers (resource updates, log messages and others), and sets log levels and roots.

use std::{sync::Arc, time::Duration};

use super::{
    open_view::OpenView,
    server_requests::{ServerRequests, must_offer},
};
use crate::server::Live;
use crate::status::Era;
use futures_util::future::BoxFuture;
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_client::session::{DesiredState, LogLevel, Root, ServerEvents, Subscription, WantedLogs};
use pegboard_tools::outcome::{Failure, Kind};

/// How long a server may take to confirm a subscription or log level.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// What a view hears of its servers and sets for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscriptions<'a> {
    open: &'a OpenView,
    requests: ServerRequests<'a>,
}

impl<'a> Subscriptions<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self {
            open,
            requests: ServerRequests::new(open),
        }
    }

    /// Subscribes to all notifications of a server from now on, across restarts. A slow subscriber misses some and is notified of that.
    pub(super) fn listen(self, server: &str) -> Result<ServerEvents, Failure> {
        let server = &self.requests.parse_name(server)?;
        let (tasks, name) = (self.open.view.forwarded_tasks.clone(), server.clone());
        let events = self.find_desired_state(server)?.events();
        let events = events.with_principal(self.open.view.principal.clone());
        Ok(events.with_tasks(move |id| tasks.has_id(&name, id)))
    }

    fn find_desired_state(self, server: &ServerName) -> Result<Arc<DesiredState>, Failure> {
        self.requests
            .find_server(server)?
            .connections()
            .desired_state()
            .ok_or_else(|| {
                let message = format!("server `{server}` is switched off");
                Failure::new(Kind::Unavailable, message)
            })
    }

    /// Subscribes to updates of a resource until the subscription is dropped. It is renewed in every new session, and keeps the server from
    /// being stopped as idle.
    pub(super) fn subscribe(self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Subscription, Failure>> {
        Box::pin(async move {
            let server = &self.requests.parse_name(server)?;
            let (_, live) = self.requests.connect(server).await?;
            must_offer(&live, server, "resources")?;
            let resources = live.session.peer.capabilities.get("resources");
            if resources.and_then(|resources| resources.get("subscribe")?.as_bool()) != Some(true) {
                let message = format!("server `{server}` does not offer news of its resources");
                return Err(Failure::new(Kind::Unavailable, message));
            }
            live.session.note_user(self.open.view.principal.as_ref());
            let address = live.catalog().original_uri(uri);
            let shown = live.session.masker().text(address);
            let Some(subscription) = self.find_desired_state(server)?.subscribe(address, &shown) else {
                let message = format!("too many resources of server `{server}` are subscribed to");
                return Err(Failure::new(Kind::LimitExceeded, message));
            };
            let confirmed = Deadline::within(CONFIRM_TIMEOUT)
                .run(live.session.until_subscribed(address, subscription.revision()))
                .await;
            match confirmed {
                Ok(Ok(())) => Ok(subscription.with_kept(live.keep_alive())),
                Ok(Err(problem)) => {
                    let message = format!("subscribing to {shown} failed: {problem}");
                    Err(Failure::new(Kind::ToolError, message))
                }
                Err(_) => {
                    let message = format!(
                        "subscribing to {shown} failed: no answer within {} s",
                        CONFIRM_TIMEOUT.as_secs()
                    );
                    Err(Failure::new(Kind::Timeout, message))
                }
            }
        })
    }

    /// Sets the log level of a server, for this session and all later ones. The log messages arrive through [`Subscriptions::listen`].
    ///
    /// The server logs from a lower level on while that is [wanted](Subscriptions::want_logs).
    pub(super) fn set_log_level(self, server: &'a str, level: LogLevel) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let server = &self.requests.parse_name(server)?;
            let live = self.connect_logging(server).await?;
            let revision = self.find_desired_state(server)?.set_level(level);
            confirm_level(&live, server, level, revision).await
        })
    }

    /// Makes a server log from a level on, until the returned value is dropped. The server logs from the lowest level that is wanted.
    pub(super) fn want_logs(self, server: &'a str, level: LogLevel) -> BoxFuture<'a, Result<WantedLogs, Failure>> {
        Box::pin(async move {
            let server = &self.requests.parse_name(server)?;
            let live = self.connect_logging(server).await?;
            let (wanted, revision) = self.find_desired_state(server)?.want_level(level);
            confirm_level(&live, server, level, revision).await?;
            Ok(wanted)
        })
    }

    async fn connect_logging(self, server: &ServerName) -> Result<Live, Failure> {
        let (_, live) = self.requests.connect(server).await?;
        // Without a handshake the level is sent with requests, and servers may log without declaring the capability.
        if live.session.peer.era == Era::Legacy {
            must_offer(&live, server, "logging")?;
        }
        Ok(live)
    }

    /// Sets the roots of a server that this view owns, or of a shared server for all views. A server with a handshake is notified of the
    /// change; if it had no roots when it was started, it learns of them at its next start.
    pub(super) fn set_roots(self, server: &str, roots: &[Root]) -> Result<(), Failure> {
        let server = &self.requests.parse_name(server)?;
        self.find_desired_state(server)?.set_roots(roots);
        Ok(())
    }

    /// Tells a server with a handshake that the roots of this view's callers have changed. The view's host answers when the server asks for them.
    pub(super) fn announce_roots(self, server: &str) -> Result<(), Failure> {
        let server = &self.requests.parse_name(server)?;
        self.find_desired_state(server)?.announce_roots();
        Ok(())
    }
}

/// Waits until the server logs from this level on, or has refused to.
async fn confirm_level(live: &Live, server: &ServerName, level: LogLevel, revision: u64) -> Result<(), Failure> {
    let set = live.session.until_level_set(revision);
    match Deadline::within(CONFIRM_TIMEOUT).run(set).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => {
            let message = format!("setting the log level of `{server}` failed: {problem}");
            Err(Failure::new(Kind::ToolError, message))
        }
        Err(_) => {
            let message = format!("server `{server}` did not say that it logs from `{level}` on");
            Err(Failure::new(Kind::Timeout, message))
        }
    }
}
