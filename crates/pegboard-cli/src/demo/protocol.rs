//! Dispatches requests: finds the protocol version of a request and calls its method.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::message::{Fault, Request, object};
use super::notifications::{LogLevel, Notifications};
use super::tools::tool::Call;
use super::version::Version;
use super::{offers, tools};

const INSTRUCTIONS: &str = "A demo server. Use `now` for the time, `calculate` for arithmetic and `search_text` to find \
text in the shared folder. The other tools (`echo`, `draw`, `count_slowly`, `fail`) are for trying out a client.";

pub(super) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The state of a client after its handshake. Modern requests do not use it.
#[derive(Debug, Default)]
pub(super) struct Peer(Mutex<Remembered>);

#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    version: Option<Version>,
    level: Option<LogLevel>,
}

impl Peer {
    pub(super) fn version(&self) -> Option<Version> {
        self.recall().version
    }

    /// Stores the version of a handshake. A second handshake resets the state.
    pub(super) fn settle(&self, version: Version) {
        self.remember(|remembered| {
            *remembered = Remembered {
                version: Some(version),
                level: None,
            }
        });
    }

    fn recall(&self) -> Remembered {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, change: impl FnOnce(&mut Remembered)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The protocol version of a request: the one in its `_meta`, else that of the handshake.
pub(super) fn version_of(request: &Request, peer: &Peer) -> Result<Version, Fault> {
    if request.method == "initialize" {
        let requested = request.params.get("protocolVersion").and_then(Value::as_str);
        return requested
            .map(Version::negotiate)
            .ok_or_else(|| Fault::invalid_params("`protocolVersion` is missing or not a string"));
    }
    let meta = request.params.get("_meta");
    match meta.and_then(|meta| meta.get(META_VERSION)) {
        Some(Value::String(named)) => modern_version(named, meta),
        Some(_) => Err(Fault::invalid_params(format!(
            "`_meta` key `{META_VERSION}` must be a string"
        ))),
        None if request.method == "server/discover" => Err(Fault::invalid_params(format!(
            "`_meta` needs the keys `{META_VERSION}` and `{META_CAPABILITIES}`"
        ))),
        None => match peer.version() {
            Some(version) => Ok(version),
            // MCP allows a ping before the handshake.
            None if request.method == "ping" => Ok(Version::V2025_11_25),
            None => Err(Fault::new(
                Fault::INVALID_REQUEST,
                format!("send `initialize` first, or name a version in the `_meta` key `{META_VERSION}`"),
            )),
        },
    }
}

fn modern_version(named: &str, meta: Option<&Value>) -> Result<Version, Fault> {
    let Some(version) = Version::parse(named).filter(|version| version.is_modern()) else {
        return Err(unsupported(named));
    };
    if !meta
        .and_then(|meta| meta.get(META_CAPABILITIES))
        .is_some_and(Value::is_object)
    {
        return Err(Fault::invalid_params(format!(
            "`_meta` key `{META_CAPABILITIES}` must be an object"
        )));
    }
    Ok(version)
}

pub(super) fn unsupported(requested: &str) -> Fault {
    Fault::new(
        Fault::UNSUPPORTED_VERSION,
        format!("protocol version `{requested}` is not supported in `_meta`"),
    )
    .with_data(json!({"requested": requested, "supported": Version::names()}))
}

/// The state that all requests of all clients share. It does not change after the start.
#[derive(Debug)]
pub(super) struct Demo {
    folder: PathBuf,
}

impl Demo {
    /// `folder` must be canonical, so that a path with its prefix is inside it.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Runs one request of protocol version `version`. Dropping the future cancels it.
    pub(super) async fn answer(
        &self,
        version: Version,
        request: Request,
        peer: &Peer,
        notifications: Notifications,
        cancelled: &CancellationToken,
    ) -> Result<Value, Fault> {
        let Request { method, params, .. } = request;
        let notifications = requested_notifications(notifications, version, &params, peer);
        let (mut result, cacheable) = match method.as_str() {
            "server/discover" if version.is_modern() => (discover(version), true),
            "tools/call" => {
                let call = Call {
                    folder: &self.folder,
                    notifications: &notifications,
                    cancelled,
                };
                (tools::call(params, call).await?, false)
            }
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                one_page(&params)?;
                (list(&method, version), true)
            }
            "resources/read" => (offers::resources::read(&params, version)?, true),
            "prompts/get" => (offers::prompts::get(&params)?, false),
            "completion/complete" => (offers::completion::complete(&params)?, false),
            _ if version.is_modern() => return Err(not_found(&method)),
            "initialize" => (initialize(version), false),
            "ping" => (Map::new(), false),
            "logging/setLevel" => (set_level(&params, peer)?, false),
            _ => return Err(not_found(&method)),
        };
        version.trim(&mut result);
        Ok(version.complete(result, cacheable))
    }
}

fn not_found(method: &str) -> Fault {
    Fault::new(Fault::METHOD_NOT_FOUND, format!("method `{method}` is not known here"))
}

/// Restricts the notifications to those that the request asks for: by a progress token and a log level.
fn requested_notifications(
    mut notifications: Notifications,
    version: Version,
    params: &Map<String, Value>,
    peer: &Peer,
) -> Notifications {
    let meta = params.get("_meta");
    notifications.progress_token = meta
        .and_then(|meta| meta.get("progressToken"))
        .filter(|token| token.is_string() || token.is_i64() || token.is_u64())
        .cloned();
    notifications.level = if version.is_modern() {
        meta.and_then(|meta| meta.get(META_LOG_LEVEL))
            .and_then(Value::as_str)
            .and_then(LogLevel::parse)
    } else {
        peer.recall().level
    };
    notifications
}

/// The result of the handshake. [`Peer::settle`] was called before, so that a request right after `initialize` finds the version.
fn initialize(version: Version) -> Map<String, Value> {
    object([
        ("protocolVersion", json!(version.name())),
        ("capabilities", version.capabilities()),
        ("serverInfo", version.server_info()),
        ("instructions", json!(INSTRUCTIONS)),
    ])
}

fn discover(version: Version) -> Map<String, Value> {
    object([
        ("supportedVersions", json!(Version::names())),
        ("capabilities", version.capabilities()),
        ("instructions", json!(INSTRUCTIONS)),
    ])
}

/// Refuses a cursor: every list has one page.
fn one_page(params: &Map<String, Value>) -> Result<(), Fault> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Fault::invalid_params("unknown `cursor`: this list has one page")),
    }
}

fn list(method: &str, version: Version) -> Map<String, Value> {
    let (key, mut items) = match method {
        "tools/list" => ("tools", tools::definitions()),
        "resources/list" => ("resources", offers::resources::list()),
        "resources/templates/list" => ("resourceTemplates", offers::resources::templates()),
        _ => ("prompts", offers::prompts::list()),
    };
    items
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .for_each(|item| version.trim(item));
    object([(key, Value::Array(items))])
}

fn set_level(params: &Map<String, Value>, peer: &Peer) -> Result<Map<String, Value>, Fault> {
    let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::parse);
    let level = level.ok_or_else(|| Fault::invalid_params("`level` must be one of debug … emergency"))?;
    peer.remember(|remembered| remembered.level = Some(level));
    Ok(Map::new())
}

#[cfg(test)]
mod tests;
