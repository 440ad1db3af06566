//! What the handshake of a legacy session has settled, sealed so that its client keeps it in the id of the session. Another process with the same
//! key, or this one after a restart, goes on with the session.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use pegboard_protocol::Version;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{client::Client, sealer::ReplicaId};
use crate::door::Caller;

/// How long a session can be gone on with after its handshake.
pub(crate) const LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The longest capabilities and description of a client that are kept, in bytes.
const MAX_KEPT: usize = 32 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct KeptSession<'a> {
    /// The secret part of the id that it belongs to.
    id: &'a str,
    /// The process of the handshake, in hexadecimal digits.
    #[serde(default)]
    replica: Option<&'a str>,
    /// When the handshake was, in seconds since 1970.
    at: u64,
    version: &'a str,
    /// The only view that the client's token allowed.
    view: Option<&'a str>,
    #[serde(borrow)]
    capabilities: &'a RawValue,
    #[serde(borrow)]
    info: &'a RawValue,
}

/// What is to be sealed; `None` if the client has said too much about itself.
pub(super) fn write(client: &Client, id: &str, replica: ReplicaId) -> Option<Vec<u8>> {
    if client.capabilities().len() + client.info().len() > MAX_KEPT {
        return None;
    }
    let json = |text: &'_ Bytes| serde_json::from_slice::<Box<RawValue>>(text).ok();
    let (capabilities, info) = (json(client.capabilities())?, json(client.info())?);
    let replica = format!("{:016x}", replica.0);
    let kept = KeptSession {
        id,
        replica: Some(&replica),
        at: now(),
        version: client.version().as_str(),
        view: client.caller().view(),
        capabilities: &capabilities,
        info: &info,
    };
    serde_json::to_vec(&kept).ok()
}

/// The client of a session with this id, for the caller that names it. Its rights are those that the caller has now. `None` if the session was
/// another one, or its time is over.
pub(super) fn read(opened: &[u8], id: &str, caller: &Caller) -> Option<Client> {
    let kept: KeptSession<'_> = serde_json::from_slice(opened).ok()?;
    let age = now().saturating_sub(kept.at);
    let is_this = kept.id == id && kept.view == caller.view() && age <= LIFETIME.as_secs();
    let version = Version::parse(kept.version).filter(|version| !version.is_modern())?;
    let bytes = |value: &RawValue| Bytes::copy_from_slice(value.get().as_bytes());
    is_this.then(|| Client::new(caller.clone(), version, bytes(kept.capabilities), bytes(kept.info)))
}

/// The process in which a session was opened that [`read`] would return. `None` if it would not, and `Some(None)` if that was not noted.
pub(super) fn opener(opened: &[u8], id: &str, caller: &Caller) -> Option<Option<ReplicaId>> {
    read(opened, id, caller)?;
    let kept: KeptSession<'_> = serde_json::from_slice(opened).ok()?;
    let replica = kept.replica.and_then(|replica| u64::from_str_radix(replica, 16).ok());
    Some(replica.map(ReplicaId))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
