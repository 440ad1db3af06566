//! Elicitation forms: parses the requested schema into fields, and validates the user's input.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The most fields of a form.
pub(super) const MAX_FIELDS: usize = 100;
/// The most options of one choice.
const MAX_OPTIONS: usize = 1000;

/// A form for the user to fill in.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// Its fields, in the server's order. A form that was parsed from a JSON tree, which has no order, lists its fields by name, the
    /// required ones first.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// The key of its value in the answer.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub required: bool,
    /// The value that is sent if it is left out.
    pub default: Option<Value>,
    /// Whether the input must not be shown: `writeOnly`, or the format `password`.
    pub secret: bool,
    /// The type of its values.
    pub kind: FieldKind,
    /// Whether its format is `password`.
    pub(super) is_password: bool,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text {
        /// Its required format.
        format: Option<TextFormat>,
        /// The minimum length, in characters.
        min: Option<u64>,
        /// The maximum length, in characters.
        max: Option<u64>,
    },
    /// A number.
    Number {
        /// Whether it must be an integer.
        whole: bool,
        /// The minimum.
        min: Option<f64>,
        /// The maximum.
        max: Option<f64>,
    },
    /// A boolean.
    Boolean,
    /// One of some options.
    Choice(Vec<Choice>),
    /// Any of some options.
    Choices {
        /// The options.
        options: Vec<Choice>,
        /// The fewest that must be chosen.
        min: Option<u64>,
        /// The most that may be chosen.
        max: Option<u64>,
    },
    /// A type that forms do not support; its input is sent unchecked.
    Other,
}

/// The format of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// An e-mail address.
    Email,
    /// A URI.
    Uri,
    /// A date: `2026-07-28`.
    Date,
    /// A timestamp: `2026-07-28T10:00:00Z`.
    DateTime,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The value that is sent.
    pub value: String,
    /// A display name.
    pub title: String,
}

impl Form {
    /// Parses the schema of a form. Fields of an unsupported type become [`FieldKind::Other`]. Fields that `order` does not name come last.
    pub(super) fn parse(schema: &Value, order: &[String]) -> Result<Self, String> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Err("`requestedSchema` has no properties".to_owned());
        };
        if properties.len() > MAX_FIELDS {
            return Err(format!("the form has more than {MAX_FIELDS} fields"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
        let fields = properties.iter().map(|(name, property)| Field {
            name: name.clone(),
            title: text(property, "title"),
            description: text(property, "description"),
            required: is_required(name),
            default: property.get("default").filter(|value| !value.is_null()).cloned(),
            is_password: property.get("format").and_then(Value::as_str) == Some("password"),
            secret: property.get("writeOnly") == Some(&Value::Bool(true))
                || property.get("format").and_then(Value::as_str) == Some("password"),
            kind: FieldKind::parse(property),
        });
        let mut fields: Vec<Field> = fields.collect();
        let positions: HashMap<&str, usize> = order.iter().map(String::as_str).zip(0..).collect();
        let position = |field: &Field| positions.get(field.name.as_str()).copied().unwrap_or(usize::MAX);
        fields.sort_by_key(|field| (position(field), !field.required));
        Ok(Self { fields })
    }

    /// Validates an answer and fills in the defaults of missing fields. Fails with one message per invalid field.
    pub fn complete(&self, mut answer: Map<String, Value>) -> Result<Map<String, Value>, Vec<String>> {
        answer.retain(|_, value| !value.is_null());
        let mut problems = Vec::new();
        for name in answer.keys() {
            if !self.fields.iter().any(|field| field.name == *name) {
                problems.push(format!("the form has no field `{name}`"));
            }
        }
        for field in &self.fields {
            match (answer.get(&field.name), &field.default) {
                (Some(value), _) => problems.extend(field.check(value).err()),
                // The server's own default is not validated.
                (None, Some(default)) => {
                    answer.insert(field.name.clone(), default.clone());
                }
                (None, None) if field.required => problems.push(format!("`{}` must be filled in", field.label())),
                (None, None) => {}
            }
        }
        if problems.is_empty() { Ok(answer) } else { Err(problems) }
    }
}

impl Field {
    /// Returns the display name.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Parses what a user typed. Options may be given by value or display name; the items of a list are separated by commas.
    pub fn parse(&self, typed: &str) -> Result<Value, String> {
        let typed = typed.trim();
        let value = match &self.kind {
            FieldKind::Text { .. } => Value::from(typed),
            FieldKind::Number { whole, .. } => number(typed, *whole).ok_or_else(|| {
                format!(
                    "`{}` must be {}",
                    self.label(),
                    if *whole { "a whole number" } else { "a number" }
                )
            })?,
            FieldKind::Boolean => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" | "1" | "on" => Value::Bool(true),
                "n" | "no" | "false" | "0" | "off" => Value::Bool(false),
                _ => return Err(format!("`{}` is yes or no", self.label())),
            },
            FieldKind::Choice(options) => Value::from(choose(options, typed).unwrap_or(typed)),
            FieldKind::Choices { options, .. } => typed
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| choose(options, part).unwrap_or(part))
                .collect(),
            FieldKind::Other => serde_json::from_str(typed).unwrap_or_else(|_| Value::from(typed)),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Validates a value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let label = self.label();
        match (&self.kind, value) {
            (FieldKind::Text { format, min, max }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                if min.is_some_and(|min| length < min) {
                    return Err(format!(
                        "`{label}` needs at least {} characters",
                        min.unwrap_or_default()
                    ));
                }
                if max.is_some_and(|max| length > max) {
                    return Err(format!("`{label}` has room for {} characters", max.unwrap_or_default()));
                }
                match format {
                    Some(format) if !format.matches(text) => Err(format!("`{label}` must be {}", format.describe())),
                    _ => Ok(()),
                }
            }
            (FieldKind::Text { .. }, _) => Err(format!("`{label}` must be a text")),
            (FieldKind::Number { whole, min, max }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                if *whole && number.fract() != 0.0 {
                    Err(format!("`{label}` must be a whole number"))
                } else if let Some(min) = min.filter(|min| number < *min) {
                    Err(format!("`{label}` must be at least {min}"))
                } else if let Some(max) = max.filter(|max| number > *max) {
                    Err(format!("`{label}` must be at most {max}"))
                } else {
                    Ok(())
                }
            }
            (FieldKind::Number { .. }, _) => Err(format!("`{label}` must be a number")),
            (FieldKind::Boolean, Value::Bool(_)) | (FieldKind::Other, _) => Ok(()),
            (FieldKind::Boolean, _) => Err(format!("`{label}` is yes or no")),
            (FieldKind::Choice(options), Value::String(value)) if is_option(options, value) => Ok(()),
            (FieldKind::Choice(options), _) => Err(format!("`{label}` must be one of {}", names(options))),
            (FieldKind::Choices { options, min, max }, Value::Array(values)) => {
                let known = |value: &Value| value.as_str().is_some_and(|value| is_option(options, value));
                let count = values.len() as u64;
                if !values.iter().all(known) {
                    Err(format!("`{label}` must be some of {}", names(options)))
                } else if let Some(min) = min.filter(|min| count < *min) {
                    Err(format!("`{label}` needs at least {min} of them"))
                } else if let Some(max) = max.filter(|max| count > *max) {
                    Err(format!("`{label}` takes at most {max} of them"))
                } else {
                    Ok(())
                }
            }
            (FieldKind::Choices { .. }, _) => Err(format!("`{label}` must be a list")),
        }
    }
}

impl FieldKind {
    fn parse(property: &Value) -> Self {
        let count = |key: &str| property.get(key).and_then(Value::as_u64);
        let bound = |key: &str| property.get(key).and_then(Value::as_f64);
        match property.get("type").and_then(Value::as_str) {
            Some("string") => match options(property) {
                Some(options) => Self::Choice(options),
                None => Self::Text {
                    format: property
                        .get("format")
                        .and_then(Value::as_str)
                        .and_then(TextFormat::from_name),
                    min: count("minLength"),
                    max: count("maxLength"),
                },
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                whole: kind == "integer",
                min: bound("minimum"),
                max: bound("maximum"),
            },
            Some("boolean") => Self::Boolean,
            Some("array") => match property.get("items").and_then(options) {
                Some(options) => Self::Choices {
                    options,
                    min: count("minItems"),
                    max: count("maxItems"),
                },
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// Parses the options of a choice: `oneOf` or `anyOf` with titles, or `enum` with or without `enumNames`.
fn options(schema: &Value) -> Option<Vec<Choice>> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let options: Vec<Choice> = if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        let option = |option: &Value| {
            let value = text(option, "const")?;
            let title = text(option, "title").unwrap_or_else(|| value.clone());
            Some(Choice { value, title })
        };
        titled.iter().map(option).collect::<Option<_>>()?
    } else {
        let titles = list("enumNames");
        let values = list("enum")?.iter().enumerate();
        let option = |(at, value): (usize, &Value)| {
            let value = value.as_str()?.to_owned();
            let title = titles
                .and_then(|titles| titles.get(at)?.as_str())
                .unwrap_or(&value)
                .to_owned();
            Some(Choice { value, title })
        };
        values.map(option).collect::<Option<_>>()?
    };
    (options.len() <= MAX_OPTIONS).then_some(options)
}

impl TextFormat {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "email" => Self::Email,
            "uri" => Self::Uri,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            _ => return None,
        })
    }

    fn matches(self, text: &str) -> bool {
        match self {
            Self::Email => match text.rsplit_once('@') {
                Some((user, host)) => {
                    !user.is_empty()
                        && !host.is_empty()
                        && !text.contains(|char: char| char.is_whitespace() || char.is_control())
                }
                None => false,
            },
            Self::Uri => url::Url::parse(text).is_ok(),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Uri => "an address such as https://example.org/",
            Self::Date => "a day such as 2026-07-28",
            Self::DateTime => "a moment such as 2026-07-28T10:00:00Z",
        }
    }
}

fn number(typed: &str, whole: bool) -> Option<Value> {
    if let Ok(number) = typed.parse::<i64>() {
        return Some(number.into());
    }
    let number = typed.parse::<f64>().ok()?;
    if whole && number.fract() != 0.0 {
        return None;
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

fn choose<'a>(options: &'a [Choice], typed: &str) -> Option<&'a str> {
    let by_value = options.iter().find(|option| option.value == typed);
    let found = by_value.or_else(|| options.iter().find(|option| option.title.eq_ignore_ascii_case(typed)));
    found.map(|option| option.value.as_str())
}

fn is_option(options: &[Choice], value: &str) -> bool {
    options.iter().any(|option| option.value == value)
}

fn names(options: &[Choice]) -> String {
    let names: Vec<_> = options
        .iter()
        .take(20)
        .map(|option| format!("`{}`", option.value))
        .collect();
    names.join(", ")
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        Form::parse(&json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 5},
            "mail": {"type": "string", "format": "email"},
            "home": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
            "size": {"type": "number"},
            "sure": {"type": "boolean", "default": true},
            "plain": {"type": "string", "enum": ["a", "b"]},
            "old": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
            "titled": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["p", "q", "r"]}, "minItems": 1, "maxItems": 2},
            "titled_many": {"type": "array", "items": {"anyOf": [{"const": "1", "title": "One"}]}, "default": ["1"]},
            "odd": {"type": "object"},
        }}), &["name".to_owned()])
        .unwrap()
    }

    fn field(name: &str) -> Field {
        form().fields.into_iter().find(|field| field.name == name).unwrap()
    }

    #[test]
    fn every_type_of_field_is_recognised() {
        assert_eq!(form().fields[0].name, "name");
        assert!(form().fields[0].required);
        assert!(matches!(field("plain").kind, FieldKind::Choice(options) if options[1].title == "b"));
        assert!(matches!(field("old").kind, FieldKind::Choice(options) if options[1].title == "Why"));
        assert!(matches!(field("titled").kind, FieldKind::Choice(options) if options[0].title == "Red"));
        assert!(matches!(field("titled_many").kind, FieldKind::Choices { options, .. } if options[0].value == "1"));
        assert_eq!(field("odd").kind, FieldKind::Other);
    }

    #[test]
    fn input_becomes_a_value_or_an_error() {
        let check = |name: &str, typed: &str, expected: Option<Value>| {
            assert_eq!(field(name).parse(typed).ok(), expected, "{name} {typed}");
        };
        check("name", " Ada ", Some(json!("Ada")));
        check("name", "A", None);
        check("name", "Adalina", None);
        check("mail", "a@b.c", Some(json!("a@b.c")));
        check("mail", "ab.c", None);
        check("home", "https://a.b/", Some(json!("https://a.b/")));
        check("home", "here", None);
        check("day", "2026-07-28", Some(json!("2026-07-28")));
        check("day", "2026-02-30", None);
        check("at", "2026-07-28T10:00:00Z", Some(json!("2026-07-28T10:00:00Z")));
        check("at", "2026-07-28", None);
        check("age", "42", Some(json!(42)));
        check("age", "4.5", None);
        check("age", "200", None);
        check("size", "4.5", Some(json!(4.5)));
        check("size", "NaN", None);
        check("sure", "Yes", Some(json!(true)));
        check("sure", "perhaps", None);
        check("old", "why", Some(json!("y")));
        check("old", "z", None);
        check("many", "p, q", Some(json!(["p", "q"])));
        check("many", "p,q,r", None);
        check("many", "", None);
        check("odd", "{\"a\":1}", Some(json!({"a": 1})));
    }

    #[test]
    fn an_answer_gets_defaults_and_every_problem_is_reported() {
        let complete = |answer: Value| form().complete(answer.as_object().cloned().unwrap());
        let answer = complete(json!({"name": "Ada", "mail": null})).unwrap();
        assert_eq!(
            Value::Object(answer),
            json!({"name": "Ada", "age": 30, "sure": true, "titled_many": ["1"]})
        );
        let problems = complete(json!({"age": "old", "x": 1})).unwrap_err();
        assert_eq!(
            problems,
            [
                "the form has no field `x`",
                "`Your name` must be filled in",
                "`age` must be a number"
            ]
        );
    }

    #[test]
    fn a_schema_that_is_no_form_is_rejected() {
        assert!(Form::parse(&json!({"type": "string"}), &[]).is_err());
        let fields: Map<_, _> = (0..101)
            .map(|number| (number.to_string(), json!({"type": "string"})))
            .collect();
        assert!(Form::parse(&json!({ "properties": fields }), &[]).is_err());
    }
}
