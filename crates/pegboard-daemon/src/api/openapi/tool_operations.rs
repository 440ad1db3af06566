//! One operation for each tool.

use std::{collections::BTreeSet, fmt::Write as _};

use pegboard::{ListedTool, catalog::Schema};
use serde_json::{Value, json};

use super::{
    operations::failed_call,
    parts::{Object, json_content, reference},
    tool_schema,
};

/// The longest description of a tool, in bytes.
const MAX_DESCRIPTION: usize = 4096;

/// The longest schema that is embedded, in bytes.
const MAX_SCHEMA: usize = 128 * 1024;

/// The limit on all embedded schemas together: 64 MiB.
const MAX_SCHEMAS: usize = 64 * 1024 * 1024;

/// Adds the operations of tools, and their schemas.
pub(super) fn add(tools: &[ListedTool], paths: &mut Object, schemas: &mut Object) {
    let mut embedding = Embedding {
        schemas,
        names: BTreeSet::new(),
        left: MAX_SCHEMAS,
    };
    for listed in tools {
        let tool = &listed.tool;
        let server = tool.server.as_str();
        let path = format!("/api/v1/mcp/tools/{}/{}", encode(server), encode(&tool.name));
        let name = embedding.free_name(&format!("tool.{server}.{}", tool.name));
        let input = embedding.embed(&format!("{name}.input"), &tool.input_schema);
        let output = tool
            .output_schema
            .as_ref()
            .map(|schema| embedding.embed(&format!("{name}.output"), schema));
        let result = match output {
            Some(output) => json!({"anyOf": [output, reference("Reply")]}),
            None => reference("Reply"),
        };
        let summary = tool.title.as_deref().unwrap_or(&tool.name);
        let mut operation = json!({
            "operationId": name.replace('.', "_"),
            "summary": cut(summary),
            "tags": [server],
            "requestBody": {"required": true, "content": json_content(&input)},
            "responses": {
                "200": {"description": "The structured result of the tool, or the reply.", "content": json_content(&result)},
                "default": failed_call(),
            },
        });
        if let Some(description) = &tool.description {
            operation["description"] = cut(description).into();
        }
        paths.insert(path, json!({"post": operation}));
    }
}

struct Embedding<'a> {
    schemas: &'a mut Object,
    names: BTreeSet<String>,
    left: usize,
}

impl Embedding<'_> {
    /// A name for components and operations that no other tool has, made of letters, digits, `_`, `-` and `.`.
    fn free_name(&mut self, wanted: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let plain: String = wanted.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        // Generators make other names of these, without punctuation and in another case, so they must differ in letters and digits.
        let letters = |name: &str| -> String {
            let letters = name.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|c| c.to_ascii_lowercase()).collect()
        };
        let mut name = plain.clone();
        let mut number = 2;
        while !self.names.insert(letters(&name)) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        name
    }

    /// Adds a schema and returns a reference to it. One that cannot be part of the document is any object.
    fn embed(&mut self, key: &str, schema: &Schema) -> Value {
        let length = schema.as_str().len();
        let fits = length <= MAX_SCHEMA && length <= self.left;
        let embedded = match fits {
            true => tool_schema::embed_schema(&schema.value(), key),
            false => None,
        };
        match embedded {
            Some(components) => {
                self.left -= length;
                self.schemas.extend(components);
            }
            None => {
                self.schemas.insert(key.to_owned(), json!({"type": "object"}));
            }
        }
        reference(key)
    }
}

/// The beginning of a text that a server wrote.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_DESCRIPTION)]
}

/// A segment of a path.
fn encode(segment: &str) -> String {
    let mut path = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}
