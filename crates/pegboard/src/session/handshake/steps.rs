//! The single steps of a handshake: open a wire, ask in one era or the other, and read what the server says about itself.

use std::sync::{Arc, atomic::AtomicBool};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{LEGACY_VERSIONS, MODERN_VERSION, Spec};
use crate::{
    config::{EraChoice, Limits},
    deadline::Deadline,
    session::{
        Facts, Fault, FaultKind, Patience, Request, Session,
        connection::{Framing, RpcConnection},
        host,
        json_rpc::Params,
        notifications::Notifications,
        pending_requests::PendingRequests,
        reconcile,
    },
    status::{Era, ServerInfo},
    transport::{self, Sent, Target},
};

/// The longest instructions that are kept.
const MAX_INSTRUCTIONS: usize = 16 << 10;

/// One attempt to reach a server.
pub(super) struct Opening<'a> {
    pub(super) spec: &'a Spec,
    pub(super) host: Arc<host::Responder>,
    pub(super) deadline: Deadline,
    /// Where the ends of wires that are given up are waited for.
    pub(super) tasks: &'a TaskTracker,
    /// Set when the question in the newest era got lost, so that the server may speak it all the same.
    pub(super) unheard: AtomicBool,
}

/// A server that has answered the handshake.
pub(super) struct Opened {
    pub(super) connection: RpcConnection,
    pub(super) facts: Facts,
}

impl Opened {
    pub(super) fn into_session(self, spec: &Spec, host: Arc<host::Responder>) -> Session {
        Session {
            facts: self.facts.hidden(&spec.masker),
            connection: self.connection,
            server: spec.name.clone(),
            limits: spec.limits,
            has_offered_roots: host.has_roots(),
            host,
            kept: reconcile::Reconciled::default(),
        }
    }
}

impl Opening<'_> {
    pub(super) async fn open(&self) -> Result<RpcConnection, Fault> {
        self.open_at(&self.spec.target).await
    }

    async fn open_at(&self, target: &Target) -> Result<RpcConnection, Fault> {
        let spec = self.spec;
        let (pending, requests) = PendingRequests::behind(spec.name.clone(), spec.masker.clone(), spec.budget.clone());
        pending.set_notifications(Notifications::new(
            spec.name.clone(),
            spec.desired_state.clone(),
            spec.masker.clone(),
        ));
        // What was spent on an attempt before this one is not given again.
        let limits = Limits {
            connect: self.deadline.remaining(),
            ..self.spec.limits
        };
        let wire = transport::dial(target, &limits, pending.clone()).await?;
        let answering = host::Answering {
            requests,
            responder: self.host.clone(),
        };
        Ok(RpcConnection::new(pending, wire.into(), answering, self.tasks))
    }

    /// Whether a second process can be started when the first one ended.
    pub(super) fn can_open_again(&self) -> bool {
        !self.deadline.has_passed()
    }

    pub(super) async fn initialize_anew(&self) -> Result<Opened, Fault> {
        self.initialize_at(&self.spec.target).await
    }

    pub(super) async fn initialize_at(&self, target: &Target) -> Result<Opened, Fault> {
        let mut connection = self.open_at(target).await?;
        match self.initialize(&mut connection).await {
            Ok(facts) => Ok(Opened { connection, facts }),
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    pub(super) async fn discover_anew(&self, deadline: Deadline) -> Result<Opened, Fault> {
        let mut connection = self.open().await?;
        match self.discover(&mut connection, deadline).await {
            Ok(facts) => Ok(Opened { connection, facts }),
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// The handshake of the eras that have one.
    pub(super) async fn initialize(&self, connection: &mut RpcConnection) -> Result<Facts, Fault> {
        let started = Instant::now();
        connection.set_manner(Framing::default());
        let wanted = match &self.spec.era {
            EraChoice::Version(version) => version.as_str(),
            EraChoice::Auto | EraChoice::Probe | EraChoice::Modern | EraChoice::Legacy => LEGACY_VERSIONS[0],
        };
        let params = Params::default()
            .with("protocolVersion", wanted)
            .with("capabilities", &self.host.capabilities(Era::Legacy))
            .with("clientInfo", &*self.spec.client);
        let request = Request::new("initialize", params);
        let answer = connection.request(request, Patience::until(self.deadline)).await?;
        let hello: Hello = read(&answer)?;
        let Some(version) = hello.version else {
            return Err(Fault::unreadable("it does not name a protocol version"));
        };
        if !LEGACY_VERSIONS.contains(&version.as_str()) {
            return Err(no_common_version(&[version]));
        }
        let version: Arc<str> = version.into();
        connection.set_manner(Framing {
            version: Some(version.clone()),
            modern_meta: None,
        });
        let notified = connection.notify("notifications/initialized", Params::default());
        match self.deadline.run(notified).await {
            Ok(notified) => notified?,
            Err(_) => return Err(Fault::late(started)),
        }
        connection
            .wire()
            .established(&connection.envelope(&Request::new("initialize", Params::default())))
            .await;
        Ok(hello.rest.into_facts(Era::Legacy, version))
    }

    /// What takes the handshake's place in the era without one.
    pub(super) async fn discover(&self, connection: &mut RpcConnection, deadline: Deadline) -> Result<Facts, Fault> {
        connection.set_manner(self.modern_manner());
        let mut answer = Err(Fault::unreadable("not asked yet"));
        // A server may refuse a version that it supports once, to see whether we look at its list.
        for _ in 0..2 {
            let request = Request::new("server/discover", Params::default());
            answer = connection.request(request, Patience::until(deadline)).await;
            match &answer {
                Err(fault) if supported_by(fault).iter().any(|version| version == MODERN_VERSION) => {}
                _ => break,
            }
        }
        let found: Discovered = match answer {
            Ok(answer) => read(&answer)?,
            Err(fault) if supported_by(&fault).is_empty() => return Err(fault),
            Err(fault) => return Err(no_common_version(&supported_by(&fault))),
        };
        if !found.versions.iter().any(|version| version == MODERN_VERSION) {
            return Err(no_common_version(&found.versions));
        }
        connection
            .wire()
            .established(&connection.envelope(&Request::new("server/discover", Params::default())))
            .await;
        Ok(found.rest.into_facts(Era::Modern, MODERN_VERSION.into()))
    }

    fn modern_manner(&self) -> Framing {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
            "io.modelcontextprotocol/clientInfo": &*self.spec.client,
            "io.modelcontextprotocol/clientCapabilities": self.host.capabilities(Era::Modern),
        })
        .to_string();
        Framing {
            version: Some(MODERN_VERSION.into()),
            modern_meta: Some(meta[1..meta.len() - 1].into()),
        }
    }
}

fn no_common_version(theirs: &[String]) -> Fault {
    let theirs: String = theirs.join(", ").chars().take(200).collect();
    let ours = LEGACY_VERSIONS.join(", ");
    Fault {
        kind: FaultKind::NoVersion(format!(
            "the server speaks the protocol versions [{}], and we speak {MODERN_VERSION}, {ours}",
            theirs.escape_debug()
        )),
        sent: Sent::Rejected,
    }
}

/// The versions that a server named when it refused ours.
fn supported_by(fault: &Fault) -> Vec<String> {
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
        -32022 => texts.map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(answer).map_err(|error| Fault::unreadable(error.to_string()))
}

#[derive(Deserialize)]
struct Hello {
    #[serde(rename = "protocolVersion", default)]
    version: Option<String>,
    #[serde(flatten)]
    rest: About,
}

#[derive(Deserialize)]
struct Discovered {
    #[serde(rename = "supportedVersions", default)]
    versions: Vec<String>,
    #[serde(flatten)]
    rest: About,
}

/// What a server says about itself. Everything is optional, because nothing of it is worth failing for.
#[derive(Deserialize)]
struct About {
    #[serde(default)]
    capabilities: Value,
    #[serde(rename = "serverInfo", default)]
    info: Value,
    #[serde(default)]
    instructions: Value,
    #[serde(rename = "_meta", default)]
    meta: Value,
}

impl About {
    fn into_facts(self, era: Era, version: Arc<str>) -> Facts {
        let info = match &self.info {
            Value::Object(info) => Some(info),
            _ => self
                .meta
                .get("io.modelcontextprotocol/serverInfo")
                .and_then(Value::as_object),
        };
        let text =
            |info: &Map<String, Value>, key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Facts {
            era,
            version,
            info: info.map(|info| ServerInfo {
                name: text(info, "name"),
                version: text(info, "version"),
            }),
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
