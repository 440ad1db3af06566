//! One item of a listing.

use bytes::Bytes;
use serde_json::Value;

/// One item of a listing: JSON text or a parsed tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// The item as JSON text, not parsed yet.
    Text(Bytes),
    /// The parsed item.
    Tree(Value),
}

impl Item {
    /// Parses the text, if it is not parsed yet.
    pub(super) fn tree(self) -> serde_json::Result<Value> {
        match self {
            Self::Text(text) => serde_json::from_slice(&text),
            Self::Tree(tree) => Ok(tree),
        }
    }
}

impl From<Value> for Item {
    fn from(tree: Value) -> Self {
        Self::Tree(tree)
    }
}
