//! The pins of one server, and their file format.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
};

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::identity::ServerIdentity;
use pegboard_tools::catalog::DefinitionHash;

/// The version of the file format.
pub(super) const VERSION: u32 = 1;
/// The longest definition that is kept as text; of longer ones only the hash is kept.
const MAX_DEFINITION: usize = 32 << 10;
/// The most text of definitions that is kept for one server.
const MAX_TEXT: usize = 4 << 20;
/// The most pins of one server. Pins of tools that the server no longer lists are removed first.
pub(super) const MAX_PINS: usize = 4096;

/// The pins of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PinnedServer {
    pub(super) version: u32,
    /// The hash of what the server is: its command, or its URL.
    pub identity: String,
    /// The program or URL, without arguments and secrets.
    pub shown: String,
    /// The name that the server had in the config when its pins were last written.
    pub server: String,
    /// The pinned tools, by name.
    pub tools: BTreeMap<String, Pin>,
    /// The server's instructions; an empty definition if it has none. `None` if they were never seen.
    pub instructions: Option<Pin>,
}

/// One pinned definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pin {
    /// The hash of the definition.
    pub hash: DefinitionHash,
    /// Whether a person accepted it. Otherwise it was recorded when it was first listed.
    pub accepted: bool,
    /// When it was recorded or accepted.
    pub at: Timestamp,
    /// The definition as JSON, or the text of the instructions. `None` if it is too long to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

/// The pins of one server without their texts: all that a listing is compared with.
#[derive(Debug, Deserialize)]
pub(crate) struct PinMarks {
    version: u32,
    identity: String,
    pub(super) tools: HashMap<String, PinMark>,
    pub(super) instructions: Option<PinMark>,
}

/// One pin without its text.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct PinMark {
    pub(super) hash: DefinitionHash,
    pub(super) accepted: bool,
}

/// What a file of pins is read into.
pub(super) trait PinFile: DeserializeOwned {
    /// Whether the file is of this version, and of the server with this identity.
    fn is_of(&self, identity: &OsStr) -> bool;
}

impl PinFile for PinnedServer {
    fn is_of(&self, identity: &OsStr) -> bool {
        self.version == VERSION && *identity == *self.identity
    }
}

impl PinFile for PinMarks {
    fn is_of(&self, identity: &OsStr) -> bool {
        self.version == VERSION && *identity == *self.identity
    }
}

impl From<&PinnedServer> for PinMarks {
    fn from(pinned: &PinnedServer) -> Self {
        let tools = pinned.tools.iter();
        Self {
            version: pinned.version,
            identity: pinned.identity.clone(),
            tools: tools.map(|(name, pin)| (name.clone(), pin.mark())).collect(),
            instructions: pinned.instructions.as_ref().map(Pin::mark),
        }
    }
}

impl PinnedServer {
    pub(super) fn new(identity: &ServerIdentity) -> Self {
        Self {
            version: VERSION,
            identity: identity.hash.clone(),
            shown: identity.shown.clone(),
            server: String::new(),
            tools: BTreeMap::new(),
            instructions: None,
        }
    }

    /// How many bytes of definitions may still be kept.
    pub(super) fn room(&self) -> usize {
        let texts = self.tools.values().filter_map(|pin| pin.definition.as_ref());
        MAX_TEXT.saturating_sub(texts.map(String::len).sum())
    }
}

impl Pin {
    fn mark(&self) -> PinMark {
        PinMark {
            hash: self.hash,
            accepted: self.accepted,
        }
    }

    /// Creates a pin. Its text is kept if there is `room` for it.
    pub(super) fn new(hash: DefinitionHash, definition: Option<String>, accepted: bool, room: &mut usize) -> Self {
        let definition = definition.filter(|text| text.len() <= MAX_DEFINITION.min(*room));
        *room -= definition.as_ref().map_or(0, String::len);
        Self {
            hash,
            accepted,
            at: Timestamp::now(),
            definition,
        }
    }
}
