//! The table of a named view.

use super::results::result;
use crate::{
    field::{DefaultValue, Kind, Word},
    from_setting::Naming,
    key::{Nested, choice, either, flag, nested, optional_count, section, text, texts, word},
    policy::Approval,
};

/// How tools are named: a style or a template.
pub(super) const NAMING_KINDS: &[Kind] = &[
    Kind::Word(&[
        Word {
            name: "dunder",
            spellings: &["double_underscore"],
        },
        word("dot"),
        word("mcp_dunder"),
        word("mcp_single"),
        word("bare"),
    ]),
    Kind::Text,
];

section! {
    view = "view" {
        DESCRIPTION: Option<String> = text("description", "What the view is for; clients read it as the instructions of the server.");
        SERVERS: Vec<String> = texts("servers", "The servers that it shows, by name or glob; all when empty.");
        TOOLS: Vec<String> = texts("tools", "The tools that it shows, by name or glob, for `server.tool` or for the tool's own name; all when empty.").aka(&["allow"]);
        DENY: Vec<String> = texts("deny", "The tools that it hides, by name or glob, even if they are in `tools`.");
        BUDGET: Option<usize> = optional_count("budget", (1, 1 << 40), "About how many tokens the definitions of all its tools may take. When they take more, `find_tools`, `describe_tool` and `call_tool` of the built-in server `pegboard` are listed instead.")
            .aka(&["tool_budget"]);
        NAMING: Option<Naming> = either("naming", NAMING_KINDS, None, DefaultValue::None, "How its tools are named: a style, or a template such as `{server}_{tool}`.");
        APPROVAL: Approval = choice("approval", "Which of its calls a person must approve, where that is stricter than `approval` of the server.");
        GRANTS: Vec<String> = texts("grants", "The capabilities of its agent: `mcp_integration` for all tools, `mcp_SERVER` or `mcp_SERVER_TOOL` for some, and words that tools require; not restricted when not set.").aka(&["capabilities"]);
        RESOURCE_TOOLS: bool = flag("resource_tools", false, "Whether it has tools that list and read the resources of its servers.");
        RESULT: Nested<result::In> = nested("result", Kind::Table(&result::SECTION), "How results are limited and formatted, instead of as their servers say. Without it, results are as their servers say, and whole where no limit is set.")
            .aka(&["results"]);
    }
}
