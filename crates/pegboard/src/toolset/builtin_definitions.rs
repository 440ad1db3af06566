//! The definitions of the built-in tools.

use serde_json::{Value, json};

use super::{
    builtin_tools::{self, Home},
    listing::ListedTool,
};

pub(super) const FIND: &str = "find_tools";
pub(super) const DESCRIBE: &str = "describe_tool";
pub(super) const CALL: &str = "call_tool";
pub(super) const LIST: &str = "list_resources";
pub(super) const TEMPLATES: &str = "list_resource_templates";
pub(super) const READ: &str = "read_resource";
pub(super) const READ_OUTPUT: &str = "read_output";
/// The most tools that `find_tools` returns.
pub(super) const MAX_FOUND: usize = 20;
/// The most resources of one page.
pub(super) const MAX_RESOURCES: usize = 200;

/// The tools that find, describe and call tools which are not listed.
#[derive(Debug, Clone)]
pub(super) struct Discovery {
    find: ListedTool,
    describe: ListedTool,
    call: ListedTool,
}

impl Discovery {
    pub(super) fn new(home: Home<'_>) -> Self {
        let tool = |name: &str, description: &str, properties: Value, required: &[&str], reads: bool| {
            let definition = json!({
                "name": name, "description": description,
                "inputSchema": {"type": "object", "properties": properties, "required": required},
                "annotations": {"readOnlyHint": reads, "openWorldHint": !reads},
            });
            builtin_tools::to_listed(home, definition)
        };
        Self {
            find: tool(
                FIND,
                "Finds tools by what they are for. There are more tools than are listed; look here before you say that something cannot be done.",
                json!({
                    "query": {"type": "string", "description": "What you want to do, in a few words"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "description": "How many tools to show"},
                }),
                &["query"],
                true,
            ),
            describe: tool(
                DESCRIBE,
                "Shows what a tool does and which arguments it takes. Read it before you call a tool for the first time.",
                json!({"name": {"type": "string", "description": "The tool's name as find_tools gave it"}}),
                &["name"],
                true,
            ),
            call: tool(
                CALL,
                "Calls a tool that find_tools found.",
                json!({
                    "name": {"type": "string", "description": "The tool's name as find_tools gave it"},
                    "arguments": {"type": "object", "description": "Its arguments, as describe_tool shows them"},
                }),
                &["name"],
                false,
            ),
        }
    }

    pub(super) fn all(&self) -> [&ListedTool; 3] {
        [&self.find, &self.describe, &self.call]
    }
}

/// The tools that list and read resources.
#[derive(Debug, Clone)]
pub(super) struct ResourceTools {
    list: ListedTool,
    templates: ListedTool,
    read: ListedTool,
}

impl ResourceTools {
    pub(super) fn new(home: Home<'_>) -> Self {
        let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
            let definition = json!({
                "name": name, "description": description,
                "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            });
            builtin_tools::to_listed(home, definition)
        };
        let paged = json!({
            "server": {"type": "string", "description": "Only those of this server"},
            "cursor": {"type": "string", "description": "next_cursor of the page before"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESOURCES, "description": "How many to show"},
        });
        Self {
            list: tool(
                LIST,
                "Lists resources that can be read with read_resource: files, records and other data of the servers.",
                paged.clone(),
                &[],
            ),
            templates: tool(
                TEMPLATES,
                "Lists patterns of addresses of further resources. Fill in what stands in braces and read the address with read_resource.",
                paged,
                &[],
            ),
            read: tool(
                READ,
                "Reads a resource by its address.",
                json!({
                    "uri": {"type": "string", "description": "The address as list_resources gave it, or made from a pattern"},
                    "server": {"type": "string", "description": "The server that has it; needed where several have resources"},
                }),
                &["uri"],
            ),
        }
    }

    pub(super) fn all(&self) -> [&ListedTool; 3] {
        [&self.list, &self.templates, &self.read]
    }
}

/// The tool that reads a part of a spilled output.
pub(super) fn read_output(home: Home<'_>) -> ListedTool {
    let definition = json!({
        "name": READ_OUTPUT,
        "title": "Read a long output",
        "description": "Reads a part of an output that was too long to be shown and is kept under a handle. Give at most one of range, \
                        grep and jsonpath; without them you get the beginning.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "The handle, such as out_1a2b…"},
                "range": {"type": "string", "description": "Lines to read, such as 120-180, counted from 1"},
                "grep": {"type": "string", "description": "A regular expression; lines that match are shown with their numbers. (?i) ignores case"},
                "context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Lines to show around each match of grep"},
                "jsonpath": {"type": "string", "description": "A path into JSON, such as $.items[0].name, $.items[*].id or $..status"},
            },
            "required": ["handle"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
    });
    builtin_tools::to_listed(home, definition)
}
