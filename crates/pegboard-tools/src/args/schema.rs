//! Looks up single arguments in a tool's input schema without compiling it: their types, their names, and a one-line signature.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The longest chain of `$ref`s that is followed.
const MAX_REFS: usize = 8;
/// The deepest nesting of `allOf`, `anyOf` and `oneOf` that is searched, and the most parts of each. Together they bound the cost.
const MAX_STEPS: usize = 3;
const MAX_PARTS: usize = 16;
/// The most arguments in a signature.
const MAX_NAMED: usize = 24;
/// The longest name from a server or a model that is shown, in characters.
const MAX_NAME: usize = 64;

/// A set of JSON Schema types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JsonTypes(u8);

impl JsonTypes {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Includes `INTEGER`: every integer is a number.
    pub(super) const NUMBER: Self = Self(8 | 4);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ANY: Self = Self(127);
    const NONE: Self = Self(0);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn from_word(word: &str) -> Self {
        match word {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::NONE,
        }
    }

    pub(super) fn new(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }
}

/// A subschema, with the root that its `$ref`s point into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subschema<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl<'s> Subschema<'s> {
    pub(super) fn root(root: &'s Value) -> Self {
        Self { root, schema: root }
    }

    fn at(self, schema: &'s Value) -> Self {
        Self { schema, ..self }
    }

    /// Follows `$ref`s. Only references into the same schema are followed.
    fn resolve(self) -> Self {
        let mut here = self;
        for _ in 0..MAX_REFS {
            let Some(target) = here.schema.get("$ref").and_then(Value::as_str) else {
                break;
            };
            match target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                Some(schema) => here = self.at(schema),
                None => break,
            }
        }
        here
    }

    /// The subschemas under the given keywords, such as `anyOf`.
    fn parts(self, keywords: &'static [&'static str]) -> impl Iterator<Item = Self> {
        let lists = keywords
            .iter()
            .filter_map(move |word| self.schema.get(word)?.as_array());
        let parts = lists.flat_map(|list| list.iter().take(MAX_PARTS));
        parts.map(move |schema| self.at(schema))
    }

    /// The declared types; all types if none is declared.
    pub(super) fn types(self) -> JsonTypes {
        self.types_within(MAX_STEPS)
    }

    fn types_within(self, steps: usize) -> JsonTypes {
        let here = self.resolve();
        let declared = match here.schema.get("type") {
            Some(Value::String(word)) => JsonTypes::from_word(word),
            Some(Value::Array(words)) => words
                .iter()
                .filter_map(Value::as_str)
                .fold(JsonTypes::NONE, |all, word| all.and(JsonTypes::from_word(word))),
            _ => here.inferred_types(steps),
        };
        if declared == JsonTypes::NONE {
            JsonTypes::ANY
        } else {
            declared
        }
    }

    /// The types of a schema without `type`: those of its `enum`, its `const`, or its alternatives.
    fn inferred_types(self, steps: usize) -> JsonTypes {
        let Some(steps) = steps.checked_sub(1) else {
            return JsonTypes::ANY;
        };
        if let Some(Value::Array(values)) = self.schema.get("enum") {
            return values
                .iter()
                .fold(JsonTypes::NONE, |all, value| all.and(JsonTypes::new(value)));
        }
        if let Some(value) = self.schema.get("const") {
            return JsonTypes::new(value);
        }
        let all_of = self.parts(&["allOf"]).map(|part| part.types_within(steps));
        if let Some(types) = all_of.into_iter().find(|types| *types != JsonTypes::ANY) {
            return types;
        }
        self.parts(&["anyOf", "oneOf"])
            .fold(JsonTypes::NONE, |all, part| all.and(part.types_within(steps)))
    }

    /// The subschema of the property `name`, or that of additional properties.
    pub(super) fn property(self, name: &str) -> Option<Self> {
        let named = self.find_named(name, MAX_STEPS);
        named.or_else(|| {
            let here = self.resolve();
            let other = here
                .schema
                .get("additionalProperties")
                .filter(|other| other.is_object())?;
            Some(here.at(other))
        })
    }

    fn find_named(self, name: &str, steps: usize) -> Option<Self> {
        let here = self.resolve();
        if let Some(found) = here.properties().and_then(|properties| properties.get(name)) {
            return Some(here.at(found));
        }
        let steps = steps.checked_sub(1)?;
        here.parts(&["allOf", "anyOf", "oneOf"])
            .find_map(|part| part.find_named(name, steps))
    }

    /// Whether the schema declares a property of this name.
    pub(super) fn declares(self, name: &str) -> bool {
        self.find_named(name, MAX_STEPS).is_some()
    }

    /// Whether the schema declares properties and does not explicitly allow others.
    pub(super) fn is_closed(self) -> bool {
        let here = self.resolve();
        let allows = |keyword: &str| {
            here.schema
                .get(keyword)
                .is_some_and(|value| *value != Value::Bool(false))
        };
        here.properties().is_some() && !allows("additionalProperties") && !allows("patternProperties")
    }

    /// The subschema of a list's items.
    pub(super) fn items(self) -> Option<Self> {
        let here = self.resolve();
        match here.schema.get("items") {
            Some(items @ Value::Object(_)) => Some(here.at(items)),
            _ => here.parts(&["anyOf", "oneOf"]).find_map(|part| {
                let part = part.resolve();
                let items = part.schema.get("items").filter(|items| items.is_object())?;
                Some(part.at(items))
            }),
        }
    }

    pub(super) fn requires(self, name: &str) -> bool {
        let here = self.resolve();
        let required = here.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    fn properties(self) -> Option<&'s Map<String, Value>> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The names of its properties.
    pub(super) fn names(self) -> impl Iterator<Item = &'s str> {
        let here = self.resolve();
        here.properties().into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// The argument that a single value is meant for: the only required one, or the only one at all.
    pub(super) fn sole_argument(self) -> Option<&'s str> {
        let mut required = self.names().filter(|name| self.requires(name));
        let mut all = self.names();
        match (required.next(), required.next(), all.next(), all.next()) {
            (Some(name), None, ..) | (None, None, Some(name), None) => Some(name),
            _ => None,
        }
    }

    /// The subschema for the value at a JSON pointer.
    #[cfg(feature = "validation")]
    pub(super) fn at_pointer(self, pointer: &str) -> Option<Self> {
        pointer.split('/').skip(1).try_fold(self, |here, step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            here.property(&name).or_else(|| here.items())
        })
    }

    /// The declared name that `wrong` most likely misspells.
    pub(crate) fn find_nearest(self, wrong: &str) -> Option<&'s str> {
        self.nearest_not_in(wrong, &Map::new())
    }

    /// The declared name that `wrong` most likely misspells and that is not given beside it.
    pub(super) fn nearest_not_in(self, wrong: &str, given: &Map<String, Value>) -> Option<&'s str> {
        if wrong.len() > MAX_NAME {
            return None;
        }
        let normalized = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
        let wrong = normalized(wrong);
        // Some letter must be the same.
        let letters = wrong.chars().count();
        let max_distance = (letters / 3).max(1).min(letters.saturating_sub(1));
        self.names()
            .filter(|name| name.len() <= MAX_NAME && !given.contains_key(*name))
            .map(|name| (strsim::damerau_levenshtein(&wrong, &normalized(name)), name))
            .filter(|(distance, _)| *distance <= max_distance)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    }
}

/// Describes the arguments of a tool on one line: `title: string (required), labels: list of string`. Required ones come first, in the order
/// of the server.
pub fn signature(schema: &Value, order: &[String]) -> String {
    let subschema = Subschema::root(schema);
    let mut names: Vec<&str> = subschema.names().collect();
    let places: HashMap<&str, usize> = order.iter().map(String::as_str).zip(0..).collect();
    names.sort_by_key(|name| (!subschema.requires(name), places.get(name)));
    let mut shown: Vec<String> = names
        .iter()
        .take(MAX_NAMED)
        .map(|name| {
            let need = if subschema.requires(name) { " (required)" } else { "" };
            let kind = subschema
                .property(name)
                .map_or_else(|| "any".to_owned(), type_signature);
            format!("{}: {kind}{need}", display_name(name))
        })
        .collect();
    if names.len() > MAX_NAMED {
        shown.push(format!("and {} more", names.len() - MAX_NAMED));
    }
    shown.join(", ")
}

fn type_signature(subschema: Subschema<'_>) -> String {
    let here = subschema.resolve();
    if let Some(values) = here.schema.get("enum").and_then(Value::as_array)
        && let Some(values) = listed_values(values)
    {
        return values.join("|");
    }
    let types = here.types();
    if types == JsonTypes::ARRAY {
        return match here.items() {
            Some(items) => format!("list of {}", type_names(items.types()).join("|")),
            None => "list".to_owned(),
        };
    }
    type_names(types).join("|")
}

/// Formats the values of an `enum`. Returns `None` if they are too many or too long to be shown.
pub(super) fn listed_values(values: &[Value]) -> Option<Vec<String>> {
    let shown: Vec<String> = values.iter().take(9).map(Value::to_string).collect();
    let is_short = shown.len() < 9 && shown.iter().map(String::len).sum::<usize>() <= 120;
    is_short.then_some(shown)
}

/// The names of the types, without those that another implies.
pub(super) fn type_names(types: JsonTypes) -> Vec<&'static str> {
    if types == JsonTypes::ANY {
        return vec!["any"];
    }
    let all = [
        ("string", JsonTypes::STRING),
        ("number", JsonTypes::NUMBER),
        ("integer", JsonTypes::INTEGER),
        ("boolean", JsonTypes::BOOLEAN),
        ("list", JsonTypes::ARRAY),
        ("object", JsonTypes::OBJECT),
        ("null", JsonTypes::NULL),
    ];
    let is_named = |kind: JsonTypes| types.has(kind) && !(kind == JsonTypes::INTEGER && types.has(JsonTypes::NUMBER));
    all.into_iter()
        .filter(|(_, kind)| is_named(*kind))
        .map(|(word, _)| word)
        .collect()
}

/// Formats a name from a server or a model for display: escaped, on one line, and truncated.
pub(super) fn display_name(name: &str) -> String {
    let mut shown: String = name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect();
    if name.chars().nth(MAX_NAME).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_read_through_references_and_alternatives() {
        let schema = json!({
            "$defs": {"n": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}},
            "properties": {
                "a": {"type": "string"},
                "b": {"type": ["integer", "null"]},
                "c": {"$ref": "#/$defs/n"},
                "d": {"anyOf": [{"type": "array"}, {"$ref": "#/$defs/n"}]},
                "e": {"enum": ["x", 1]},
                "f": {"const": true},
                "g": {"allOf": [{"description": "d"}, {"type": "object"}]},
                "h": {},
                "i": {"$ref": "#/$defs/loop"},
                "j": {"$ref": "http://example.com/x"},
                "k": {"type": "unheard-of"},
            },
        });
        for (name, expected) in [
            ("a", JsonTypes::STRING),
            ("b", JsonTypes::INTEGER.and(JsonTypes::NULL)),
            ("c", JsonTypes::INTEGER),
            ("d", JsonTypes::ARRAY.and(JsonTypes::INTEGER)),
            ("e", JsonTypes::STRING.and(JsonTypes::INTEGER)),
            ("f", JsonTypes::BOOLEAN),
            ("g", JsonTypes::OBJECT),
            ("h", JsonTypes::ANY),
            ("i", JsonTypes::ANY),
            ("j", JsonTypes::ANY),
            ("k", JsonTypes::ANY),
        ] {
            assert_eq!(
                Subschema::root(&schema).property(name).unwrap().types(),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn the_short_form_names_what_must_be_given_first() {
        let schema = json!({"required": ["title"], "properties": {
            "labels": {"type": "array", "items": {"type": "string"}},
            "title": {"type": "string"},
            "state": {"enum": ["open", "shut"]},
            "limit": {"type": ["integer", "null"]},
            "x\n": true,
        }});
        assert_eq!(
            signature(&schema, &[]),
            "title: string (required), labels: list of string, limit: integer|null, state: \"open\"|\"shut\", x\\n: any"
        );
        let order = ["state", "title", "x\n", "limit", "labels"].map(str::to_owned);
        assert_eq!(
            signature(&schema, &order),
            "title: string (required), state: \"open\"|\"shut\", x\\n: any, limit: integer|null, labels: list of string"
        );
        assert_eq!(signature(&json!({}), &[]), "");
    }

    #[test]
    fn a_single_value_is_for_the_only_field_that_must_be_given() {
        let only = |schema: Value| Subschema::root(&schema).sole_argument().map(str::to_owned);
        assert_eq!(only(json!({"properties": {"a": {}}})).as_deref(), Some("a"));
        assert_eq!(
            only(json!({"properties": {"a": {}, "b": {}}, "required": ["b"]})).as_deref(),
            Some("b")
        );
        assert_eq!(only(json!({"properties": {"a": {}, "b": {}}})), None);
        assert_eq!(
            only(json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]})),
            None
        );
        assert_eq!(only(json!({})), None);
    }

    #[test]
    fn a_misspelt_name_finds_the_right_one() {
        let schema = json!({"properties": {"title": {}, "max_results": {}}});
        for (wrong, expected) in [
            ("titel", Some("title")),
            ("maxResults", Some("max_results")),
            ("zzz", None),
        ] {
            assert_eq!(Subschema::root(&schema).find_nearest(wrong), expected, "{wrong}");
        }
        let given = Map::from_iter([("title".to_owned(), json!("x"))]);
        assert_eq!(Subschema::root(&schema).nearest_not_in("titel", &given), None);
        let schema = json!({"properties": {"a": {}, "b": {}}});
        assert_eq!(
            Subschema::root(&schema).find_nearest("c"),
            None,
            "no letter is the same"
        );
        assert_eq!(Subschema::root(&schema).find_nearest("A"), Some("a"));
    }
}
