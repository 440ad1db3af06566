//! The risk of calling a tool. Annotations are claims: they lower the risk only if their source is trusted, and without a claim the worst
//! is assumed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::Tool;
use pegboard_base::label::label;

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolKind {
    /// A tool of an MCP server.
    #[default]
    Mcp,
    /// A Rust function of this program: `NativeTools` on the board or in a view.
    Native,
    /// A tool that Pegboard itself answers, such as `find_tools`, `read_output` and `read_resource`.
    BuiltIn,
}

impl ToolKind {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Native => "native",
            Self::BuiltIn => "built_in",
        }
    }

    /// Returns whether annotations of this kind of tool are trusted when they claim that it does no harm. Those of an MCP server are
    /// trusted only if its config says `trust = true`; this program's own tools always are.
    #[doc(hidden)]
    pub fn is_believed(self, trusted: bool) -> bool {
        match self {
            Self::Mcp => trusted,
            Self::Native | Self::BuiltIn => true,
        }
    }
}

label!(ToolKind, "kind of tool", [Mcp, Native, BuiltIn]);

/// How much harm a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Risk {
    /// Reads, in a closed world. Listing and reading resources has this risk.
    Low,
    /// Reads from the open world, or writes without destroying in a closed one.
    Medium,
    /// Everything else: every tool without annotations, and every tool of an MCP server without `trust = true`.
    High,
}

impl Risk {
    /// The risk of listing and reading resources.
    pub const OF_RESOURCES: Self = Self::Low;

    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

label!(Risk, "risk", [Low, Medium, High]);

impl Tool {
    /// Returns whether it only reads; `trusted` says whether its annotations are trusted. It must claim `readOnlyHint` and must not claim
    /// `destructiveHint` as well.
    pub fn is_read_only(&self, trusted: bool) -> bool {
        trusted && self.claims("readOnlyHint") == Some(true) && self.claims("destructiveHint") != Some(true)
    }

    /// How much harm a call may do; `trusted` says whether its annotations are trusted, and if not, the risk is high.
    /// `ListedTool::risk` is the risk under the settings of the tool's server.
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
    use pegboard_base::name::ServerName;

    fn tool(annotations: &Value) -> Tool {
        let item = json!({"name": "t", "annotations": annotations});
        Tool::parse_built_in(&ServerName::parse("fx").unwrap(), item).unwrap()
    }

    /// The table of the goat design: resources have low risk, tools of a server have high risk without annotations.
    #[test]
    fn the_risk_levels_of_goat_are_those_of_tools_without_hints() {
        assert_eq!(Risk::OF_RESOURCES, Risk::Low);
        assert_eq!(tool(&json!(null)).risk(true), Risk::High);
        assert_eq!(tool(&json!({})).risk(true), Risk::High);
        // The design's names for annotations are not those of the protocol, so they have no effect.
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
            // The two annotations contradict each other.
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
