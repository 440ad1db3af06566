//! Named views of a config.

use serde::{Deserialize, Serialize};

use super::{
    field::{DefaultValue, ValueKind, Word},
    key::{Nested, choice, either, flag, optional_count, optional_texts, parse_problem, table, text, texts, word},
    policy::{Approval, Results, results::result},
    settings::settings,
};
use pegboard_base::name::NameStyle;

settings! {
    /// A named view: a part of the board for one kind of client, with rules of its own.
    ///
    /// `View` can be made of it, and `Pegboard::configured_view` finds it by its name.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ViewConfig in view = "view" {
        /// What the view is for; clients read it as the instructions of the server.
        description: Option<String> = text();
        /// The servers that it shows, by name or glob; all when empty.
        servers: Vec<String> = texts();
        /// The tools that it shows, by name or glob, for `server.tool` or for the tool's own name; all when empty.
        tools: Vec<String> = texts().aka(&["allow"]);
        /// The tools that it hides, by name or glob, even if they are in `tools`.
        deny: Vec<String> = texts();
        /// About how many tokens the definitions of all its tools may take. When they take more, `find_tools`, `describe_tool` and `call_tool` of the
        /// built-in server `pegboard` are listed instead.
        budget: Option<usize> = optional_count((1, 1 << 40)).aka(&["tool_budget"]);
        /// How its tools are named: a style, or a template such as `{server}_{tool}`.
        naming: Option<NameStyle> = either(NAMING_KINDS, None, DefaultValue::None)
            .syntax(|text| parse_problem(NameStyle::parse(text)), "");
        /// Which of its calls a person must approve, where that is stricter than `approval` of the server.
        approval: Approval = choice();
        /// The capabilities of its agent: `mcp_integration` for all tools, `mcp_SERVER` or `mcp_SERVER_TOOL` for some, and words that tools require;
        /// not restricted when not set.
        grants: Option<Vec<String>> = optional_texts().aka(&["capabilities"]);
        /// Whether it has tools that list and read the resources of its servers.
        resource_tools: bool = flag(false);
        /// How results are limited and formatted, instead of as their servers say. Without it, results are as their servers say, and whole where no
        /// limit is set.
        result: Nested<result::In> => Option<Results> = table(ValueKind::Table(&result::SECTION)).aka(&["results"]);
    }
}

/// How tools are named: a style or a template.
pub(super) const NAMING_KINDS: &[ValueKind] = &[
    ValueKind::Word(&[
        Word {
            name: "dunder",
            spellings: &["double_underscore"],
        },
        word("dot"),
        word("mcp_dunder"),
        word("mcp_single"),
        word("bare"),
    ]),
    ValueKind::Text,
];
