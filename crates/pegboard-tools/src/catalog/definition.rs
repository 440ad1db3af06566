//! The definitions of tools, resources and prompts as MCP lists them, with all their fields.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Prompt, Resource, sanitize::sanitize_value, tool::Tool};

impl Tool {
    /// The definition as MCP's `tools/list` has it, under the server's name for the tool. Fields that Pegboard does not use are kept up to 4 KB,
    /// such as icons and `_meta`. Secrets are masked, and invisible characters removed.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
    /// # use pegboard::{ServerName, Tool};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let definition = serde_json::json!({"name": "find", "inputSchema": {"type": "object"}, "_meta": {"x": 1}});
    /// let tool = Tool::from_definition(&"crm".parse()?, definition.clone())?;
    /// assert_eq!(tool.definition(), definition);
    /// # Ok(())
    /// # }
    /// ```
    pub fn definition(&self) -> Value {
        let mut fields = other_fields(self.more.as_deref());
        fields.insert("name".to_owned(), self.name.as_str().into());
        add_text(&mut fields, "title", self.title.as_ref());
        add_text(&mut fields, "description", self.description.as_ref());
        fields.insert("inputSchema".to_owned(), self.input_schema.value());
        if let Some(schema) = &self.output_schema {
            fields.insert("outputSchema".to_owned(), schema.value());
        }
        if let Some(annotations) = &self.annotations {
            let mut annotations = Value::Object(annotations.clone());
            sanitize_value(&mut annotations);
            fields.insert("annotations".to_owned(), annotations);
        }
        Value::Object(fields)
    }

    /// The names of its arguments in the order in which its server lists them, or `None` if that is not known: a tool of the program itself is
    /// defined without one.
    pub fn argument_names(&self) -> Option<Vec<String>> {
        let schema = self.input_schema.value();
        let names: Vec<&String> = match schema.get("properties") {
            Some(properties) => properties.as_object()?.keys().collect(),
            None => Vec::new(),
        };
        let names = self.order.apply(&names)?;
        Some(names.into_iter().cloned().collect())
    }

    /// The JSON Schema of its arguments as text, with the arguments in the order in which its server lists them, if that is known.
    pub fn input_schema_as_listed(&self) -> Cow<'_, str> {
        self.schema_in_order()
            .map_or(Cow::Borrowed(self.input_schema.as_str()), Cow::Owned)
    }

    fn schema_in_order(&self) -> Option<String> {
        if self.order.is_sorted() {
            return None;
        }
        let Value::Object(mut schema) = self.input_schema.value() else {
            return None;
        };
        let properties = schema.remove("properties")?;
        let properties: Vec<(&String, &Value)> = properties.as_object()?.iter().collect();
        let mut text = String::with_capacity(self.input_schema.as_str().len());
        text.push_str("{\"properties\":{");
        for (place, (name, argument)) in self.order.apply(&properties)?.into_iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(&argument.to_string());
        }
        text.push('}');
        for (key, value) in schema {
            text.push(',');
            text.push_str(&Value::from(key).to_string());
            text.push(':');
            text.push_str(&value.to_string());
        }
        text.push('}');
        Some(text)
    }
}

impl Resource {
    /// The definition as MCP's `resources/list` has it, or `resources/templates/list` if `is_template` is set. Fields that Pegboard does not use
    /// are kept up to 4 KB, such as annotations, icons and `_meta`. Secrets are masked, and invisible characters removed.
    pub fn definition(&self, is_template: bool) -> Value {
        let mut fields = other_fields(self.more.as_deref());
        let uri = if is_template { "uriTemplate" } else { "uri" };
        fields.insert(uri.to_owned(), self.uri.as_str().into());
        add_text(&mut fields, "name", self.name.as_ref());
        add_text(&mut fields, "title", self.title.as_ref());
        add_text(&mut fields, "description", self.description.as_ref());
        add_text(&mut fields, "mimeType", self.mime_type.as_ref());
        if let Some(size) = self.size {
            fields.insert("size".to_owned(), size.into());
        }
        Value::Object(fields)
    }
}

impl Prompt {
    /// The definition as MCP's `prompts/list` has it, under the server's name for the prompt. Fields that Pegboard does not use are kept up to
    /// 4 KB, such as icons and `_meta`. Secrets are masked, and invisible characters removed.
    pub fn definition(&self) -> Value {
        let mut fields = other_fields(self.more.as_deref());
        fields.insert("name".to_owned(), self.name.as_str().into());
        add_text(&mut fields, "title", self.title.as_ref());
        add_text(&mut fields, "description", self.description.as_ref());
        if !self.arguments.is_empty() {
            fields.insert("arguments".to_owned(), self.arguments.clone().into());
        }
        Value::Object(fields)
    }
}

/// The other fields of a definition. There are none if they were too long to keep.
fn other_fields(more: Option<&str>) -> Map<String, Value> {
    let Some(Ok(Value::Object(mut fields))) = more.map(serde_json::from_str) else {
        return Map::new();
    };
    fields.values_mut().for_each(sanitize_value);
    fields
}

fn add_text(fields: &mut Map<String, Value>, key: &str, text: Option<&String>) {
    if let Some(text) = text {
        fields.insert(key.to_owned(), text.as_str().into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, HeaderRule};
    use pegboard_base::{name::ServerName, secret::Secret};
    use pegboard_mask::{Masker, Masking};

    #[test]
    fn definitions_keep_all_fields_and_lose_secrets_and_invisible_characters() {
        let server = ServerName::parse("fx").unwrap();
        let masker = Masker::new(&Masking::default(), [Secret::new("hunter2hunter2")]).unwrap();
        let more =
            |field: &str| json!({"icons": [{"src": "https://x/i.png"}], "_meta": {"a": [1, field]}, "new": true});
        let with = |base: Value, more: Value| {
            let (Value::Object(mut base), Value::Object(more)) = (base, more) else {
                unreachable!("objects")
            };
            base.extend(more);
            Value::Object(base)
        };
        let tool = json!({"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "execution": {"taskSupport": "optional"}});
        let resource = json!({"uri": "a:1", "name": "r", "title": "R", "description": "d", "mimeType": "text/plain", "size": 3,
            "annotations": {"priority": 0.5}});
        let template = json!({"uriTemplate": "a:{x}", "name": "r"});
        let prompt =
            json!({"name": "p", "title": "P", "description": "d", "arguments": [{"name": "x", "required": true}]});
        for (sent, shown) in [
            ("ok", "ok"),
            ("a\u{200b}b", "ab"),
            ("hunter2hunter2", "[MASKED_SECRET]"),
        ] {
            let mut catalog = Catalog::default();
            let mut listed = crate::catalog::ListedTools::new(&server, HeaderRule::Ignored, Some(masker.clone()));
            listed.read(vec![with(tool.clone(), more(sent))]);
            catalog.take_tools(listed);
            catalog.resources = catalog.read_resources(&server, vec![with(resource.clone(), more(sent))], "uri");
            catalog.templates =
                catalog.read_resources(&server, vec![with(template.clone(), more(sent))], "uriTemplate");
            catalog.read_prompts(&server, vec![with(prompt.clone(), more(sent))]);
            catalog.mask(&masker);
            assert_eq!(catalog.tools[0].definition(), with(tool.clone(), more(shown)));
            assert_eq!(
                catalog.resources[0].definition(false),
                with(resource.clone(), more(shown))
            );
            assert_eq!(
                catalog.templates[0].definition(true),
                with(template.clone(), more(shown))
            );
            assert_eq!(catalog.prompts[0].definition(), with(prompt.clone(), more(shown)));
        }
    }
}
