//! URI templates: RFC 6570 without associative arrays.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The longest template that is parsed, in bytes.
const MAX_TEMPLATE: usize = 8 << 10;
/// The longest expanded URI, in bytes.
const MAX_URI: usize = 64 << 10;

/// A URI template, such as `repo://{owner}/{repo}/contents{/path*}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Expression { style: Style, variables: Vec<Variable> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// The `*` modifier: expands each item of a list on its own.
    exploded: bool,
    /// The `:n` modifier: expands only the first n characters.
    prefix: Option<usize>,
}

/// How an expression is expanded, by its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Style {
    first: &'static str,
    between: &'static str,
    /// Whether it expands to `name=value` instead of the value alone.
    named: bool,
    /// The text after the name of an empty value.
    if_empty: &'static str,
    /// Whether reserved characters stay as they are instead of being percent-encoded.
    keeps_reserved: bool,
    /// Whether the variables may be left undefined.
    optional: bool,
}

const fn style(first: &'static str, between: &'static str) -> Style {
    Style {
        first,
        between,
        named: false,
        if_empty: "",
        keeps_reserved: false,
        optional: true,
    }
}

const fn named_style(first: &'static str, between: &'static str, if_empty: &'static str) -> Style {
    Style {
        named: true,
        if_empty,
        ..style(first, between)
    }
}

/// Why a template cannot be parsed or expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The text is not a URI template.
    #[error("`{template}` is no URI template: {problem}")]
    Malformed {
        /// The text.
        template: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A required value is missing.
    #[error("the template needs a value for `{0}`")]
    Missing(String),
    /// A value has no variable.
    #[error("the template has no place for `{0}`")]
    Unknown(String),
    /// A value is neither a scalar nor a list of scalars.
    #[error("the value of `{0}` is neither a text, a number, a boolean nor a list of them")]
    BadValue(String),
    /// The expanded URI would be too long.
    #[error("the address would be longer than {MAX_URI} bytes")]
    TooLong,
}

impl UriTemplate {
    /// Parses a template.
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        let malformed = |problem| TemplateError::Malformed {
            template: template.chars().take(100).collect(),
            problem,
        };
        if template.len() > MAX_TEMPLATE {
            return Err(malformed("it is too long"));
        }
        let (mut parts, mut rest) = (Vec::new(), template);
        while let Some(open) = rest.find(['{', '}']) {
            if rest[open..].starts_with('}') {
                return Err(malformed("a brace is closed that was not opened"));
            }
            if open > 0 {
                parts.push(TemplatePart::Literal(rest[..open].to_owned()));
            }
            let Some(close) = rest[open..].find('}') else {
                return Err(malformed("a brace is not closed"));
            };
            parts.push(expression(&rest[open + 1..open + close]).map_err(malformed)?);
            rest = &rest[open + close + 1..];
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The names of its variables in order, each once.
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for variable in self.parts.iter().flat_map(TemplatePart::variables) {
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
        }
        names
    }

    /// The names of the required variables. Those in `{?…}`, `{&…}`, `{/…}`, `{.…}`, `{;…}` and `{#…}` are optional.
    pub fn required(&self) -> Vec<&str> {
        let needs = |part: &&TemplatePart| matches!(part, TemplatePart::Expression { style, .. } if !style.optional);
        let mut names: Vec<&str> = Vec::new();
        for variable in self.parts.iter().filter(needs).flat_map(TemplatePart::variables) {
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
        }
        names
    }

    /// Expands the template. Values may be strings, numbers, booleans, and lists of them.
    pub fn expand(&self, values: &Map<String, Value>) -> Result<String, TemplateError> {
        let known = self.variables();
        if let Some(unknown) = values.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(TemplateError::Unknown(unknown.clone()));
        }
        let is_given = |name: &&str| values.get(*name).is_some_and(|value| !value.is_null());
        if let Some(missing) = self.required().into_iter().find(|name| !is_given(name)) {
            return Err(TemplateError::Missing(missing.to_owned()));
        }
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => push_encoded(&mut uri, text, true),
                TemplatePart::Expression { style, variables } => push_expression(&mut uri, *style, variables, values)?,
            }
            if uri.len() > MAX_URI {
                return Err(TemplateError::TooLong);
            }
        }
        Ok(uri)
    }
}

impl TemplatePart {
    fn variables(&self) -> &[Variable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression { variables, .. } => variables,
        }
    }
}

fn expression(text: &str) -> Result<TemplatePart, &'static str> {
    let (style, names) = match text.split_at_checked(1) {
        Some(("+", names)) => {
            let plain = style("", ",");
            (
                Style {
                    keeps_reserved: true,
                    optional: false,
                    ..plain
                },
                names,
            )
        }
        Some(("#", names)) => (
            Style {
                keeps_reserved: true,
                ..style("#", ",")
            },
            names,
        ),
        Some((".", names)) => (style(".", "."), names),
        Some(("/", names)) => (style("/", "/"), names),
        Some((";", names)) => (named_style(";", ";", ""), names),
        Some(("?", names)) => (named_style("?", "&", "="), names),
        Some(("&", names)) => (named_style("&", "&", "="), names),
        Some(("=" | "," | "!" | "@" | "|", _)) => return Err("its operator is reserved"),
        _ => {
            let plain = style("", ",");
            (
                Style {
                    optional: false,
                    ..plain
                },
                text,
            )
        }
    };
    let variables = names.split(',').map(variable).collect::<Result<_, _>>()?;
    Ok(TemplatePart::Expression { style, variables })
}

fn variable(text: &str) -> Result<Variable, &'static str> {
    let (name, exploded, prefix) = match (text.strip_suffix('*'), text.split_once(':')) {
        (Some(name), _) => (name, true, None),
        (None, Some((name, count))) => match count.parse() {
            Ok(count @ 1..10_000) => (name, false, Some(count)),
            _ => return Err("a prefix is no number below 10000"),
        },
        (None, None) => (text, false, None),
    };
    let is_named = |char: char| char.is_alphanumeric() || "_.%-".contains(char);
    if name.is_empty() || !name.chars().all(is_named) {
        return Err("a variable has no proper name");
    }
    Ok(Variable {
        name: name.to_owned(),
        exploded,
        prefix,
    })
}

fn push_expression(
    uri: &mut String,
    style: Style,
    variables: &[Variable],
    values: &Map<String, Value>,
) -> Result<(), TemplateError> {
    let mut separator = style.first;
    for variable in variables {
        let Some(value) = values.get(&variable.name).filter(|value| !value.is_null()) else {
            continue;
        };
        let Some(items) = texts(value) else {
            return Err(TemplateError::BadValue(variable.name.clone()));
        };
        // An empty list counts as undefined.
        if value.is_array() && items.is_empty() {
            continue;
        }
        uri.push_str(std::mem::replace(&mut separator, style.between));
        for (at, item) in items.iter().enumerate() {
            let starts = at == 0 || variable.exploded;
            if at > 0 {
                uri.push_str(if variable.exploded { style.between } else { "," });
            }
            if style.named && starts {
                push_encoded(uri, &variable.name, true);
                uri.push_str(if item.is_empty() { style.if_empty } else { "=" });
            }
            let shown: String = match variable.prefix {
                Some(prefix) => item.chars().take(prefix).collect(),
                None => item.clone(),
            };
            push_encoded(uri, &shown, style.keeps_reserved);
        }
    }
    Ok(())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => Some(vec![text(other)?]),
    }
}

/// Appends a text, percent-encoded. With `keeps_reserved`, reserved characters and existing escapes stay.
fn push_encoded(uri: &mut String, text: &str, keeps_reserved: bool) {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let is_escape = || matches!(bytes.get(at + 1..at + 3), Some(hex) if hex.iter().all(u8::is_ascii_hexdigit));
        let stays = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'%' => keeps_reserved && is_escape(),
            byte if byte.is_ascii_alphanumeric() => true,
            byte => keeps_reserved && b":/?#[]@!$&'()*+,;=".contains(byte),
        };
        if stays {
            uri.push(char::from(*byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn expand(template: &str, values: Value) -> Result<String, TemplateError> {
        let Value::Object(values) = values else {
            panic!("{values}");
        };
        UriTemplate::parse(template)?.expand(&values)
    }

    #[test]
    fn values_are_written_as_the_standard_says() {
        let values = json!({"var": "value", "hello": "Hello World!", "path": "/foo/bar", "x": 1024, "y": "768", "empty": "",
            "list": ["red", "green", "blue"], "half": "50%"});
        for (template, uri) in [
            ("{var}", "value"),
            ("{hello}", "Hello%20World%21"),
            ("{half}", "50%25"),
            ("{+var}", "value"),
            ("{+hello}", "Hello%20World!"),
            ("{+path}/here", "/foo/bar/here"),
            ("here?ref={+path}", "here?ref=/foo/bar"),
            ("X{#var}", "X#value"),
            ("X{#hello}", "X#Hello%20World!"),
            ("map?{x,y}", "map?1024,768"),
            ("{+path,x}/here", "/foo/bar,1024/here"),
            ("X{.var}", "X.value"),
            ("{/var,x}/here", "/value/1024/here"),
            ("{;x,y,empty}", ";x=1024;y=768;empty"),
            ("{?x,y,empty}", "?x=1024&y=768&empty="),
            ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
            ("{var:3}", "val"),
            ("{list}", "red,green,blue"),
            ("{/list*}", "/red/green/blue"),
            ("{?list*}", "?list=red&list=green&list=blue"),
            ("{?list}", "?list=red,green,blue"),
        ] {
            let names = UriTemplate::parse(template).unwrap();
            let names = names.variables();
            let given: Map<_, _> = values
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .filter(|(name, _)| names.contains(&name.as_str()))
                .collect();
            assert_eq!(expand(template, given.into()).as_deref(), Ok(uri), "{template}");
        }
    }

    #[test]
    fn templates_of_real_servers_are_filled_in() {
        let github = "repo://{owner}/{repo}/contents{/path*}";
        let file = json!({"owner": "a b", "repo": "r", "path": ["src", "main.rs"]});
        assert_eq!(expand(github, file).unwrap(), "repo://a%20b/r/contents/src/main.rs");
        assert_eq!(
            expand(github, json!({"owner": "a", "repo": "r"})).unwrap(),
            "repo://a/r/contents"
        );
        assert_eq!(
            expand("demo://resource/dynamic/text/{resourceId}", json!({"resourceId": 7})).unwrap(),
            "demo://resource/dynamic/text/7"
        );
        assert_eq!(
            expand("file:///{+path}", json!({"path": "etc/hosts"})).unwrap(),
            "file:///etc/hosts"
        );
        assert_eq!(
            expand("search://x{?q,limit}", json!({"q": "a&b"})).unwrap(),
            "search://x?q=a%26b"
        );
    }

    #[test]
    fn a_name_is_percent_encoded_where_it_is_part_of_the_uri() {
        let template = "search://x{?größe,a%20b}";
        let uri = expand(template, json!({"größe": 1, "a%20b": 2})).unwrap();
        assert_eq!(uri, "search://x?gr%C3%B6%C3%9Fe=1&a%20b=2");
    }

    #[test]
    fn what_is_missing_or_has_no_place_is_named() {
        assert_eq!(
            expand("a://{x}/{y}", json!({"x": 1})),
            Err(TemplateError::Missing("y".into()))
        );
        assert_eq!(
            expand("a://{x}", json!({"x": null})),
            Err(TemplateError::Missing("x".into()))
        );
        assert_eq!(
            expand("a://{x}", json!({"x": 1, "z": 1})),
            Err(TemplateError::Unknown("z".into()))
        );
        assert_eq!(
            expand("a://{x}", json!({"x": {}})),
            Err(TemplateError::BadValue("x".into()))
        );
        assert_eq!(
            expand("a://{x}", json!({"x": "y".repeat(70_000)})),
            Err(TemplateError::TooLong)
        );
    }

    #[test]
    fn what_is_no_template_says_why() {
        for (template, problem) in [
            ("a{b", "not closed"),
            ("a}b", "not opened"),
            ("{}", "no proper name"),
            ("{a b}", "no proper name"),
            ("{=a}", "reserved"),
            ("{a:0}", "below 10000"),
            ("{a:x}", "below 10000"),
        ] {
            let error = UriTemplate::parse(template).unwrap_err().to_string();
            assert!(error.contains(problem), "{template}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_much_for_it(template in ".{0,60}", value in ".{0,60}") {
            if let Ok(template) = UriTemplate::parse(&template) {
                let values = template.variables().into_iter().map(|name| (name.to_owned(), Value::from(value.clone()))).collect();
                let uri = template.expand(&values).unwrap();
                prop_assert!(uri.is_ascii());
            }
        }

        #[test]
        fn a_plain_value_can_never_reach_out_of_its_place(value in ".{0,60}") {
            let uri = expand("a://h/{x}/end", json!({"x": value})).unwrap();
            let inner = uri.strip_prefix("a://h/").and_then(|rest| rest.strip_suffix("/end")).unwrap();
            prop_assert!(!inner.contains(['/', '?', '#', ':', '@']));
        }
    }
}
