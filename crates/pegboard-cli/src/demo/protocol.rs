//! One request, one answer: which version a request speaks, and which method it names.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::message::{Fault, Request, object};
use super::notices::{LogLevel, Notices};
use super::tools::tool::Call;
use super::version::Version;
use super::{offers, tools};

const INSTRUCTIONS: &str = "A demo server. Use `now` for the time, `calculate` for arithmetic and `search_text` to find \
text in the shared folder. The other tools (`echo`, `draw`, `count_slowly`, `fail`) are for trying out a client.";

pub(super) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What a connection or session remembers of a client that did the handshake. Modern requests leave it untouched.
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

    /// Keeps what a handshake settled. A second handshake starts afresh.
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

/// The version that a request speaks: its own word in `_meta`, else what the handshake settled.
pub(super) fn version_of(request: &Request, peer: &Peer) -> Result<Version, Fault> {
    if request.method == "initialize" {
        let asked = request.params.get("protocolVersion").and_then(Value::as_str);
        return asked
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
            // A ping is allowed before the handshake.
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

    /// Answers one request that speaks `version`. Dropping the future abandons the work.
    pub(super) async fn answer(
        &self,
        version: Version,
        request: Request,
        peer: &Peer,
        notices: Notices,
        cancelled: &CancellationToken,
    ) -> Result<Value, Fault> {
        let Request { method, params, .. } = request;
        let notices = wanted(notices, version, &params, peer);
        let (mut result, cacheable) = match method.as_str() {
            "server/discover" if version.is_modern() => (discover(version), true),
            "tools/call" => {
                let call = Call {
                    folder: &self.folder,
                    notices: &notices,
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
        Ok(version.dress(result, cacheable))
    }
}

fn not_found(method: &str) -> Fault {
    Fault::new(Fault::METHOD_NOT_FOUND, format!("method `{method}` is not known here"))
}

/// Keeps of the way to the client only what this request asked for.
fn wanted(mut notices: Notices, version: Version, params: &Map<String, Value>, peer: &Peer) -> Notices {
    let meta = params.get("_meta");
    notices.progress_token = meta
        .and_then(|meta| meta.get("progressToken"))
        .filter(|token| token.is_string() || token.is_i64() || token.is_u64())
        .cloned();
    notices.level = if version.is_modern() {
        meta.and_then(|meta| meta.get(META_LOG_LEVEL))
            .and_then(Value::as_str)
            .and_then(LogLevel::parse)
    } else {
        peer.recall().level
    };
    notices
}

/// The wire has already told the peer, so that a request right behind the handshake finds it settled.
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

/// Every list is one page, so no cursor of ours exists.
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
