//! Describes JSON Schemas in words: types, limits, signatures.

use std::collections::HashMap;

use serde_json::Value;

/// How deep references and nested types are followed.
const MAX_DEPTH: usize = 8;
/// How many values of an `enum` are written out.
const MAX_VALUES: usize = 12;

/// A schema inside a document of schemas.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaNode<'a> {
    pub(super) schema: &'a Value,
    root: &'a Value,
    /// The names of its properties in the order of the server, if it is known.
    order: &'a [String],
    depth: usize,
}

impl<'a> SchemaNode<'a> {
    pub(super) fn root(schema: &'a Value) -> Self {
        Self::in_order(schema, &[])
    }

    /// The schema of arguments that a server lists in this order.
    pub(super) fn in_order(schema: &'a Value, order: &'a [String]) -> Self {
        Self {
            schema,
            root: schema,
            order,
            depth: 0,
        }
        .resolve()
    }

    /// A schema inside this one. `None` beyond the depth that is followed.
    fn child(self, schema: &'a Value) -> Option<Self> {
        let child = Self {
            schema,
            root: self.root,
            order: &[],
            depth: self.depth + 1,
        };
        (child.depth <= MAX_DEPTH).then(|| child.resolve())
    }

    /// Follows a reference within the document.
    fn resolve(mut self) -> Self {
        for _ in 0..MAX_DEPTH {
            let pointer = self
                .schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|target| target.strip_prefix('#'));
            match pointer.and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => self.schema = target,
                None => break,
            }
        }
        self
    }

    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        self.schema.get(key)
    }

    /// The properties: required ones first, in the order of the server.
    pub(super) fn properties(self) -> Vec<(&'a str, Self, bool)> {
        let required = self.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let properties = self.get("properties").and_then(Value::as_object);
        let mut all: Vec<_> = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.as_str(), self.child(schema)?, is_required(name))))
            .collect();
        let places: HashMap<&str, usize> = self.order.iter().map(String::as_str).zip(0..).collect();
        all.sort_by_key(|(name, _, is_required)| (!is_required, places.get(name)));
        all
    }

    /// The schema of a list's items.
    pub(super) fn items(self) -> Option<Self> {
        self.child(self.get("items")?)
    }

    /// The alternatives of `anyOf` or `oneOf`.
    pub(super) fn alternatives(self) -> Vec<Self> {
        let listed = self
            .get("anyOf")
            .or_else(|| self.get("oneOf"))
            .and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(|one| self.child(one)).collect()
    }

    /// The first type that is not `null`.
    pub(super) fn first_type(self) -> Option<&'a str> {
        match self.get("type")? {
            Value::String(kind) => Some(kind),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            _ => None,
        }
    }

    /// The type in words: `string`, `list of integer`, `"open" | "shut"`.
    pub(super) fn type_text(self) -> String {
        if let Some(value) = self.get("const") {
            return value.to_string();
        }
        if let Some(Value::Array(values)) = self.get("enum") {
            let mut shown: Vec<String> = values.iter().take(MAX_VALUES).map(Value::to_string).collect();
            if values.len() > MAX_VALUES {
                shown.push(format!("{} more", values.len() - MAX_VALUES));
            }
            return shown.join(" | ");
        }
        let alternatives = self.alternatives();
        if !alternatives.is_empty() {
            return join(alternatives.into_iter().map(Self::type_text));
        }
        match self.get("type") {
            Some(Value::Array(kinds)) => join(kinds.iter().filter_map(Value::as_str).map(|kind| self.one_type(kind))),
            Some(Value::String(kind)) => self.one_type(kind),
            _ if self.get("properties").is_some() => "object".to_owned(),
            _ => "any".to_owned(),
        }
    }

    fn one_type(self, kind: &str) -> String {
        match (kind, self.items()) {
            ("array", Some(items)) => format!("list of {}", items.type_text()),
            ("array", None) => "list".to_owned(),
            ("string", _) => match self.get("format").and_then(Value::as_str) {
                Some(format) => format!("string ({format})"),
                None => "string".to_owned(),
            },
            (kind, _) => kind.to_owned(),
        }
    }

    /// The limits and the default: `1 to 10`, `at most 80 characters`, `default 5`.
    pub(super) fn limits(self) -> Vec<String> {
        let number = |key: &str| self.get(key).filter(|value| value.is_number()).map(Value::to_string);
        let mut limits = Vec::new();
        limits.extend(range(number("minimum"), number("maximum"), ""));
        limits.extend(number("exclusiveMinimum").map(|limit| format!("more than {limit}")));
        limits.extend(number("exclusiveMaximum").map(|limit| format!("less than {limit}")));
        limits.extend(number("multipleOf").map(|step| format!("a multiple of {step}")));
        limits.extend(range(number("minLength"), number("maxLength"), " characters"));
        limits.extend(range(number("minItems"), number("maxItems"), " items"));
        let pattern = self.get("pattern").and_then(Value::as_str);
        limits.extend(pattern.map(|pattern| format!("pattern {pattern}")));
        limits.extend(self.get("default").map(|value| format!("default {value}")));
        limits
    }

    /// The type as in a signature; objects with few fields are written out.
    pub(super) fn signature(self) -> String {
        let properties = self.properties();
        if self.first_type() != Some("object") || properties.is_empty() || self.depth > 1 {
            return self.type_text();
        }
        let fields = properties.iter().map(|(name, node, is_required)| {
            let mark = if *is_required { "" } else { "?" };
            format!("{name}{mark}: {}", node.signature())
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
    }
}

/// One line that shows how a tool is called: `add(a: integer, b?: integer) -> {sum: integer}`.
pub(super) fn signature(name: &str, input: SchemaNode<'_>, output: Option<&Value>) -> String {
    let arguments = input.properties();
    let arguments = arguments.iter().map(|(name, node, is_required)| {
        let mark = if *is_required { "" } else { "?" };
        format!("{name}{mark}: {}", node.type_text())
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    match output {
        Some(output) => format!("{name}({arguments}) -> {}", SchemaNode::root(output).signature()),
        None => format!("{name}({arguments})"),
    }
}

fn range(from: Option<String>, to: Option<String>, unit: &str) -> Option<String> {
    match (from, to) {
        (Some(from), Some(to)) if from == to => Some(format!("{from}{unit}")),
        (Some(from), Some(to)) => Some(format!("{from} to {to}{unit}")),
        (Some(from), None) => Some(format!("at least {from}{unit}")),
        (None, Some(to)) => Some(format!("at most {to}{unit}")),
        (None, None) => None,
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    parts.dedup();
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_and_limits_are_said_in_words() {
        for (schema, kind, limits) in [
            (
                json!({"type": "integer", "minimum": 1, "maximum": 10, "default": 5}),
                "integer",
                "1 to 10, default 5",
            ),
            (
                json!({"type": "string", "maxLength": 80, "format": "uri"}),
                "string (uri)",
                "at most 80 characters",
            ),
            (json!({"enum": ["open", 1]}), "\"open\" | 1", ""),
            (
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
                "list of string",
                "at least 1 items",
            ),
            (
                json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
                "number | null",
                "",
            ),
            (
                json!({"type": ["integer", "null"], "exclusiveMinimum": 0}),
                "integer | null",
                "more than 0",
            ),
            (json!(true), "any", ""),
        ] {
            let node = SchemaNode::root(&schema);
            assert_eq!(
                (node.type_text().as_str(), node.limits().join(", ").as_str()),
                (kind, limits),
                "{schema}"
            );
        }
    }

    #[test]
    fn references_are_followed_and_circles_end() {
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {
            "n": {"type": "array", "items": {"$ref": "#/$defs/n"}}, "m": {"$ref": "#/$defs/m"}}});
        assert!(signature("t", SchemaNode::root(&schema), None).starts_with("t(a?: list of list of "));
        assert_eq!(SchemaNode::root(&json!({"$ref": "#"})).type_text(), "any");
    }

    #[test]
    fn a_signature_shows_arguments_and_result() {
        let input = json!({"required": ["b"], "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
        let output = json!({"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}});
        assert_eq!(
            signature("add", SchemaNode::root(&input), Some(&output)),
            "add(b: string, a?: integer) -> {sum: integer}"
        );
        assert_eq!(signature("now", SchemaNode::root(&json!({})), None), "now()");
        let input = json!({"required": ["z", "a"], "properties": {"a": {}, "b": {}, "y": {}, "z": {}}});
        let order = ["y", "z", "b", "a"].map(str::to_owned);
        assert_eq!(
            signature("t", SchemaNode::in_order(&input, &order), None),
            "t(z: any, a: any, y?: any, b?: any)"
        );
    }
}
