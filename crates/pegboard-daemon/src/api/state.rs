//! [`ApiState`]: what the handlers of the API share.

use std::sync::Arc;

use pegboard::{Pegboard, Provider, Toolset};
use pegboard_gateway::{Caller, Monitor, PrincipalQuota, SignInLinks};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    problem::Problem,
    server_settings::ServerSettings,
    toolsets::{CallerToolsets, Purpose},
};
use crate::reloads::Reloads;

/// The most long bodies of requests that are read or handled at once.
const LONG_BODIES: usize = 32;
/// The most event streams that are open at once.
const STREAMS: usize = 256;
/// The most OpenAPI documents that are written at once. One of 10,000 tools takes a core for a moment.
const DOCUMENTS: usize = 2;

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct ApiState {
    pub(super) board: Pegboard,
    pub(super) reloads: Reloads,
    pub(super) settings: Option<Arc<dyn ServerSettings>>,
    /// Cancelled when the daemon stops. Streams on which a client only listens end then.
    pub(super) stop: CancellationToken,
    /// Says when calls in flight get no more time at a shutdown.
    pub(super) monitor: Monitor,
    /// The links to the sign-in pages, if those are served.
    pub(super) sign_in_links: Option<SignInLinks>,
    toolsets: CallerToolsets,
    pub(super) long_bodies: Arc<PrincipalQuota>,
    pub(super) streams: Arc<PrincipalQuota>,
    pub(super) documents: Semaphore,
}

impl ApiState {
    pub(crate) fn new(
        board: Pegboard,
        reloads: Reloads,
        settings: Option<Arc<dyn ServerSettings>>,
        stop: CancellationToken,
        monitor: Monitor,
        sign_in_links: Option<SignInLinks>,
    ) -> Self {
        Self {
            board,
            reloads,
            settings,
            stop,
            monitor,
            sign_in_links,
            toolsets: CallerToolsets::default(),
            long_bodies: PrincipalQuota::new(LONG_BODIES),
            streams: PrincipalQuota::new(STREAMS),
            documents: Semaphore::new(DOCUMENTS),
        }
    }

    pub(crate) fn board(&self) -> &Pegboard {
        &self.board
    }

    /// The toolset for the calls of a caller.
    pub(super) fn toolset(&self, caller: &Caller) -> Result<Toolset, Problem> {
        self.toolsets.get(&self.board, caller, Provider::Mcp, Purpose::Calls)
    }

    /// The toolset that lists what a caller sees, with the names and definitions of a provider. It calls no tools.
    pub(super) fn listings(&self, caller: &Caller, provider: Provider) -> Result<Toolset, Problem> {
        self.toolsets.get(&self.board, caller, provider, Purpose::Listings)
    }

    /// Whether the caller sees a server of this name.
    pub(crate) fn sees(&self, caller: &Caller, server: &str) -> bool {
        match caller.view() {
            None => true,
            Some(_) => self
                .listings(caller, Provider::Mcp)
                .is_ok_and(|toolset| toolset.has_server(server)),
        }
    }
}
