//! What servers tell by themselves: news of resources, their logs, and what else happens.

use std::{sync::Arc, time::Duration};

use super::{read_request::must_offer, toolset_handle::Toolset};
use crate::{
    deadline::Deadline,
    name::ServerName,
    outcome::{Failure, Kind},
    session::{DesiredState, LogLevel, Root, ServerEvents, Subscription},
    status::Era,
};

/// How long a server may take to agree to a wish.
const AGREE: Duration = Duration::from_secs(30);

impl Toolset {
    /// Everything that a server tells by itself from now on, also after restarts. Whoever listens too slowly misses some of it and is told
    /// so.
    pub fn events(&self, server: &ServerName) -> Result<ServerEvents, Failure> {
        Ok(self.desired_state(server)?.events())
    }

    fn desired_state(&self, server: &ServerName) -> Result<Arc<DesiredState>, Failure> {
        self.server(server)?.desired_state().ok_or_else(|| {
            let message = format!("server `{server}` is switched off");
            Failure::new(Kind::Unavailable, message)
        })
    }

    /// Asks a server for news of a resource, until the subscription is dropped. It is renewed by itself in every new session, and keeps a
    /// server that would be stopped when nobody uses it.
    pub async fn subscribe(&self, server: &ServerName, uri: &str) -> Result<Subscription, Failure> {
        let (_, live) = self.ready_server(server).await?;
        must_offer(&live, server, "resources")?;
        let resources = live.session.facts.capabilities.get("resources");
        if resources.and_then(|resources| resources.get("subscribe")?.as_bool()) != Some(true) {
            let message = format!("server `{server}` does not offer news of its resources");
            return Err(Failure::new(Kind::Unavailable, message));
        }
        let address = live.catalog().address(uri);
        let shown = live.session.masker().text(address);
        let Some(subscription) = self.desired_state(server)?.subscribe(address, &shown) else {
            let message = format!("too many resources of server `{server}` are subscribed to");
            return Err(Failure::new(Kind::LimitExceeded, message));
        };
        let agreed = Deadline::within(AGREE)
            .run(live.session.until_subscribed(address, subscription.wish()))
            .await;
        match agreed {
            Ok(Ok(())) => Ok(subscription.keeping(live.keep_alive())),
            Ok(Err(problem)) => {
                let message = format!("subscribing to {shown} failed: {problem}");
                Err(Failure::new(Kind::ToolError, message))
            }
            Err(_) => {
                let message = format!("subscribing to {shown} failed: no answer within {} s", AGREE.as_secs());
                Err(Failure::new(Kind::Timeout, message))
            }
        }
    }

    /// Has a server send its log from this level on, in this session and all later ones. What it logs comes with [`Toolset::events`].
    pub async fn set_log_level(&self, server: &ServerName, level: LogLevel) -> Result<(), Failure> {
        let (_, live) = self.ready_server(server).await?;
        // Without a handshake the level is only said, never asked for, and servers log that do not say that they do.
        if live.session.facts.era == Era::Legacy {
            must_offer(&live, server, "logging")?;
        }
        let wish = self.desired_state(server)?.set_level(level);
        match Deadline::within(AGREE).run(live.session.until_logging(wish)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(problem)) => Err(Failure::new(
                Kind::ToolError,
                format!("setting the log level of `{server}` failed: {problem}"),
            )),
            Err(_) => Err(Failure::new(
                Kind::Timeout,
                format!(
                    "server `{server}` did not say that it logs from `{}` on",
                    level.as_str()
                ),
            )),
        }
    }

    /// Sets the roots of a server that only this view uses, or of a shared one for all. A server with a handshake is told of the change;
    /// one that had no roots at all when it was started learns of them at its next start.
    pub fn set_roots(&self, server: &ServerName, roots: &[Root]) -> Result<(), Failure> {
        self.desired_state(server)?.set_roots(roots);
        Ok(())
    }
}
