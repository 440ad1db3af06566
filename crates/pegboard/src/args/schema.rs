//! What a tool's schema says about single arguments, read without compiling it: kinds, names, and the short form for people.

use serde_json::{Map, Value};

/// How many references are followed, one after the other.
const MAX_HOPS: usize = 8;
/// How deep alternatives within alternatives are looked at, and how many of each: together they multiply.
const MAX_STEPS: usize = 3;
const MAX_PARTS: usize = 16;
/// How many arguments the short form names.
const MAX_NAMED: usize = 24;
/// How many letters of a foreign name are shown.
const MAX_NAME: usize = 64;

/// A set of JSON's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Every number is one, whole or not.
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

    fn named(word: &str) -> Self {
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

    pub(super) fn of(value: &Value) -> Self {
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

/// A part of a schema, and the whole, which references point into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl<'s> Shape<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root, schema: root }
    }

    fn at(self, schema: &'s Value) -> Self {
        Self { schema, ..self }
    }

    /// What a reference stands for. Only places in the same schema are looked at.
    fn resolved(self) -> Self {
        let mut here = self;
        for _ in 0..MAX_HOPS {
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

    /// The alternatives and parts that the schema is made of.
    fn parts(self, keywords: &'static [&'static str]) -> impl Iterator<Item = Self> {
        let lists = keywords
            .iter()
            .filter_map(move |word| self.schema.get(word)?.as_array());
        let parts = lists.flat_map(|list| list.iter().take(MAX_PARTS));
        parts.map(move |schema| self.at(schema))
    }

    /// The types that are declared; all of them when nothing is said.
    pub(super) fn kinds(self) -> Kinds {
        self.kinds_within(MAX_STEPS)
    }

    fn kinds_within(self, steps: usize) -> Kinds {
        let here = self.resolved();
        let said = match here.schema.get("type") {
            Some(Value::String(word)) => Kinds::named(word),
            Some(Value::Array(words)) => words
                .iter()
                .filter_map(Value::as_str)
                .fold(Kinds::NONE, |all, word| all.and(Kinds::named(word))),
            _ => here.kinds_unnamed(steps),
        };
        if said == Kinds::NONE { Kinds::ANY } else { said }
    }

    /// The types of a schema that does not name them: those of its alternatives, or of the values it lists.
    fn kinds_unnamed(self, steps: usize) -> Kinds {
        let Some(steps) = steps.checked_sub(1) else {
            return Kinds::ANY;
        };
        if let Some(Value::Array(values)) = self.schema.get("enum") {
            return values.iter().fold(Kinds::NONE, |all, value| all.and(Kinds::of(value)));
        }
        if let Some(value) = self.schema.get("const") {
            return Kinds::of(value);
        }
        let all_of = self.parts(&["allOf"]).map(|part| part.kinds_within(steps));
        if let Some(kinds) = all_of.into_iter().find(|kinds| *kinds != Kinds::ANY) {
            return kinds;
        }
        self.parts(&["anyOf", "oneOf"])
            .fold(Kinds::NONE, |all, part| all.and(part.kinds_within(steps)))
    }

    /// What is said about the field `name`.
    pub(super) fn property(self, name: &str) -> Option<Self> {
        let named = self.named(name, MAX_STEPS);
        named.or_else(|| {
            let here = self.resolved();
            let other = here
                .schema
                .get("additionalProperties")
                .filter(|other| other.is_object())?;
            Some(here.at(other))
        })
    }

    fn named(self, name: &str, steps: usize) -> Option<Self> {
        let here = self.resolved();
        if let Some(found) = here.properties().and_then(|properties| properties.get(name)) {
            return Some(here.at(found));
        }
        let steps = steps.checked_sub(1)?;
        here.parts(&["allOf", "anyOf", "oneOf"])
            .find_map(|part| part.named(name, steps))
    }

    /// Whether the schema itself has a field of this name.
    pub(super) fn knows(self, name: &str) -> bool {
        self.named(name, MAX_STEPS).is_some()
    }

    /// Whether it declares fields and does not say that it takes others.
    pub(super) fn is_closed(self) -> bool {
        let here = self.resolved();
        let says = |word: &str| here.schema.get(word).is_some_and(|said| *said != Value::Bool(false));
        here.properties().is_some() && !says("additionalProperties") && !says("patternProperties")
    }

    /// What is said about the items of a list.
    pub(super) fn items(self) -> Option<Self> {
        let here = self.resolved();
        match here.schema.get("items") {
            Some(items @ Value::Object(_)) => Some(here.at(items)),
            _ => here.parts(&["anyOf", "oneOf"]).find_map(|part| {
                let part = part.resolved();
                let items = part.schema.get("items").filter(|items| items.is_object())?;
                Some(part.at(items))
            }),
        }
    }

    pub(super) fn requires(self, name: &str) -> bool {
        let here = self.resolved();
        let required = here.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    fn properties(self) -> Option<&'s Map<String, Value>> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The names of its fields.
    pub(super) fn names(self) -> impl Iterator<Item = &'s str> {
        let here = self.resolved();
        here.properties().into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// The field that a single value is meant for: the only one that must be given, or the only one there is.
    pub(super) fn only(self) -> Option<&'s str> {
        let mut required = self.names().filter(|name| self.requires(name));
        let mut all = self.names();
        match (required.next(), required.next(), all.next(), all.next()) {
            (Some(name), None, ..) | (None, None, Some(name), None) => Some(name),
            _ => None,
        }
    }

    /// The part of the schema that a JSON pointer into a value leads to.
    pub(super) fn under(self, pointer: &str) -> Option<Self> {
        pointer.split('/').skip(1).try_fold(self, |here, step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            here.property(&name).or_else(|| here.items())
        })
    }

    /// The name of a field that `wrong` most likely misspells.
    pub(super) fn nearest(self, wrong: &str) -> Option<&'s str> {
        if wrong.len() > MAX_NAME {
            return None;
        }
        let plain = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
        let (wrong, most) = (plain(wrong), (wrong.chars().count() / 3).max(1));
        self.names()
            .filter(|name| name.len() <= MAX_NAME)
            .map(|name| (strsim::damerau_levenshtein(&wrong, &plain(name)), name))
            .filter(|(distance, _)| *distance <= most)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    }
}

/// The arguments of a tool in one line: `title: string (required), labels: list of string`.
pub(crate) fn in_short(schema: &Value) -> String {
    let shape = Shape::new(schema);
    let mut names: Vec<&str> = shape.names().collect();
    names.sort_by_key(|name| !shape.requires(name));
    let mut shown: Vec<String> = names
        .iter()
        .take(MAX_NAMED)
        .map(|name| {
            let need = if shape.requires(name) { " (required)" } else { "" };
            let kind = shape.property(name).map_or_else(|| "any".to_owned(), kind_in_short);
            format!("{}: {kind}{need}", plain(name))
        })
        .collect();
    if names.len() > MAX_NAMED {
        shown.push(format!("and {} more", names.len() - MAX_NAMED));
    }
    shown.join(", ")
}

fn kind_in_short(shape: Shape<'_>) -> String {
    let here = shape.resolved();
    if let Some(values) = here.schema.get("enum").and_then(Value::as_array)
        && let Some(values) = few(values)
    {
        return values.join("|");
    }
    let kinds = here.kinds();
    if kinds == Kinds::ARRAY {
        return match here.items() {
            Some(items) => format!("list of {}", words(items.kinds()).join("|")),
            None => "list".to_owned(),
        };
    }
    words(kinds).join("|")
}

/// The values, when they are few and short enough to be shown.
pub(super) fn few(values: &[Value]) -> Option<Vec<String>> {
    let shown: Vec<String> = values.iter().take(9).map(Value::to_string).collect();
    let is_short = shown.len() < 9 && shown.iter().map(String::len).sum::<usize>() <= 120;
    is_short.then_some(shown)
}

/// The types by their names, as few as say it.
pub(super) fn words(kinds: Kinds) -> Vec<&'static str> {
    if kinds == Kinds::ANY {
        return vec!["any"];
    }
    let all = [
        ("string", Kinds::STRING),
        ("number", Kinds::NUMBER),
        ("integer", Kinds::INTEGER),
        ("boolean", Kinds::BOOLEAN),
        ("list", Kinds::ARRAY),
        ("object", Kinds::OBJECT),
        ("null", Kinds::NULL),
    ];
    let is_told = |kind: Kinds| kinds.has(kind) && !(kind == Kinds::INTEGER && kinds.has(Kinds::NUMBER));
    all.into_iter()
        .filter(|(_, kind)| is_told(*kind))
        .map(|(word, _)| word)
        .collect()
}

/// A foreign name as it can be shown: on one line, and not without end.
pub(super) fn plain(name: &str) -> String {
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
            ("a", Kinds::STRING),
            ("b", Kinds::INTEGER.and(Kinds::NULL)),
            ("c", Kinds::INTEGER),
            ("d", Kinds::ARRAY.and(Kinds::INTEGER)),
            ("e", Kinds::STRING.and(Kinds::INTEGER)),
            ("f", Kinds::BOOLEAN),
            ("g", Kinds::OBJECT),
            ("h", Kinds::ANY),
            ("i", Kinds::ANY),
            ("j", Kinds::ANY),
            ("k", Kinds::ANY),
        ] {
            assert_eq!(Shape::new(&schema).property(name).unwrap().kinds(), expected, "{name}");
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
            in_short(&schema),
            "title: string (required), labels: list of string, limit: integer|null, state: \"open\"|\"shut\", x\\n: any"
        );
        assert_eq!(in_short(&json!({})), "");
    }

    #[test]
    fn a_single_value_is_for_the_only_field_that_must_be_given() {
        let only = |schema: Value| Shape::new(&schema).only().map(str::to_owned);
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
            assert_eq!(Shape::new(&schema).nearest(wrong), expected, "{wrong}");
        }
    }
}
