//! Coerces arguments to the types that their schema declares, where the conversion is unambiguous: `"5"` for an integer, one value for a
//! list. It works on the JSON text, so values that need no coercion keep their spelling.

use std::fmt;

use serde_json::value::RawValue;

use super::{
    arguments::Arguments,
    node::Node,
    raw_fields::RawFields,
    scalar,
    schema::{JsonTypes, Subschema, display_name, type_names},
};

/// The most values that are visited.
const MAX_VISITS: usize = 100_000;
/// The most changes that are reported.
const MAX_NOTES: usize = 16;

/// Returns the coerced arguments with a note for each change, or `None` if nothing changed.
pub(super) fn coerce(arguments: &Arguments, subschema: Subschema<'_>) -> Option<(Arguments, Vec<String>)> {
    let mut coercion = Coercion {
        visits: 0,
        notes: Vec::new(),
    };
    let node = coercion.value(arguments.as_raw(), subschema, &Path::Root)?;
    Some((node.into_arguments(), coercion.notes))
}

struct Coercion {
    visits: usize,
    notes: Vec<String>,
}

impl Coercion {
    /// Returns the replacement of a value, if it needs one.
    fn value(&mut self, raw: &RawValue, subschema: Subschema<'_>, path: &Path<'_>) -> Option<Node> {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return None;
        }
        let (types, given) = (subschema.types(), type_of(raw));
        if !types.has(given) {
            let node = convert(raw, given, subschema)?;
            let wanted = type_names(types).join(" or ");
            self.note(path, &format!("{} was made {wanted}", type_names(given).join("")));
            return Some(node);
        }
        match given {
            // `41.0` is an integer, but few servers read it as one.
            JsonTypes::INTEGER if !types.has(JsonTypes::NUMBER) => without_fraction(raw.get()),
            JsonTypes::OBJECT => self.object(raw, subschema, path),
            JsonTypes::ARRAY => self.list(raw, subschema.items()?, path),
            _ => None,
        }
    }

    fn object(&mut self, raw: &RawValue, subschema: Subschema<'_>, path: &Path<'_>) -> Option<Node> {
        let RawFields(fields) = serde_json::from_str(raw.get()).ok()?;
        let mut is_changed = false;
        let mut fitted = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let declared = subschema.property(&name);
            let inner = Path::Field(path, &name);
            let no_null = declared.is_some_and(|declared| !declared.types().has(JsonTypes::NULL));
            if no_null && value.get() == "null" && !subschema.requires(&name) {
                // Models write null for arguments that they leave out.
                self.note(&inner, "null was left out");
                is_changed = true;
                continue;
            }
            let node = declared.and_then(|declared| self.value(value, declared, &inner));
            is_changed |= node.is_some();
            fitted.push((name, node.unwrap_or_else(|| Node::Raw(value.to_owned()))));
        }
        is_changed.then_some(Node::Map(fitted))
    }

    fn list(&mut self, raw: &RawValue, items: Subschema<'_>, path: &Path<'_>) -> Option<Node> {
        let values: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        let mut is_changed = false;
        let mut fitted = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            let node = self.value(value, items, &Path::Item(path, at));
            is_changed |= node.is_some();
            fitted.push(node.unwrap_or_else(|| Node::Raw(value.to_owned())));
        }
        is_changed.then_some(Node::List(fitted))
    }

    fn note(&mut self, path: &Path<'_>, what: &str) {
        match self.notes.len() {
            MAX_NOTES => self.notes.push("more arguments were changed like that".to_owned()),
            0..MAX_NOTES => self.notes.push(format!("argument `{path}`: {what}")),
            _ => {}
        }
    }
}

/// Converts a value to one of the types of its schema, if that is possible.
fn convert(raw: &RawValue, given: JsonTypes, subschema: Subschema<'_>) -> Option<Node> {
    let types = subschema.types();
    let node = match given {
        JsonTypes::STRING => {
            let text: String = serde_json::from_str(raw.get()).ok()?;
            from_text(&text, types)
        }
        JsonTypes::BOOLEAN | JsonTypes::INTEGER | JsonTypes::NUMBER if types.has(JsonTypes::STRING) => {
            Some(Node::Text(raw.get().to_owned()))
        }
        _ => None,
    };
    node.or_else(|| {
        let is_scalar = given != JsonTypes::NULL && given != JsonTypes::OBJECT;
        (types.has(JsonTypes::ARRAY) && is_scalar).then(|| in_list(raw, given, subschema.items()))?
    })
}

/// Parses a string that holds a value of another type.
fn from_text(text: &str, types: JsonTypes) -> Option<Node> {
    let trimmed = text.trim();
    let starts = |kind: JsonTypes, mark: char| types.has(kind) && trimmed.starts_with(mark);
    if starts(JsonTypes::OBJECT, '{') || starts(JsonTypes::ARRAY, '[') {
        return Node::json(trimmed);
    }
    scalar::parse_as(text, types)
}

/// Wraps a single value in a list, where a list of such values is declared.
fn in_list(raw: &RawValue, given: JsonTypes, items: Option<Subschema<'_>>) -> Option<Node> {
    let item = match items {
        Some(items) if !items.types().has(given) => convert(raw, given, items)?,
        _ => Node::Raw(raw.to_owned()),
    };
    Some(Node::List(vec![item]))
}

fn type_of(raw: &RawValue) -> JsonTypes {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => JsonTypes::OBJECT,
        Some(b'[') => JsonTypes::ARRAY,
        Some(b'"') => JsonTypes::STRING,
        Some(b't' | b'f') => JsonTypes::BOOLEAN,
        Some(b'n') => JsonTypes::NULL,
        _ if scalar::is_whole(text) => JsonTypes::INTEGER,
        _ => JsonTypes::NUMBER,
    }
}

/// Writes a JSON number that has a fraction or an exponent, but is an integer, as one. Returns `None` for other numbers.
fn without_fraction(number: &str) -> Option<Node> {
    /// The largest number up to which every integer has a floating-point number of its own.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let written = match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => whole.to_owned(),
        _ if number.contains(['.', 'e', 'E']) => {
            let value: f64 = number.parse().ok()?;
            (value.fract() == 0.0 && value.abs() <= MAX_EXACT).then(|| format!("{value:.0}"))?
        }
        _ => return None,
    };
    Node::json(if written == "-0" { "0" } else { &written })
}

/// Whether a JSON text may hold a number that is an integer with a fraction: `41.0`.
pub(super) fn may_have_fraction(json: &str) -> bool {
    let bytes = json.as_bytes();
    memchr::memchr_iter(b'.', bytes).any(|at| {
        let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        is_digit(at.checked_sub(1)) && bytes.get(at + 1) == Some(&b'0')
    })
}

/// The location of a value inside the arguments.
enum Path<'p> {
    Root,
    Field(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(&display_name(name)),
            Self::Field(Self::Field(Self::Root, first), name) => {
                write!(f, "/{}/{}", display_name(first), display_name(name))
            }
            Self::Item(Self::Field(Self::Root, first), at) => write!(f, "/{}/{at}", display_name(first)),
            Self::Field(outer, name) => write!(f, "{outer}/{}", display_name(name)),
            Self::Item(outer, at) => write!(f, "{outer}/{at}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(schema: &Value, text: &str, expected: Option<(&str, &[&str])>) {
        let arguments = Arguments::parse(text).unwrap();
        let fitted = coerce(&arguments, Subschema::root(schema));
        let fitted = fitted.map(|(arguments, notes)| (arguments.as_raw().get().to_owned(), notes));
        let expected = expected.map(|(json, notes)| {
            let notes = notes.iter().map(|note| format!("argument {note}")).collect();
            (json.to_owned(), notes)
        });
        assert_eq!(fitted, expected, "{text}");
    }

    fn schema() -> Value {
        json!({"type": "object", "required": ["must"], "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "b": {"type": "boolean"},
            "l": {"type": "array", "items": {"type": "integer"}},
            "o": {"type": "object", "properties": {"n": {"type": "integer"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {},
            "must": {"type": "string"},
        }})
    }

    #[test]
    fn a_value_of_the_wrong_type_becomes_what_is_declared() {
        for (text, json, notes) in [
            (r#"{"n":"5"}"#, r#"{"n":5}"#, &["`n`: string was made integer"][..]),
            (r#"{"n":41.0}"#, r#"{"n":41}"#, &[]),
            (
                r#"{"n":-12345678901234567890.00}"#,
                r#"{"n":-12345678901234567890}"#,
                &[],
            ),
            (r#"{"n":4.1e1}"#, r#"{"n":41}"#, &[]),
            (r#"{"l":[1.0,2]}"#, r#"{"l":[1,2]}"#, &[]),
            (r#"{"o":{"n":-0.0}}"#, r#"{"o":{"n":0}}"#, &[]),
            (r#"{"s":5}"#, r#"{"s":"5"}"#, &["`s`: integer was made string"]),
            (r#"{"s":1.50}"#, r#"{"s":"1.50"}"#, &["`s`: number was made string"]),
            (r#"{"s":true}"#, r#"{"s":"true"}"#, &["`s`: boolean was made string"]),
            (r#"{"b":"True"}"#, r#"{"b":true}"#, &["`b`: string was made boolean"]),
            (r#"{"l":5}"#, r#"{"l":[5]}"#, &["`l`: integer was made list"]),
            (r#"{"l":"5"}"#, r#"{"l":[5]}"#, &["`l`: string was made list"]),
            (r#"{"l":"[1, 2]"}"#, r#"{"l":[1, 2]}"#, &["`l`: string was made list"]),
            (
                r#"{"l":["1",2]}"#,
                r#"{"l":[1,2]}"#,
                &["`/l/0`: string was made integer"],
            ),
            (
                r#"{"o":"{\"n\": 1}"}"#,
                r#"{"o":{"n": 1}}"#,
                &["`o`: string was made object"],
            ),
            (
                r#"{"o":{"n":"1"}}"#,
                r#"{"o":{"n":1}}"#,
                &["`/o/n`: string was made integer"],
            ),
            (
                r#"{"m":{"k":1}}"#,
                r#"{"m":{"k":"1"}}"#,
                &["`/m/k`: integer was made string"],
            ),
            (r#"{"n":null}"#, "{}", &["`n`: null was left out"]),
        ] {
            check(&schema(), text, Some((json, notes)));
        }
    }

    #[test]
    fn what_fits_or_could_mean_several_things_is_left_alone() {
        for text in [
            r#"{"n":5,"s":"5","b":false,"l":[],"o":{},"any":"5"}"#,
            r#"{"n":"five"}"#,
            r#"{"n":"5.5"}"#,
            r#"{"n":5.5}"#,
            r#"{"n":true}"#,
            r#"{"b":"yes"}"#,
            r#"{"b":1}"#,
            r#"{"s":{}}"#,
            r#"{"o":"text"}"#,
            r#"{"must":null}"#,
            r#"{"other":"5"}"#,
        ] {
            check(&schema(), text, None);
        }
    }

    #[test]
    fn numbers_beside_a_change_keep_their_digits() {
        check(
            &schema(),
            r#"{"any": 123456789012345678901234567890, "s": 98765432109876543210987654321, "n": "1"}"#,
            Some((
                r#"{"any":123456789012345678901234567890,"s":"98765432109876543210987654321","n":1}"#,
                &["`s`: integer was made string", "`n`: string was made integer"],
            )),
        );
    }
}
