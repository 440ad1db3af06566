//! [`DashboardDoor`]: how `pegboard open` gets a browser into the dashboard of a daemon.
//!
//! A command asks at the local socket for a link. A daemon that listens on a socket only then listens on a port of this machine as well, which the system
//! chooses, until it ends; requests there pass the same checks as those at the addresses of `pegboard serve`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Extension, Json, Router,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use pegboard_gateway::{BrowserSessions, Caller, Gateway, Listeners, LocalClient};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// The most commands that wait for an address at once.
const WAITING: usize = 16;

type Answer = oneshot::Sender<Result<SocketAddr, String>>;

/// The end that the route has.
#[derive(Clone, Debug)]
pub(super) struct DashboardDoor {
    /// The address at which a browser of this machine reaches the daemon already.
    address: Option<SocketAddr>,
    scheme: &'static str,
    is_served: bool,
    wanted: mpsc::Sender<Answer>,
}

/// The end of the process that listens.
#[derive(Debug)]
pub(super) struct WantedAddresses(mpsc::Receiver<Answer>);

impl DashboardDoor {
    /// The door of a daemon that listens on these addresses.
    pub(super) fn new(addresses: &[SocketAddr], speaks_tls: bool, is_served: bool) -> (Self, WantedAddresses) {
        let (wanted, received) = mpsc::channel(WAITING);
        let door = Self {
            address: addresses.iter().find_map(|address| local(*address)),
            scheme: if speaks_tls { "https" } else { "http" },
            is_served,
            wanted,
        };
        (door, WantedAddresses(received))
    }

    /// The route of the command, which answers at the local socket only.
    pub(super) fn router(self, sessions: BrowserSessions) -> Router {
        let door = Arc::new(self);
        let open = async move |local: Option<Extension<LocalClient>>, caller: Option<Extension<Caller>>| {
            let (Some(_), Some(Extension(caller))) = (local, caller) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            door.link(&sessions, &caller).await
        };
        Router::new().route("/local/open", get(open))
    }

    async fn link(&self, sessions: &BrowserSessions, caller: &Caller) -> Response {
        if !self.is_served {
            return Json(json!({"error": "the config turns the dashboard off: `serve.dashboard = false`"}))
                .into_response();
        }
        let link = match self.address().await {
            Ok(address) => sessions
                .create_link(caller)
                .map_err(|error| error.to_string())
                .map(|link| (address, link)),
            Err(why) => Err(why),
        };
        let document = match link {
            Ok((address, (code, expires_in))) => json!({
                "url": format!("{}://{address}/ui/open/{}", self.scheme, code.expose()),
                "expires_in_s": expires_in.as_secs(),
            }),
            Err(why) => json!({"error": why}),
        };
        Json(document).into_response()
    }

    async fn address(&self) -> Result<SocketAddr, String> {
        if let Some(address) = self.address {
            return Ok(address);
        }
        let (answer, answered) = oneshot::channel();
        let stops = "the daemon stops".to_owned();
        self.wanted.try_send(answer).map_err(|_| stops.clone())?;
        answered.await.map_err(|_| stops)?
    }
}

impl WantedAddresses {
    /// Listens on a port of this machine as soon as a command wants an address. Never completes; what listens ends when it is dropped.
    pub(super) async fn listen(mut self, gateway: &Gateway, stop: &CancellationToken) {
        let mut listening: Option<(SocketAddr, AbortOnDropHandle<()>)> = None;
        while let Some(answer) = self.0.recv().await {
            if let Some((address, _)) = &listening {
                let _ = answer.send(Ok(*address));
                continue;
            }
            let begun = begin(gateway, stop).await;
            let address = begun.as_ref().map(|(address, _)| *address).map_err(Clone::clone);
            listening = begun.ok();
            let _ = answer.send(address);
        }
        std::future::pending().await
    }
}

async fn begin(gateway: &Gateway, stop: &CancellationToken) -> Result<(SocketAddr, AbortOnDropHandle<()>), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(|error| format!("no port of this machine can be listened on: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let (gateway, stopped) = (gateway.clone(), stop.clone().cancelled_owned());
    let serving = tokio::spawn(async move {
        if let Err(error) = gateway.serve(Listeners::from(vec![listener]), stopped).await {
            tracing::warn!(%error, "the dashboard is not served any more");
        }
    });
    tracing::info!(%address, "listening for the dashboard");
    Ok((address, AbortOnDropHandle::new(serving)))
}

/// The address at which a browser of this machine reaches a listener; `None` if it would come from elsewhere.
fn local(address: SocketAddr) -> Option<SocketAddr> {
    let ip = address.ip();
    if ip.is_unspecified() {
        let ip = if ip.is_ipv4() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            "::1".parse().ok()?
        };
        return Some(SocketAddr::new(ip, address.port()));
    }
    ip.to_canonical().is_loopback().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_comes_to_an_address_of_this_machine() {
        let local = |text: &str| local(text.parse().unwrap()).map(|address| address.to_string());
        assert_eq!(local("127.0.0.1:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(local("[::1]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(local("0.0.0.0:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(local("[::]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(local("192.0.2.1:1"), None);
    }
}
