//! The protocol versions of the demo server, and the fields that each of them has.

use serde_json::{Map, Value, json};

/// A protocol version, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// How long a client may cache a list. Lists do not change while the server runs.
const TTL_MS: u64 = 300_000;

impl Version {
    /// All versions, newest first: the order in which clients should prefer them.
    pub(super) const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// The version of a handshake: the requested one if it has a handshake, else the newest that does.
    pub(super) fn negotiate(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|version| !version.is_modern())
            .unwrap_or(Self::V2025_11_25)
    }

    /// Returns `true` if requests need no handshake and no session.
    pub(super) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    pub(super) fn names() -> Vec<&'static str> {
        Self::ALL.into_iter().map(Self::name).collect()
    }

    /// Removes the fields of a definition or result that this version does not have.
    pub(super) fn trim(self, object: &mut Map<String, Value>) {
        if self < Self::V2025_03_26 {
            object.remove("annotations");
        }
        if self < Self::V2025_06_18 {
            object.remove("title");
            object.remove("outputSchema");
            object.remove("structuredContent");
        }
    }

    /// Adds the fields that this version requires of a result.
    pub(super) fn complete(self, mut result: Map<String, Value>, cacheable: bool) -> Value {
        if self.is_modern() {
            result.insert("resultType".into(), json!("complete"));
            result.insert(
                "_meta".into(),
                json!({"io.modelcontextprotocol/serverInfo": self.server_info()}),
            );
            if cacheable {
                result.insert("ttlMs".into(), json!(TTL_MS));
                result.insert("cacheScope".into(), json!("public"));
            }
        }
        Value::Object(result)
    }

    pub(super) fn server_info(self) -> Value {
        let mut info = json!({"name": "pegboard-demo", "version": env!("CARGO_PKG_VERSION")});
        if self >= Self::V2025_06_18 {
            info["title"] = json!("Pegboard demo server");
        }
        if self >= Self::V2025_11_25 {
            info["description"] = json!("A clock, a calculator, a folder search and tools for trying out a client");
        }
        info
    }

    /// The server's capabilities. Lists never change, and nothing can be subscribed to.
    pub(super) fn capabilities(self) -> Value {
        let mut capabilities = json!({"tools": {}, "resources": {}, "prompts": {}, "logging": {}});
        if self >= Self::V2025_03_26 {
            capabilities["completions"] = json!({});
        }
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_settles_on_a_version_that_has_one() {
        for (asked, settled) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1.0", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(Version::negotiate(asked).name(), settled, "{asked}");
        }
    }

    #[test]
    fn an_offer_holds_only_fields_of_its_version() {
        for (version, kept) in [
            (Version::V2024_11_05, vec!["name"]),
            (Version::V2025_03_26, vec!["annotations", "name"]),
            (
                Version::V2025_06_18,
                vec!["annotations", "name", "outputSchema", "title"],
            ),
            (
                Version::V2026_07_28,
                vec!["annotations", "name", "outputSchema", "title"],
            ),
        ] {
            let mut offer = Map::new();
            for key in ["name", "title", "annotations", "outputSchema"] {
                offer.insert(key.into(), json!({}));
            }
            version.trim(&mut offer);
            let mut keys: Vec<_> = offer.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, kept, "{version:?}");
        }
    }
}
