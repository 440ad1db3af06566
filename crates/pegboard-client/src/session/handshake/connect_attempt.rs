//! The steps of a handshake: opens a connection, sends `initialize` or `server/discover`, and parses the server's declaration.

use std::sync::{Arc, atomic::AtomicBool};

use pegboard_protocol::{
    Version, code, meta,
    method::{self, notification},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::session::Era;
use crate::session::ServerInfo;
use crate::{
    session::{
        applied_state::AppliedState,
        connect_spec::Spec,
        connection::{Framing, RpcConnection},
        dispatch::Dispatcher,
        fault::{Fault, FaultKind, Flaw},
        host::{Responder, ResponderTask},
        json_rpc::Params,
        mcp_session::Session,
        modern_meta::ModernMeta,
        notifications::Notifications,
        patience::Patience,
        peer_info::PeerInfo,
        request::Request,
        response::parse_result,
    },
    transport::{self, ConnectionCredentials, Sent, Target},
};
use pegboard_base::deadline::Deadline;
use pegboard_config::{EraChoice, Limits};

/// The longest instructions that are kept.
const MAX_INSTRUCTIONS: usize = 16 << 10;
/// The longest `serverInfo` that is kept with all its fields, in bytes of JSON.
const MAX_INFO: usize = 32 << 10;

/// One attempt to connect to a server.
pub(super) struct ConnectAttempt<'a> {
    pub(super) spec: &'a Spec,
    pub(super) responder: Arc<Responder>,
    pub(super) deadline: Deadline,
    /// Runs the close of abandoned connections, and waits for the end of abandoned processes.
    pub(super) tasks: &'a TaskTracker,
    /// Set if the request in the newest era was lost, so that the server may support it all the same.
    pub(super) is_modern_lost: AtomicBool,
    /// Set if the server has completed a handshake, even if it was lost afterwards.
    pub(super) is_legacy_known: AtomicBool,
}

/// A connection whose handshake has succeeded.
pub(super) struct Established {
    pub(super) connection: RpcConnection,
    pub(super) peer: PeerInfo,
}

impl Established {
    pub(super) fn into_session(self, spec: &Spec, responder: Arc<Responder>) -> Session {
        Session {
            peer: self.peer.into_masked(&spec.masker),
            connection: self.connection,
            server: spec.name.clone(),
            limits: spec.limits,
            has_offered_roots: responder.offers_roots(),
            is_for_questions: spec.is_for_questions,
            responder,
            applied: AppliedState::default(),
        }
    }
}

impl ConnectAttempt<'_> {
    /// Opens a connection without a handshake.
    pub(super) async fn open(&self) -> Result<RpcConnection, Fault> {
        self.open_to(&self.spec.target).await
    }

    async fn open_to(&self, target: &Target) -> Result<RpcConnection, Fault> {
        let spec = self.spec;
        let (dispatcher, requests) = Dispatcher::new(spec.name.clone(), spec.masker.clone(), spec.budget.clone());
        dispatcher.set_notifications(Notifications::new(
            spec.name.clone(),
            spec.desired_state.clone(),
            spec.masker.clone(),
        ));
        let credentials = spec.credentials.as_ref();
        let credentials = credentials.map(|source| ConnectionCredentials::new(source.clone(), spec.masker.clone()));
        // All attempts share one deadline.
        let limits = Limits {
            connect_timeout: self.deadline.remaining(),
            ..self.spec.limits
        };
        let wire = transport::dial(target, &limits, credentials, dispatcher.clone(), self.tasks).await?;
        let responding = ResponderTask {
            requests,
            responder: self.responder.clone(),
        };
        Ok(RpcConnection::new(dispatcher, wire.into(), responding, self.tasks))
    }

    /// Returns `true` if there is time left for another connection.
    pub(super) fn can_open_again(&self) -> bool {
        !self.deadline.has_passed()
    }

    /// Opens a connection and performs the handshake.
    pub(super) async fn connect_legacy(&self) -> Result<Established, Fault> {
        self.connect_legacy_to(&self.spec.target).await
    }

    pub(super) async fn connect_legacy_to(&self, target: &Target) -> Result<Established, Fault> {
        let mut connection = self.open_to(target).await?;
        match self.initialize(&mut connection).await {
            Ok(peer) => Ok(Established { connection, peer }),
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// Opens a connection and sends `server/discover`.
    pub(super) async fn connect_modern(&self, deadline: Deadline) -> Result<Established, Fault> {
        let mut connection = self.open().await?;
        match self.discover(&mut connection, deadline).await {
            Ok(peer) => Ok(Established { connection, peer }),
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// Performs the handshake of the eras that have one.
    pub(super) async fn initialize(&self, connection: &mut RpcConnection) -> Result<PeerInfo, Fault> {
        connection.set_framing(Framing::default());
        let result = self.ask_initialize(connection).await?;
        self.complete_handshake(connection, result).await
    }

    /// Sends `initialize` and waits for its result.
    pub(super) async fn ask_initialize(&self, connection: &RpcConnection) -> Result<InitializeResult, Fault> {
        let requested = match &self.spec.era {
            EraChoice::Version(version) => version.as_str(),
            EraChoice::Auto | EraChoice::Probe | EraChoice::Modern | EraChoice::Legacy => {
                Version::LATEST_LEGACY.as_str()
            }
        };
        let params = Params::default()
            .with("protocolVersion", requested)
            .with("capabilities", &self.responder.capabilities(Era::Legacy))
            .with("clientInfo", &*self.spec.client);
        let request = Request::new(method::INITIALIZE, params);
        let patience = Patience::until(self.deadline);
        let result = connection.request_in(&Framing::default(), request, patience).await?;
        parse_result(&result)
    }

    /// Agrees on the version of an `initialize` result, and ends the handshake.
    pub(super) async fn complete_handshake(
        &self,
        connection: &mut RpcConnection,
        result: InitializeResult,
    ) -> Result<PeerInfo, Fault> {
        let started = Instant::now();
        let Some(version) = result.version else {
            return Err(Fault::flawed(Flaw::NoVersion, "it does not name a protocol version"));
        };
        if Version::parse(&version).is_none_or(Version::is_modern) {
            return Err(no_common_version(&[version]));
        }
        let version: Arc<str> = version.into();
        connection.set_framing(Framing {
            version: Some(version.clone()),
            modern_meta: None,
        });
        let notified = connection.notify(notification::INITIALIZED, Params::default());
        match self.deadline.run(notified).await {
            Ok(notified) => notified?,
            Err(_) => return Err(Fault::timed_out(started)),
        }
        connection
            .wire()
            .on_established(&connection.envelope(&Request::new(method::INITIALIZE, Params::default())))
            .await;
        Ok(result.declaration.into_peer_info(Era::Legacy, version))
    }

    /// Sends `server/discover`, which replaces the handshake in the newest era.
    pub(super) async fn discover(&self, connection: &mut RpcConnection, deadline: Deadline) -> Result<PeerInfo, Fault> {
        connection.set_framing(self.modern_framing());
        let result = self.ask_discover(connection, deadline).await?;
        Ok(self.complete_discovery(connection, result).await)
    }

    /// Sends `server/discover` and waits for its result.
    pub(super) async fn ask_discover(
        &self,
        connection: &RpcConnection,
        deadline: Deadline,
    ) -> Result<DiscoverResult, Fault> {
        let framing = self.modern_framing();
        let mut result = Err(Fault::unreadable("not asked yet"));
        // A server may reject a supported version once, to test whether the client reads its list of versions.
        for _ in 0..2 {
            let request = Request::new(method::SERVER_DISCOVER, Params::default());
            result = connection
                .request_in(&framing, request, Patience::until(deadline))
                .await;
            match &result {
                Err(fault)
                    if supported_versions(fault)
                        .iter()
                        .any(|version| version == Version::LATEST_MODERN.as_str()) => {}
                _ => break,
            }
        }
        let result: DiscoverResult = match result {
            Ok(result) => parse_result(&result)?,
            Err(fault) if supported_versions(&fault).is_empty() => return Err(fault),
            Err(fault) => return Err(no_common_version(&supported_versions(&fault))),
        };
        if !result
            .versions
            .iter()
            .any(|version| version == Version::LATEST_MODERN.as_str())
        {
            return Err(no_common_version(&result.versions));
        }
        Ok(result)
    }

    /// Speaks the newest era from now on, with a server that has answered `server/discover`.
    pub(super) async fn complete_discovery(&self, connection: &mut RpcConnection, result: DiscoverResult) -> PeerInfo {
        connection.set_framing(self.modern_framing());
        connection
            .wire()
            .on_established(&connection.envelope(&Request::new(method::SERVER_DISCOVER, Params::default())))
            .await;
        result
            .declaration
            .into_peer_info(Era::Modern, Version::LATEST_MODERN.as_str().into())
    }

    pub(super) fn modern_framing(&self) -> Framing {
        let (responder, client) = (&self.responder, self.spec.client.clone());
        let meta = ModernMeta::new(
            Version::LATEST_MODERN.as_str(),
            client,
            responder.offers(),
            responder.has_roots(),
        );
        Framing {
            version: Some(Version::LATEST_MODERN.as_str().into()),
            modern_meta: Some(meta.into()),
        }
    }
}

fn no_common_version(theirs: &[String]) -> Fault {
    let theirs: String = theirs.join(", ").chars().take(200).collect();
    let ours = Version::ALL.map(Version::as_str).join(", ");
    Fault {
        kind: FaultKind::NoVersion(format!(
            "the server speaks the protocol versions [{}], and we speak {ours}",
            theirs.escape_debug()
        )),
        sent: Sent::Rejected,
    }
}

/// Returns the versions in the error with which a server rejects ours.
fn supported_versions(fault: &Fault) -> Vec<String> {
    let FaultKind::Error(error) = &fault.kind else {
        return Vec::new();
    };
    let versions = error
        .data
        .as_ref()
        .and_then(|data| data.get("supported"))
        .and_then(Value::as_array);
    let texts = versions.into_iter().flatten().filter_map(Value::as_str);
    match error.code {
        code::UNSUPPORTED_VERSION => texts.map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[derive(Deserialize)]
pub(super) struct InitializeResult {
    #[serde(rename = "protocolVersion", default)]
    version: Option<String>,
    #[serde(flatten)]
    declaration: Declaration,
}

#[derive(Deserialize)]
pub(super) struct DiscoverResult {
    #[serde(rename = "supportedVersions", default)]
    versions: Vec<String>,
    #[serde(flatten)]
    declaration: Declaration,
}

/// All fields of `serverInfo`; only its name and version if they are too long to keep for a session.
fn shorten_info(info: &Map<String, Value>) -> Map<String, Value> {
    let is_short = serde_json::to_vec(info).is_ok_and(|text| text.len() <= MAX_INFO);
    let is_known = |key: &str| matches!(key, "name" | "title" | "version");
    let kept = info.iter().filter(|(key, value)| {
        is_short || (is_known(key) && value.as_str().is_some_and(|text| text.len() <= MAX_INFO))
    });
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The fields that both results share. All are optional: a malformed one is no reason to fail.
#[derive(Deserialize)]
struct Declaration {
    #[serde(default)]
    capabilities: Value,
    #[serde(rename = "serverInfo", default)]
    info: Value,
    #[serde(default)]
    instructions: Value,
    #[serde(rename = "_meta", default)]
    meta: Value,
}

impl Declaration {
    fn into_peer_info(self, era: Era, version: Arc<str>) -> PeerInfo {
        let info = match &self.info {
            Value::Object(info) => Some(info),
            _ => self.meta.get(meta::SERVER_INFO).and_then(Value::as_object),
        };
        let text =
            |info: &Map<String, Value>, key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        PeerInfo {
            era,
            version,
            info: info.map(|info| ServerInfo {
                name: text(info, "name"),
                version: text(info, "version"),
            }),
            info_fields: info.map(shorten_info).unwrap_or_default(),
            capabilities: match self.capabilities {
                Value::Object(capabilities) => capabilities,
                _ => Map::new(),
            },
            instructions: match self.instructions {
                Value::String(mut text) => {
                    text.truncate(text.floor_char_boundary(MAX_INSTRUCTIONS));
                    Some(text)
                }
                _ => None,
            },
        }
    }
}
