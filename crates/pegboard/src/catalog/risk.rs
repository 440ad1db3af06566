//! What a tool may do to the world, as far as its own hints say. Hints are claims: what is not claimed is taken to be the worst.

use serde::Serialize;
use serde_json::Value;

use super::Tool;

/// How much harm a call may do, by what the tool says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It reads, in a world of its own. Listing and reading resources is of this kind.
    Low,
    /// It reads from the open world, or writes without destroying in a world of its own.
    Medium,
    /// Everything else, and every tool that says nothing about itself.
    High,
}

impl Risk {
    /// The risk of listing and reading resources.
    pub const OF_RESOURCES: Self = Self::Low;

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Tool {
    /// Whether it says that it only reads, and does not say the opposite as well.
    pub fn is_read_only(&self) -> bool {
        self.claims("readOnlyHint") == Some(true) && self.claims("destructiveHint") != Some(true)
    }

    /// How much harm a call may do, by its own hints.
    pub fn risk(&self) -> Risk {
        let is_closed = self.claims("openWorldHint") == Some(false);
        let adds_only = self.claims("destructiveHint") == Some(false);
        match (self.is_read_only(), is_closed) {
            (true, true) => Risk::Low,
            (true, false) => Risk::Medium,
            (false, true) if adds_only => Risk::Medium,
            (false, _) => Risk::High,
        }
    }

    fn claims(&self, hint: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(hint).and_then(Value::as_bool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::name::ServerName;

    fn tool(annotations: &Value) -> Tool {
        let item = json!({"name": "t", "annotations": annotations});
        Tool::built_in(&ServerName::parse("fx").unwrap(), item).unwrap()
    }

    /// The rows of the goat design: resources are of low risk, any tool of a server is of high risk, as long as it says nothing else.
    #[test]
    fn the_risk_levels_of_goat_are_those_of_tools_without_hints() {
        assert_eq!(Risk::OF_RESOURCES, Risk::Low);
        assert_eq!(tool(&json!(null)).risk(), Risk::High);
        assert_eq!(tool(&json!({})).risk(), Risk::High);
        // The names that the design gives its hints are not those on the wire, so they say nothing.
        assert_eq!(tool(&json!({"readOnly": true, "openWorld": false})).risk(), Risk::High);
    }

    #[test]
    fn risk_falls_only_by_what_a_tool_claims() {
        for (hints, reads, risk) in [
            (json!({"readOnlyHint": true, "openWorldHint": false}), true, Risk::Low),
            (json!({"readOnlyHint": true}), true, Risk::Medium),
            (json!({"readOnlyHint": true, "openWorldHint": true}), true, Risk::Medium),
            (
                json!({"destructiveHint": false, "openWorldHint": false}),
                false,
                Risk::Medium,
            ),
            (json!({"destructiveHint": false}), false, Risk::High),
            (json!({"openWorldHint": false}), false, Risk::High),
            (json!({"readOnlyHint": false}), false, Risk::High),
            (json!({"destructiveHint": true}), false, Risk::High),
            (
                json!({"readOnlyHint": "true", "openWorldHint": false}),
                false,
                Risk::High,
            ),
            // Whoever says both has not thought about it.
            (
                json!({"readOnlyHint": true, "destructiveHint": true, "openWorldHint": false}),
                false,
                Risk::High,
            ),
        ] {
            let tool = tool(&hints);
            assert_eq!((tool.is_read_only(), tool.risk()), (reads, risk), "{hints}");
        }
    }
}
