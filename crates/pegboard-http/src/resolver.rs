//! Looks up the addresses of hosts: with the system, or for one host in a list that was made before.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// A host, and the only addresses that are connected to for it.
pub(crate) type Pinned = (String, Vec<SocketAddr>);

/// Looks up addresses.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    pub(crate) pinned: Option<Arc<Pinned>>,
}

/// A host could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("the host cannot be resolved")]
pub(crate) struct LookupFailed(#[source] io::Error);

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = LookupFailed;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupFailed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupFailed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if let Some(pinned) = self.pinned.as_deref()
            && pinned.0.eq_ignore_ascii_case(name.as_str())
        {
            return Box::pin(std::future::ready(Ok(pinned.1.clone().into_iter())));
        }
        Box::pin(async move {
            // The connector sets the port.
            let lookup = tokio::task::spawn_blocking(move || (name.as_str(), 0).to_socket_addrs());
            let found = lookup.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            found.map_err(LookupFailed)
        })
    }
}
