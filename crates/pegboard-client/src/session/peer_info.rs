//! What a server declared about itself in the handshake.

use std::sync::Arc;

use pegboard_protocol::{
    Version,
    capability::{self, extension},
};
use serde_json::{Map, Value};

use crate::session::Era;
use crate::session::ServerInfo;
use pegboard_mask::ServerMasker;
use pegboard_tools::catalog::HeaderRule;

/// What a server declared about itself in the handshake.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    pub era: Era,
    /// The negotiated protocol version.
    pub version: Arc<str>,
    pub info: Option<ServerInfo>,
    /// All fields of `serverInfo`. They are masked where they are shown.
    pub info_fields: Map<String, Value>,
    pub capabilities: Map<String, Value>,
    pub instructions: Option<String>,
}

impl PeerInfo {
    /// Masks the secrets in the server's texts. Capabilities are masked where they are shown.
    pub(super) fn into_masked(mut self, masker: &ServerMasker) -> Self {
        masker.hide_in(&mut self.instructions);
        if let Some(info) = &mut self.info {
            masker.hide(&mut info.name);
            masker.hide(&mut info.version);
        }
        self
    }

    /// Returns `true` if the server declares this capability.
    pub fn offers(&self, capability: &str) -> bool {
        let declared = self.capabilities.get(capability);
        match capability {
            // The oldest version has completions without a capability for them.
            capability::COMPLETIONS if &*self.version == Version::V2024_11_05.as_str() => {
                self.offers(capability::PROMPTS) || self.offers(capability::RESOURCES)
            }
            _ => declared.is_some_and(|value| !value.is_null()),
        }
    }

    /// Returns `true` if the server can run tool calls as tasks.
    pub fn offers_tasks(&self) -> bool {
        let at = |path: &[&str]| {
            let first = self.capabilities.get(path[0]);
            path[1..].iter().try_fold(first?, |value, key| value.get(key))
        };
        match self.era {
            Era::Legacy => at(&[capability::TASKS, "requests", "tools", "call"]).is_some(),
            Era::Modern => at(&[capability::EXTENSIONS, extension::TASKS]).is_some(),
        }
    }

    /// Returns `true` if tasks can be cancelled. In the era without a handshake, every server with tasks supports that.
    pub fn cancels_tasks(&self) -> bool {
        let tasks = self.capabilities.get(capability::TASKS);
        let cancels = tasks
            .and_then(|tasks| tasks.get("cancel"))
            .is_some_and(|cancel| !cancel.is_null());
        cancels || self.era == Era::Modern
    }

    /// Returns `true` if the server declares notifications for changes of this list.
    pub(super) fn declares_list_changed(&self, kind: &str) -> bool {
        let capability = self.capabilities.get(kind);
        capability.and_then(|capability| capability.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Returns `true` if the server declares notifications for changes of any of its lists.
    pub(super) fn declares_any_list_changed(&self) -> bool {
        let kinds = ["tools", "resources", "prompts"];
        kinds.iter().any(|kind| self.declares_list_changed(kind))
    }

    /// Whether the server requires arguments to be repeated in HTTP headers.
    pub(super) fn header_rule(&self) -> HeaderRule {
        match self.era {
            Era::Modern => HeaderRule::Enforced,
            Era::Legacy => HeaderRule::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn peer(era: Era, version: &str, capabilities: Value) -> PeerInfo {
        PeerInfo {
            era,
            version: version.into(),
            info: None,
            info_fields: Map::new(),
            capabilities: serde_json::from_value(capabilities).expect("an object"),
            instructions: None,
        }
    }

    #[test]
    fn a_capability_that_is_null_is_not_offered() {
        let peer = peer(Era::Legacy, "2025-11-25", json!({ "tools": {}, "prompts": null }));
        assert!(peer.offers("tools"));
        assert!(!peer.offers("prompts") && !peer.offers("resources"));
        assert!(!peer.offers("completions"));
    }

    #[test]
    fn the_oldest_version_completes_without_declaring_it() {
        let completes = |capabilities| peer(Era::Legacy, "2024-11-05", capabilities).offers("completions");
        assert!(completes(json!({ "prompts": {} })));
        assert!(!completes(json!({ "tools": {} })));
    }

    #[test]
    fn each_era_declares_tasks_in_its_own_place() {
        let legacy = json!({ "tasks": { "requests": { "tools": { "call": {} } }, "cancel": {} } });
        let modern = json!({ "extensions": { extension::TASKS: {} } });
        let tasks = |era, capabilities: &Value| {
            let peer = peer(era, "2025-11-25", capabilities.clone());
            (peer.offers_tasks(), peer.cancels_tasks())
        };
        assert_eq!(tasks(Era::Legacy, &legacy), (true, true));
        assert_eq!(tasks(Era::Modern, &modern), (true, true));
        assert_eq!(tasks(Era::Legacy, &modern), (false, false));
        assert_eq!(tasks(Era::Modern, &legacy), (false, true));
    }

    #[test]
    fn only_true_declares_notifications_of_changes() {
        let peer = peer(
            Era::Legacy,
            "2025-11-25",
            json!({ "tools": { "listChanged": "yes" }, "prompts": { "listChanged": true } }),
        );
        assert!(!peer.declares_list_changed("tools") && peer.declares_list_changed("prompts"));
        assert!(peer.declares_any_list_changed());
    }
}
