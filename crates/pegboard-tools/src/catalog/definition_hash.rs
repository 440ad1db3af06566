//! The hash of a tool's definition. An approval is bound to it, so a changed definition needs a new approval.

use std::{fmt, sync::OnceLock};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};
use sha2::{Digest, Sha256};

/// The SHA-256 of a tool's definition: name, title, description, schemas, annotations and all other fields, such as icons and `_meta`,
/// independent of the order of keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionHash([u8; 32]);

impl DefinitionHash {
    /// Hashes a definition in canonical form.
    #[doc(hidden)]
    pub fn compute(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Hashes a definition that is written in parts.
    pub(super) fn compute_from(write: impl FnOnce(&mut dyn FnMut(&str))) -> Self {
        let mut hash = Sha256::new();
        write(&mut |part| hash.update(part.as_bytes()));
        Self(hash.finalize().into())
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for DefinitionHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut hash = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err("a definition's hash has 64 hexadecimal digits");
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or("a digit is not hexadecimal");
            // Two digits fit a byte.
            *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
        }
        Ok(Self(hash))
    }
}

impl Serialize for DefinitionHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DefinitionHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HashVisitor;

        impl Visitor<'_> for HashVisitor {
            type Value = DefinitionHash;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<DefinitionHash, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(HashVisitor)
    }
}

/// A lazily computed hash. It is derived from the tool, so it never makes two tools differ.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedHash(OnceLock<DefinitionHash>);

impl CachedHash {
    pub(super) fn get_or_init(&self, hash: impl FnOnce() -> DefinitionHash) -> DefinitionHash {
        *self.0.get_or_init(hash)
    }
}

impl PartialEq for CachedHash {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::tool::Tool;
    use pegboard_base::name::ServerName;

    fn tool(item: Value) -> Tool {
        Tool::parse_built_in(&ServerName::parse("fx").unwrap(), item).unwrap()
    }

    #[test]
    fn every_part_of_a_definition_changes_its_hash_and_order_does_not() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
        let base = json!({"name": "t", "description": "d", "inputSchema": schema});
        let hash = tool(base.clone()).definition_hash();
        for (part, value) in [
            ("name", json!("u")),
            ("title", json!("T")),
            ("description", json!("other")),
            ("inputSchema", json!({"type": "object"})),
            ("outputSchema", json!({})),
            ("annotations", json!({"readOnlyHint": true})),
            ("icons", json!([{"src": "https://x.example/i.png"}])),
            ("_meta", json!({"k": 1})),
            ("execution", json!({"taskSupport": "optional"})),
            ("unknown", json!(true)),
        ] {
            let mut changed = base.clone();
            changed[part] = value;
            assert_ne!(tool(changed).definition_hash(), hash, "{part}");
        }
        let turned = r#"{"inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"description":"d","name":"t"}"#;
        let turned = tool(serde_json::from_str(turned).unwrap());
        assert_eq!(turned.definition_hash(), hash);
        assert_eq!(turned.clone().definition_hash(), hash);
        assert_eq!(turned, tool(base), "a hash that was made makes no difference");
    }

    #[test]
    fn a_hash_is_written_and_read_as_hexadecimal() {
        let hash = tool(json!({"name": "t"})).definition_hash();
        assert_eq!(hash.to_string().parse::<DefinitionHash>(), Ok(hash));
        for bad in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert!(bad.parse::<DefinitionHash>().is_err(), "{bad}");
        }
    }
}
