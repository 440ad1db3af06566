//! What one server offers: an immutable value, parsed from its listings item by item so that an invalid item is dropped alone.

mod assemble;
mod configured_tools;
mod definition_hash;
pub(crate) mod diff;
mod instructions;
mod masked;
mod renamed_tools;
mod risk;
pub(crate) mod sanitize;
mod schema;
mod shadow;
pub(crate) mod store;
mod tool;
mod uri_template;

pub use definition_hash::DefinitionHash;
pub use diff::{CatalogDiff, Changed, Changes};
pub(crate) use instructions::{Described, Section, render};
pub use instructions::{InstructionFormat, Instructions, ServerWords};
pub(crate) use renamed_tools::FormerNames;
pub use risk::{Risk, ToolKind};
pub use schema::Schema;
pub(crate) use shadow::shadows;
pub(crate) use tool::MAX_RESULT_SIZE;
pub use tool::{TaskSupport, Tool};
pub use uri_template::{TemplateError, UriTemplate};

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{mask::Masker, name::ServerName, secret::Secret};

/// The longest accepted tool name, in bytes.
const MAX_TOOL_NAME: usize = 128;
/// The longest description, in bytes; the rest is truncated.
const MAX_DESCRIPTION: usize = 8 << 10;

/// What one server offers at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Catalog {
    /// Its tools, sorted by name.
    pub tools: Vec<Arc<Tool>>,
    /// Its resources, sorted by URI.
    pub resources: Vec<Resource>,
    /// Its resource templates, sorted by URI template.
    pub templates: Vec<Resource>,
    /// Its prompts, sorted by name.
    pub prompts: Vec<Prompt>,
    /// Problems found in its listings.
    pub warnings: Vec<String>,
    /// URIs that contain secrets, by the masked form that is shown.
    hidden: BTreeMap<String, Secret>,
}

/// A resource or resource template as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// The server that offers it.
    pub server: ServerName,
    /// Its URI or URI template.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// The display name.
    pub title: Option<String>,
    /// What it contains.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes, if the server knows it.
    pub size: Option<u64>,
}

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The server that offers it.
    pub server: ServerName,
    /// Its name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments as the server lists them: `name`, `title`, `description`, `required`.
    pub arguments: Vec<Value>,
}

impl Catalog {
    /// Returns whether it contains nothing that could be used.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.resources.is_empty() && self.templates.is_empty() && self.prompts.is_empty()
    }

    /// Parses the items of `tools/list`. An invalid item becomes a warning and does not affect the others.
    pub(crate) fn read_tools(&mut self, server: &ServerName, items: Vec<impl Into<Item>>, headers: HeaderRule) {
        let mut listed = ListedTools::new(server, headers, None);
        listed.read(items);
        self.take_tools(listed);
    }

    /// Moves the parsed tools into the catalog.
    pub(crate) fn take_tools(&mut self, listed: ListedTools) {
        let ListedTools {
            tools,
            problems,
            reader,
            ..
        } = listed;
        self.warnings.extend(problems);
        self.warnings.extend(reader.warnings);
        self.tools = self.sort(tools, "tool", |tool| &tool.name);
    }

    /// Sorts items by name and removes duplicates with a warning.
    fn sort<T>(&mut self, mut items: Vec<T>, what: &str, name: impl Fn(&T) -> &str) -> Vec<T> {
        // A stable sort: of two items with one name, the one listed first stays.
        items.sort_by(|a, b| name(a).cmp(name(b)));
        items.dedup_by(|later, first| {
            let same = name(later) == name(first);
            if same {
                let warning = format!("{what} `{}` is listed twice; the first one is used", name(first));
                self.warnings.push(warning);
            }
            same
        });
        items
    }

    /// Parses the items of `resources/list` (`uri_key` is `uri`) or `resources/templates/list` (`uriTemplate`).
    pub(crate) fn read_resources(
        &mut self,
        server: &ServerName,
        items: Vec<impl Into<Item>>,
        uri_key: &str,
    ) -> Vec<Resource> {
        let mut resources = Vec::with_capacity(items.len());
        for item in items {
            let item = item.into().tree().unwrap_or_default();
            let Some(uri) = text(&item, uri_key) else {
                self.warnings
                    .push(format!("a resource without `{uri_key}` was left out"));
                continue;
            };
            resources.push(Resource {
                server: server.clone(),
                uri,
                name: words(&item, "name"),
                title: words(&item, "title"),
                size: item.get("size").and_then(Value::as_u64),
                description: words(&item, "description"),
                mime_type: words(&item, "mimeType"),
            });
        }
        self.sort(resources, "resource", |resource| &resource.uri)
    }

    /// Parses the items of `prompts/list`.
    pub(crate) fn read_prompts(&mut self, server: &ServerName, items: Vec<impl Into<Item>>) {
        let mut prompts = Vec::with_capacity(items.len());
        for item in items {
            let item = item.into().tree().unwrap_or_default();
            let Some(name) = text(&item, "name") else {
                self.warnings.push("a prompt without `name` was left out".to_owned());
                continue;
            };
            let arguments = item.get("arguments").and_then(Value::as_array);
            let arguments = arguments.map(|all| all.iter().filter_map(argument).collect());
            prompts.push(Prompt {
                server: server.clone(),
                name,
                title: words(&item, "title"),
                description: words(&item, "description"),
                arguments: arguments.unwrap_or_default(),
            });
        }
        self.prompts = self.sort(prompts, "prompt", |prompt| &prompt.name);
    }

    /// A copy of the catalog under another server's name.
    pub(crate) fn under(&self, server: &ServerName) -> Self {
        let mut catalog = self.clone();
        for tool in &mut catalog.tools {
            Arc::make_mut(tool).server = server.clone();
        }
        for resource in catalog.resources.iter_mut().chain(&mut catalog.templates) {
            resource.server = server.clone();
        }
        for prompt in &mut catalog.prompts {
            prompt.server = server.clone();
        }
        catalog
    }

    /// Returns the tool that its server calls `name`.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools
            .binary_search_by(|tool| tool.name.as_str().cmp(name))
            .ok()
            .map(|at| &self.tools[at])
    }
}

/// The tools of a listing, parsed page by page.
pub(crate) struct ListedTools {
    reader: tool::Reader,
    /// Masks secrets in each tool as it is parsed.
    masker: Option<Masker>,
    tools: Vec<Arc<Tool>>,
    problems: Vec<String>,
}

impl ListedTools {
    pub(crate) fn new(server: &ServerName, headers: HeaderRule, masker: Option<Masker>) -> Self {
        Self {
            reader: tool::Reader::new(server, headers),
            masker,
            tools: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// An empty listing with the same settings.
    pub(crate) fn none(&self) -> Self {
        Self {
            reader: self.reader.anew(),
            masker: self.masker.clone(),
            tools: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Appends another part of the listing.
    pub(crate) fn add(&mut self, mut more: Self) {
        self.tools.append(&mut more.tools);
        self.problems.append(&mut more.problems);
        self.reader.warnings.append(&mut more.reader.warnings);
    }

    /// Parses the items of one page.
    pub(crate) fn read(&mut self, items: Vec<impl Into<Item>>) {
        self.tools.reserve(items.len());
        for item in items {
            match self.reader.read(item.into()) {
                Ok(mut tool) => {
                    if let Some(masker) = &self.masker {
                        masked::mask_tool(&mut tool, masker);
                    }
                    self.tools.push(Arc::new(tool));
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

/// One item of a listing: JSON text or a parsed tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Text(Bytes),
    Tree(Value),
}

impl Item {
    fn tree(self) -> serde_json::Result<Value> {
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

/// Whether a tool's `x-mcp-header` annotations are validated. They matter only where arguments are mirrored into HTTP headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderRule {
    Enforced,
    Ignored,
}

fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A sanitized and truncated text for display.
fn words(item: &Value, key: &str) -> Option<String> {
    let mut words = text(item, key)?;
    sanitize::clean(&mut words);
    sanitize::cut(&mut words, MAX_DESCRIPTION);
    Some(words)
}

/// An argument of a prompt, with its text sanitized. `None` if it has no name.
fn argument(item: &Value) -> Option<Value> {
    let mut argument = Map::new();
    argument.insert("name".to_owned(), text(item, "name")?.into());
    for key in ["title", "description"] {
        if let Some(words) = words(item, key) {
            argument.insert(key.to_owned(), words.into());
        }
    }
    if let Some(required) = item.get("required").and_then(Value::as_bool) {
        argument.insert("required".to_owned(), required.into());
    }
    Some(Value::Object(argument))
}

fn take_text(item: &mut Map<String, Value>, key: &str) -> Option<String> {
    match item.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server() -> ServerName {
        ServerName::parse("fx").unwrap()
    }

    #[test]
    fn one_bad_tool_costs_only_itself_and_order_is_by_name() {
        let mut catalog = Catalog::default();
        let good = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let items = vec![
            good("b"),
            json!({"title": "nameless"}),
            json!(7),
            good("a"),
            good("b"),
            good(&"x".repeat(129)),
        ];
        catalog.read_tools(&server(), items, HeaderRule::Ignored);
        let names: Vec<_> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(catalog.warnings.len(), 4, "{:?}", catalog.warnings);
        assert!(catalog.tool("b").is_some());
        assert!(catalog.tool("c").is_none());
    }

    #[test]
    fn resources_and_prompts_without_their_key_are_left_out() {
        let mut catalog = Catalog::default();
        let read = catalog.read_resources(
            &server(),
            vec![json!({"uri": "b:1"}), json!({}), json!({"uri": "a:1"})],
            "uri",
        );
        assert_eq!(read.iter().map(|r| r.uri.as_str()).collect::<Vec<_>>(), ["a:1", "b:1"]);
        catalog.read_prompts(
            &server(),
            vec![json!({"name": "p", "arguments": [{"name": "x"}]}), json!({})],
        );
        assert_eq!(catalog.prompts.len(), 1);
        assert_eq!(catalog.warnings.len(), 2);
    }

    /// Text that people or models read has no invisible characters and is within its limit.
    #[test]
    fn the_words_of_resources_and_prompts_are_cleaned_and_cut() {
        let mut catalog = Catalog::default();
        let long = "x".repeat(2 * MAX_DESCRIPTION);
        let resource =
            json!({"uri": "a:1", "name": "n\u{200b}ame\u{1b}[2J", "title": &long, "mimeType": "text/\u{202e}plain"});
        let read = catalog.read_resources(&server(), vec![resource], "uri");
        assert_eq!(read[0].name.as_deref(), Some("name[2J"));
        assert_eq!(read[0].mime_type.as_deref(), Some("text/plain"));
        assert_eq!(read[0].title.as_ref().unwrap().len(), MAX_DESCRIPTION);
        let arguments = json!([
            {"name": "a", "description": "de\u{202e}sc", "title": "T\u{200b}", "required": true, "x": 1},
            {"name": "b", "description": &long},
            {"description": "nameless"},
            7,
        ]);
        catalog.read_prompts(&server(), vec![json!({"name": "p", "arguments": arguments})]);
        let arguments = &catalog.prompts[0].arguments;
        assert_eq!(arguments.len(), 2);
        let cleaned = json!({"name": "a", "description": "desc", "title": "T", "required": true});
        assert_eq!(arguments[0], cleaned);
        assert_eq!(arguments[1]["description"].as_str().unwrap().len(), MAX_DESCRIPTION);
    }

    #[test]
    fn a_resource_or_prompt_that_is_listed_twice_is_there_once() {
        let mut catalog = Catalog::default();
        let resource = |name: &str| json!({"uri": "a:1", "name": name});
        let read = catalog.read_resources(&server(), vec![resource("one"), resource("two")], "uri");
        assert_eq!((read.len(), read[0].name.as_deref()), (1, Some("one")));
        let prompt = |title: &str| json!({"name": "p", "title": title});
        catalog.read_prompts(&server(), vec![prompt("one"), prompt("two")]);
        assert_eq!(catalog.prompts.len(), 1);
        assert_eq!(catalog.prompts[0].title.as_deref(), Some("one"));
        let expected = ["resource `a:1` is listed twice", "prompt `p` is listed twice"];
        for (warning, expected) in catalog.warnings.iter().zip(expected) {
            assert!(warning.starts_with(expected), "{warning}");
        }
        assert_eq!(catalog.warnings.len(), 2);
    }
}
