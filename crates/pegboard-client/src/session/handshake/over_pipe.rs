//! The eras over a stream of messages: stdio, WebSocket, or a server in this process.
//!
//! A silent process gets the requests of both eras, one after the other, and the era that it answers is spoken. A second process is started only
//! when the first one has ended: servers that hold a lock, a port or a file would not survive a neighbour, and a slow one would pay twice.

use std::{sync::atomic::Ordering, time::Duration};

use pegboard_protocol::method;

use super::{
    PROBE_TIMEOUT,
    connect_attempt::{ConnectAttempt, DiscoverResult, Established, InitializeResult},
    is_lost, is_modern, remember_legacy, remember_modern,
};
use crate::session::{
    connection::RpcConnection,
    era_memory::RememberedEra,
    fault::{Fault, FaultKind},
    json_rpc::Params,
    patience::Patience,
    request::Request,
};
use pegboard_base::deadline::Deadline;
use pegboard_config::EraChoice;

/// The request that a server has answered first.
enum Answered {
    Initialize {
        result: InitializeResult,
        /// Whether the server has got `server/discover` as well.
        was_probed: bool,
    },
    Discover(DiscoverResult),
}

impl ConnectAttempt<'_> {
    /// Connects over a stream of messages. After `silence` without a response the process is asked in the other era, too.
    pub(super) async fn over_pipe(
        &self,
        remembered: Option<RememberedEra>,
        silence: Option<Duration>,
    ) -> Result<(Established, RememberedEra), Fault> {
        match (&self.spec.era, remembered) {
            (EraChoice::Legacy, _) => self.connect_legacy().await.map(remember_legacy),
            (EraChoice::Modern, _) => self.connect_modern(self.deadline).await.map(remember_modern),
            (EraChoice::Version(version), _) if is_modern(version) => {
                self.connect_modern(self.deadline).await.map(remember_modern)
            }
            (EraChoice::Version(_), _) => self.connect_legacy().await.map(remember_legacy),
            (EraChoice::Probe, _) | (EraChoice::Auto, Some(RememberedEra::Modern | RememberedEra::Silent)) => {
                self.discover_first().await
            }
            (EraChoice::Auto, Some(RememberedEra::Legacy | RememberedEra::Sse)) => {
                // The server is more likely to be slow than to have changed, so the other era is tried as late as possible.
                let limit = self.spec.limits.connect_timeout;
                let patience = (limit / 2).max(limit.saturating_sub(PROBE_TIMEOUT));
                self.initialize_first(silence.map(|_| patience)).await
            }
            (EraChoice::Auto, None) => self.initialize_first(silence).await,
        }
    }

    /// Sends `initialize`. If that is rejected, or is not answered for a while, sends `server/discover` to the same process; if the process
    /// exits, to another one.
    async fn initialize_first(&self, silence: Option<Duration>) -> Result<(Established, RememberedEra), Fault> {
        let mut connection = self.open().await?;
        let fault = match self.ask_initialize_first(&connection, silence).await {
            Ok(Answered::Discover(result)) => {
                let peer = self.complete_discovery(&mut connection, result).await;
                return Ok(remember_modern(Established { connection, peer }));
            }
            Ok(Answered::Initialize { result, was_probed }) => {
                match self.complete_handshake(&mut connection, result).await {
                    Ok(peer) if !was_probed || self.is_alive(&connection).await => {
                        return Ok(remember_legacy(Established { connection, peer }));
                    }
                    Err(fault) if !was_probed || !is_lost(&fault) => fault,
                    Ok(_) | Err(_) => return self.start_again(connection).await,
                }
            }
            Err(fault) => fault,
        };
        match &fault.kind {
            FaultKind::Error(_) => match self.discover(&mut connection, self.probe_deadline()).await {
                Ok(peer) => Ok(remember_modern(Established { connection, peer })),
                Err(discover_fault) => {
                    self.is_modern_lost.store(is_lost(&discover_fault), Ordering::Relaxed);
                    connection.close().await;
                    Err(fault)
                }
            },
            FaultKind::Ended(end) if end.reason.may_speak_other_era() && self.can_open_again() => {
                connection.close().await;
                let again = self.connect_modern(self.probe_deadline()).await;
                again.map(remember_modern).map_err(|_| fault)
            }
            _ => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// Sends `initialize`, and after `silence` also `server/discover`. The first result counts.
    async fn ask_initialize_first(
        &self,
        connection: &RpcConnection,
        silence: Option<Duration>,
    ) -> Result<Answered, Fault> {
        let initialized = |was_probed| move |result| Answered::Initialize { result, was_probed };
        let initializing = self.ask_initialize(connection);
        tokio::pin!(initializing);
        let Some(silence) = silence else {
            return initializing.await.map(initialized(false));
        };
        tokio::select! {
            biased;
            result = &mut initializing => return result.map(initialized(false)),
            () = tokio::time::sleep(silence) => {}
        }
        tracing::debug!("the server is silent; asking it in the other era, too");
        tokio::select! {
            biased;
            result = &mut initializing => result.map(initialized(true)),
            Ok(result) = self.ask_discover(connection, self.deadline) => Ok(Answered::Discover(result)),
            else => initializing.await.map(initialized(true)),
        }
    }

    /// Returns `true` if the server still answers. Some exit or hang when they get `server/discover` before the handshake is over.
    async fn is_alive(&self, connection: &RpcConnection) -> bool {
        let ping = Request::new(method::PING, Params::default());
        match connection.request(ping, Patience::until(self.probe_deadline())).await {
            Ok(_) => true,
            Err(fault) => matches!(fault.kind, FaultKind::Error(_)),
        }
    }

    /// Ends a process that did not survive `server/discover`, and starts another one, which gets the handshake alone.
    async fn start_again(&self, connection: RpcConnection) -> Result<(Established, RememberedEra), Fault> {
        tracing::debug!("the server did not survive the question for its era; starting it again");
        self.is_legacy_known.store(true, Ordering::Relaxed);
        connection.close().await;
        self.connect_legacy().await.map(remember_legacy)
    }

    /// Sends `server/discover`. If that is rejected, or is not answered for a while, sends `initialize` to the same process; if the process
    /// exits or stays silent, to another one.
    async fn discover_first(&self) -> Result<(Established, RememberedEra), Fault> {
        let mut connection = self.open().await?;
        connection.set_framing(self.modern_framing());
        let answered = match self.ask_discover_first(&connection).await {
            Ok(Answered::Discover(result)) => {
                let peer = self.complete_discovery(&mut connection, result).await;
                return Ok(remember_modern(Established { connection, peer }));
            }
            Ok(Answered::Initialize { result, .. }) => self.complete_handshake(&mut connection, result).await,
            Err(fault)
                if matches!(
                    fault.kind,
                    FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_)
                ) =>
            {
                self.initialize(&mut connection).await
            }
            Err(fault) => {
                connection.close().await;
                if matches!(&fault.kind, FaultKind::Ended(end) if !end.reason.may_speak_other_era()) {
                    return Err(fault);
                }
                return self.connect_legacy().await.map(remember_legacy);
            }
        };
        match answered {
            Ok(peer) => Ok(remember_legacy(Established { connection, peer })),
            Err(fault) => {
                connection.close().await;
                if matches!(fault.kind, FaultKind::Ended(_)) {
                    self.connect_legacy().await.map(remember_legacy)
                } else {
                    Err(fault)
                }
            }
        }
    }

    /// Sends `server/discover`, and after at most [`PROBE_TIMEOUT`] also `initialize`. The first result counts; so does a rejected `server/discover`.
    async fn ask_discover_first(&self, connection: &RpcConnection) -> Result<Answered, Fault> {
        // A legacy server that hangs on an unknown request needs another process, and time for it.
        let limit = self.deadline.remaining() / 4;
        let (deadline, silence) = (Deadline::within(limit * 3), PROBE_TIMEOUT.min(limit));
        let initialized = |result| Answered::Initialize {
            result,
            was_probed: true,
        };
        let discovering = self.ask_discover(connection, deadline);
        tokio::pin!(discovering);
        tokio::select! {
            biased;
            result = &mut discovering => return result.map(Answered::Discover),
            () = tokio::time::sleep(silence) => {}
        }
        let initializing = self.ask_initialize(connection);
        tokio::pin!(initializing);
        tokio::select! {
            biased;
            result = &mut discovering => match result {
                Ok(result) => Ok(Answered::Discover(result)),
                // A slow server answers both requests in turn.
                Err(fault) if matches!(fault.kind, FaultKind::Error(_)) => initializing.await.map(initialized),
                Err(fault) => Err(fault),
            },
            Ok(result) = &mut initializing => Ok(initialized(result)),
        }
    }
}
