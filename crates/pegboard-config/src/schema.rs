//! Generates the JSON Schema of a config file from the table of fields.

use serde_json::{Map, Value as Json, json};

use super::{
    board::Config,
    field::{Field, Section, ValueKind, Via},
    fields::{SERVER, TOP},
    redact,
    spelling::camel,
};

/// The keys of the table of servers, with their descriptions.
const SERVER_KEYS: &[(&str, &str)] = &[
    ("servers", "The servers, by name."),
    ("mcpServers", "The same, as Claude, Cursor and ai-agent write it."),
    ("mcp_servers", "The same, as codex and TARSy write it."),
    ("context_servers", "The same, as Zed writes it."),
];

impl Config {
    /// The JSON Schema (2020-12) of a config file.
    pub fn schema() -> Json {
        schema()
    }
}

fn schema() -> Json {
    let mut definitions = Definitions(Map::new());
    let mut top = definitions.properties(TOP, "#/properties");
    let server = definitions.reference(SERVER);
    // The name of a server in a list; it is ignored in a table of servers.
    if let Some(Json::Object(properties)) = definitions
        .0
        .get_mut("server")
        .and_then(|server| server.get_mut("properties"))
    {
        let name = json!({"type": "string", "description": "The server's name, where servers are a list."});
        properties.insert("name".into(), name);
    }
    let servers = json!({
        "oneOf": [
            {"type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"}, "additionalProperties": server},
            {"type": "array", "items": server}
        ]
    });
    definitions.0.insert("servers".into(), servers);
    for unit in ["milliseconds", "seconds"] {
        let number = json!({"type": ["number", "string"], "exclusiveMinimum": 0, "description": format!("A duration in {unit}.")});
        definitions.0.insert(unit.into(), number);
    }
    for (key, doc) in SERVER_KEYS {
        top.insert((*key).into(), json!({"$ref": "#/$defs/servers", "description": doc}));
    }
    top.insert(
        "mcp".into(),
        json!({"type": "object", "description": "A table that holds `servers`, as VS Code settings and antwort write it."}),
    );
    top.insert("$schema".into(), json!({"type": "string"}));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pegboard config",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
        "$defs": definitions.0,
    })
}

struct Definitions(Map<String, Json>);

impl Definitions {
    fn reference(&mut self, section: &'static Section) -> Json {
        if !self.0.contains_key(section.name) {
            // Inserted before its fields, so that a section may refer to itself.
            self.0.insert(section.name.into(), Json::Null);
            let properties = self.properties(section, &format!("#/$defs/{}/properties", section.name));
            let table = json!({"type": "object", "properties": properties, "additionalProperties": false});
            self.0.insert(section.name.into(), table);
        }
        json!({"$ref": format!("#/$defs/{}", section.name)})
    }

    /// The properties of a section; `at` is their JSON pointer in the schema.
    fn properties(&mut self, section: &'static Section, at: &str) -> Map<String, Json> {
        let mut properties = Map::new();
        for field in section.fields() {
            let main = self.field(field);
            let same = json!({"$ref": format!("{at}/{}", field.name)});
            for name in field.aliases {
                both_cases(&mut properties, name, &same);
            }
            for (name, via) in field.converted {
                let kind = match via {
                    Via::Negated => {
                        json!({"type": "boolean", "description": format!("The opposite of `{}`.", field.name)})
                    }
                    Via::SharedFlag => {
                        json!({"type": "boolean", "description": "True for `shared`, false for `session`."})
                    }
                    Via::VariableName => {
                        json!({"type": "string", "description": format!("The variable that holds `{}`.", field.name)})
                    }
                };
                both_cases(&mut properties, name, &kind);
            }
            if field.takes_duration() {
                add_timed_keys(&mut properties, field);
            }
            both_cases(&mut properties, field.name, &main);
        }
        properties
    }

    fn field(&mut self, field: &Field) -> Json {
        let mut schema = self.kind(&field.kind);
        if let Json::Object(schema) = &mut schema {
            let doc = field.doc;
            if !doc.is_empty() {
                schema.insert("description".into(), doc.into());
            }
            if let Some(default) = redact::render_default(field.default) {
                schema.insert("default".into(), default);
            }
        }
        schema
    }

    fn kind(&mut self, kind: &ValueKind) -> Json {
        match kind {
            ValueKind::Bool => json!({"type": "boolean"}),
            // Numbers and booleans are accepted as texts.
            ValueKind::Text | ValueKind::Secret => json!({"type": ["string", "integer", "boolean"]}),
            ValueKind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            ValueKind::Duration { .. } => json!({"type": "string", "examples": ["30s", "2m", "500ms"]}),
            ValueKind::Size { .. } => json!({"type": ["string", "integer"], "examples": ["8MiB", 1_048_576]}),
            ValueKind::Word(words) => {
                let spellings = words.iter().flat_map(|word| {
                    let each = std::iter::once(word.name).chain(word.spellings.iter().copied());
                    each.flat_map(|name| [name.to_owned(), camel(name), name.replace('_', "-")])
                });
                let mut names: Vec<String> = Vec::new();
                for name in spellings {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                json!({"enum": names})
            }
            ValueKind::List(kind) => json!({"type": "array", "items": self.kind(kind)}),
            ValueKind::Map(kind) => json!({"type": "object", "additionalProperties": self.kind(kind)}),
            ValueKind::Table(section) => self.reference(section),
            ValueKind::Either(kinds) => {
                let kinds: Vec<Json> = kinds.iter().map(|kind| self.kind(kind)).collect();
                json!({"anyOf": kinds})
            }
            ValueKind::Any => json!({}),
        }
    }
}

fn both_cases(properties: &mut Map<String, Json>, name: &str, schema: &Json) {
    properties.insert(name.to_owned(), schema.clone());
    properties.insert(camel(name), schema.clone());
}

/// Adds keys such as `call_timeout_ms`: numbers whose unit is in the key. Of the accepted suffixes, one per unit is listed.
fn add_timed_keys(properties: &mut Map<String, Json>, field: &Field) {
    for name in std::iter::once(field.name).chain(field.aliases.iter().copied()) {
        for (ending, definition) in [("_ms", "milliseconds"), ("_sec", "seconds")] {
            let schema = json!({"$ref": format!("#/$defs/{definition}")});
            both_cases(properties, &format!("{name}{ending}"), &schema);
        }
    }
}
