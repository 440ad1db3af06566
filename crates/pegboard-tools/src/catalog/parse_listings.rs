//! Parses the items of listings into a catalog. An invalid item becomes a warning and does not affect the others.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::{
    Catalog, Prompt, Resource,
    header_arguments::HeaderRule,
    list_warning::ListWarning,
    listing_item::Item,
    mask::mask_tool,
    sanitize::{MAX_DESCRIPTION, for_display},
    tool::{Tool, fast_parse::ToolParser, parse::pack_rest},
};
use pegboard_base::{diagnosis::Code, name::ServerName};
use pegboard_mask::Masker;

impl Catalog {
    /// Parses the items of `tools/list`. An invalid item becomes a warning and does not affect the others.
    #[doc(hidden)]
    pub fn read_tools(&mut self, server: &ServerName, items: Vec<impl Into<Item>>, headers: HeaderRule) {
        let mut listed = ListedTools::new(server, headers, None);
        listed.read(items);
        self.take_tools(listed);
    }

    /// Moves the parsed tools into the catalog.
    #[doc(hidden)]
    pub fn take_tools(&mut self, listed: ListedTools) {
        let ListedTools {
            tools,
            problems,
            parser,
            ..
        } = listed;
        self.warnings.extend(problems);
        self.warnings.extend(parser.warnings);
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
                self.warnings.push(ListWarning::new(Code::ToolDuplicate, warning));
            }
            same
        });
        items
    }

    /// Parses the items of `resources/list` (`uri_key` is `uri`) or `resources/templates/list` (`uriTemplate`).
    #[doc(hidden)]
    pub fn read_resources(&mut self, server: &ServerName, items: Vec<impl Into<Item>>, uri_key: &str) -> Vec<Resource> {
        let mut resources = Vec::with_capacity(items.len());
        for item in items {
            let item = item.into().tree().unwrap_or_default();
            let Some(uri) = text(&item, uri_key) else {
                let warning = format!("a resource without `{uri_key}` was left out");
                self.warnings.push(ListWarning::new(Code::ListWarning, warning));
                continue;
            };
            resources.push(Resource {
                server: server.clone(),
                uri,
                name: display_text(&item, "name"),
                title: display_text(&item, "title"),
                size: item.get("size").and_then(Value::as_u64),
                description: display_text(&item, "description"),
                mime_type: display_text(&item, "mimeType"),
                more: other_fields(item, &[uri_key, "name", "title", "size", "description", "mimeType"]),
            });
        }
        self.sort(resources, "resource", |resource| &resource.uri)
    }

    /// Parses the items of `prompts/list`.
    #[doc(hidden)]
    pub fn read_prompts(&mut self, server: &ServerName, items: Vec<impl Into<Item>>) {
        let mut prompts = Vec::with_capacity(items.len());
        for item in items {
            let item = item.into().tree().unwrap_or_default();
            let Some(name) = text(&item, "name") else {
                let warning = "a prompt without `name` was left out";
                self.warnings.push(ListWarning::new(Code::ListWarning, warning));
                continue;
            };
            let arguments = item.get("arguments").and_then(Value::as_array);
            let arguments = arguments.map(|all| all.iter().filter_map(argument).collect());
            prompts.push(Prompt {
                server: server.clone(),
                name,
                title: display_text(&item, "title"),
                description: display_text(&item, "description"),
                arguments: arguments.unwrap_or_default(),
                more: other_fields(item, &["name", "title", "description", "arguments"]),
            });
        }
        self.prompts = self.sort(prompts, "prompt", |prompt| &prompt.name);
    }
}

/// The tools of a listing, parsed page by page.
pub struct ListedTools {
    parser: ToolParser,
    /// Masks secrets in each tool as it is parsed.
    masker: Option<Masker>,
    tools: Vec<Arc<Tool>>,
    problems: Vec<ListWarning>,
}

impl ListedTools {
    /// Creates an empty listing of a server. `masker` masks secrets in each tool that is read.
    pub fn new(server: &ServerName, headers: HeaderRule, masker: Option<Masker>) -> Self {
        Self {
            parser: ToolParser::new(server, headers),
            masker,
            tools: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// An empty listing with the same settings.
    pub fn empty_part(&self) -> Self {
        Self {
            parser: self.parser.to_fresh(),
            masker: self.masker.clone(),
            tools: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Appends another part of the listing.
    pub fn add(&mut self, mut more: Self) {
        self.tools.append(&mut more.tools);
        self.problems.append(&mut more.problems);
        self.parser.warnings.append(&mut more.parser.warnings);
    }

    /// Parses the items of one page.
    pub fn read(&mut self, items: Vec<impl Into<Item>>) {
        self.tools.reserve(items.len());
        for item in items {
            match self.parser.parse(item.into()) {
                Ok(mut tool) => {
                    if let Some(masker) = &self.masker {
                        mask_tool(&mut tool, masker);
                        tool.mask_more(masker);
                    }
                    self.tools.push(Arc::new(tool));
                }
                Err(problem) => self.problems.push(ListWarning::new(Code::ToolLeftOut, problem)),
            }
        }
    }
}

impl fmt::Debug for ListedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedTools")
            .field("tools", &self.tools.len())
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

fn text(item: &Value, key: &str) -> Option<String> {
    item.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn display_text(item: &Value, key: &str) -> Option<String> {
    text(item, key).map(|text| for_display(text, MAX_DESCRIPTION))
}

/// The fields of an item that are not in `known`, as JSON.
fn other_fields(item: Value, known: &[&str]) -> Option<Box<str>> {
    let Value::Object(mut fields) = item else {
        return None;
    };
    fields.retain(|key, _| !known.contains(&key.as_str()));
    pack_rest(fields)
}

/// An argument of a prompt, with its text sanitized. `None` if it has no name.
fn argument(item: &Value) -> Option<Value> {
    let mut argument = Map::new();
    argument.insert("name".to_owned(), text(item, "name")?.into());
    for key in ["title", "description"] {
        if let Some(text) = display_text(item, key) {
            argument.insert(key.to_owned(), text.into());
        }
    }
    if let Some(required) = item.get("required").and_then(Value::as_bool) {
        argument.insert("required".to_owned(), required.into());
    }
    Some(Value::Object(argument))
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
    fn the_texts_of_resources_and_prompts_are_sanitized_and_truncated() {
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
            assert!(warning.message.starts_with(expected), "{warning}");
            assert_eq!(warning.code, Code::ToolDuplicate);
        }
        assert_eq!(catalog.warnings.len(), 2);
    }
}
