//! The fields that each protocol version has, and what the demo server says about itself in them.

use pegboard_gateway::Version;
use serde_json::{Map, Value, json};

/// A JSON object with these fields.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Removes the fields of a definition or result that a version does not have.
pub(super) fn trim(version: Version, object: &mut Map<String, Value>) {
    if version < Version::V2025_03_26 {
        object.remove("annotations");
    }
    if version < Version::V2025_06_18 {
        object.remove("title");
        object.remove("outputSchema");
        object.remove("structuredContent");
    }
}

pub(super) fn server_info(version: Version) -> Map<String, Value> {
    let mut info = object([
        ("name", json!("pegboard-demo")),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ]);
    if version >= Version::V2025_06_18 {
        info.insert("title".into(), json!("Pegboard demo server"));
    }
    if version >= Version::V2025_11_25 {
        let description = "A clock, a calculator, a folder search and tools for trying out a client";
        info.insert("description".into(), json!(description));
    }
    info
}

/// The server's capabilities. Lists never change, and nothing can be subscribed to.
pub(super) fn capabilities(version: Version) -> Map<String, Value> {
    let mut capabilities = object(["tools", "resources", "prompts", "logging"].map(|key| (key, json!({}))));
    if version >= Version::V2025_03_26 {
        capabilities.insert("completions".into(), json!({}));
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

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
            trim(version, &mut offer);
            let mut keys: Vec<_> = offer.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, kept, "{version:?}");
        }
    }
}
