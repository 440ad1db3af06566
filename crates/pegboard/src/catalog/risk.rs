//! What a tool may do to the world. Its annotations are claims: they lower the risk only where the claimant is trusted, and what is not
//! claimed is taken to be the worst.

use serde::Serialize;
use serde_json::Value;

use super::Tool;

/// Whose tool it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// A tool of an MCP server.
    #[default]
    Mcp,
    /// A Rust function of this program: [`NativeTools`](crate::NativeTools) on the board or in a view.
    Native,
    /// A tool that Pegboard itself answers, such as `find_tools`, `read_output` and `read_resource`.
    BuiltIn,
}

impl ToolKind {
    /// The word for it in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Native => "native",
            Self::BuiltIn => "built_in",
        }
    }

    /// Whether a tool of this kind is believed when its annotations claim that it does no harm. Those of an MCP server are believed
    /// only if its config says `trust = true`; this program's own tools always are.
    pub(crate) fn is_believed(self, trusted: bool) -> bool {
        match self {
            Self::Mcp => trusted,
            Self::Native | Self::BuiltIn => true,
        }
    }
}

/// How much harm a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It reads, in a world of its own. Listing and reading resources is of this kind.
    Low,
    /// It reads from the open world, or writes without destroying in a world of its own.
    Medium,
    /// Everything else: every tool that says nothing about itself, and every tool of an MCP server without `trust = true`.
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
    /// Whether it only reads: `trusted` says whether its annotations are believed. It must claim `readOnlyHint` and must not claim
    /// `destructiveHint` as well.
    pub fn is_read_only(&self, trusted: bool) -> bool {
        trusted && self.claims("readOnlyHint") == Some(true) && self.claims("destructiveHint") != Some(true)
    }

    /// How much harm a call may do: `trusted` says whether its annotations are believed, and if not, the risk is high.
    /// [`ListedTool::risk`](crate::ListedTool::risk) is the risk under the settings of the tool's server.
    pub fn risk(&self, trusted: bool) -> Risk {
        if !trusted {
            return Risk::High;
        }
        let is_closed = self.claims("openWorldHint") == Some(false);
        let adds_only = self.claims("destructiveHint") == Some(false);
        match (self.is_read_only(trusted), is_closed) {
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
        assert_eq!(tool(&json!(null)).risk(true), Risk::High);
        assert_eq!(tool(&json!({})).risk(true), Risk::High);
        // The names that the design gives its hints are not those on the wire, so they say nothing.
        assert_eq!(
            tool(&json!({"readOnly": true, "openWorld": false})).risk(true),
            Risk::High
        );
    }

    #[test]
    fn risk_falls_only_by_what_a_trusted_tool_claims() {
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
            assert_eq!((tool.is_read_only(true), tool.risk(true)), (reads, risk), "{hints}");
            assert_eq!(
                (tool.is_read_only(false), tool.risk(false)),
                (false, Risk::High),
                "{hints}"
            );
        }
    }
}
