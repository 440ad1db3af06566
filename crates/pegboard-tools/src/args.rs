//! Reads a call's arguments from a model's text, and validates them against the tool's schema.
//!
//! Readers (`json`, `repair`, `yaml`, `key_value`, `command_line`) parse a text into one JSON object. `validate` checks that object against
//! the tool's input schema, and `coerce` converts values of the wrong type where the mode allows it. Both report what they changed as notes.

mod arguments;
mod checked;
#[cfg(feature = "validation")]
mod coerce;
mod comma_split;
mod command_line;
mod compiled_schemas;
mod duplicate_keys;
mod error;
mod json;
mod key_value;
mod node;
#[cfg(feature = "validation")]
mod plain_schema;
#[cfg(feature = "validation")]
mod problem;
mod raw_fields;
mod repair;
mod scalar;
mod schema;
#[cfg(feature = "validation")]
mod schema_check;
mod stored;
mod typed_value;
#[cfg(not(feature = "validation"))]
mod unchecked_schema;
mod validate;
#[cfg(feature = "validation")]
mod validation_cost;
#[cfg(feature = "yaml")]
mod yaml;

pub use arguments::Arguments;
pub use compiled_schemas::CompiledSchemas;
pub(crate) use duplicate_keys::has_duplicate_keys;
pub use error::ArgumentsError;
pub use raw_fields::RawFields;
pub use schema::signature;
pub(crate) use stored::unique_keys;
#[doc(hidden)]
pub use validate::LazyValidator;

use serde_json::{Map, Value};

use node::Node;
use pegboard_config::Reading;
use schema::Subschema;

/// The longest text that is read, in bytes. The default limit for a message to a server is not larger.
const MAX_BYTES: usize = 16 << 20;
/// The most unknown arguments that are reported.
const MAX_UNKNOWN: usize = 10;
/// The argument that gets a text which no reader can parse into arguments.
const INPUT: &str = "input";

impl Arguments {
    /// Reads a JSON object. An empty text is an empty object.
    pub fn parse(text: &str) -> Result<Self, ArgumentsError> {
        check_length(text)?;
        json::object(text)
    }

    /// Reads a model's text in the given way. `schema` is the tool's input schema; only [`Reading::Guided`] uses it.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
    /// use pegboard::{Arguments, config::Reading};
    ///
    /// let schema = serde_json::json!({"properties": {
    ///     "tags": {"type": "array", "items": {"type": "string"}},
    ///     "name": {"type": "string"},
    /// }});
    /// let read = Arguments::read("tags: a,b,c, name: 5", Reading::Guided, &schema)?;
    /// assert_eq!(read.arguments.as_str(), r#"{"tags":["a","b","c"],"name":"5"}"#);
    /// # Ok::<(), pegboard::args::ArgumentsError>(())
    /// ```
    pub fn read(text: &str, reading: Reading, schema: &Value) -> Result<ReadArguments, ArgumentsError> {
        check_length(text)?;
        match reading {
            Reading::Json => json::object(text).map(ReadArguments::from),
            Reading::Repair => json::object(text)
                .map(ReadArguments::from)
                .or_else(|error| repair(text).ok_or(error)),
            Reading::Cascade => Ok(cascade(text)),
            Reading::Guided => Ok(parse_guided(text, Subschema::root(schema))),
        }
    }

    /// Reads `key=value` pairs from a command line. A value is read as the type that the schema declares; a value without a declared type is
    /// read as JSON if it parses, and else as a string.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        schema: &Value,
    ) -> Result<Self, ArgumentsError> {
        command_line::read(pairs, Subschema::root(schema))
    }

    /// Returns a sentence for each argument that the schema does not declare, with the declared name that it most likely misspells. The list
    /// is empty if the schema declares no properties or allows additional ones.
    pub fn unknown(&self, schema: &Value) -> Vec<String> {
        let subschema = Subschema::root(schema);
        let (true, Ok(given)) = (subschema.is_closed(), self.by_name()) else {
            return Vec::new();
        };
        let unknown = given.keys().filter(|name| !subschema.declares(name));
        let sentence = |name: &String| {
            let start = format!("the tool declares no argument `{}`", schema::display_name(name));
            match subschema.nearest_not_in(name, &given) {
                Some(near) => format!("{start}; did you mean `{}`?", schema::display_name(near)),
                None => start,
            }
        };
        unknown.take(MAX_UNKNOWN).map(sentence).collect()
    }

    /// Parses the arguments into a map. Fails on a duplicate key at any depth: which of its values the server would read is not defined.
    #[doc(hidden)]
    pub fn by_name(&self) -> Result<Map<String, Value>, String> {
        match json::value(self)? {
            Value::Object(map) => Ok(map),
            _ => Err("the arguments are no object".to_owned()),
        }
    }
}

fn check_length(text: &str) -> Result<(), ArgumentsError> {
    if text.len() > MAX_BYTES {
        return Err(ArgumentsError::TooLong {
            bytes: text.len(),
            limit: MAX_BYTES,
        });
    }
    Ok(())
}

/// Arguments that were read from a text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadArguments {
    /// The arguments.
    pub arguments: Arguments,
    /// What was repaired or guessed, one sentence each.
    pub notes: Vec<String>,
}

impl From<Arguments> for ReadArguments {
    fn from(arguments: Arguments) -> Self {
        Self {
            arguments,
            notes: Vec::new(),
        }
    }
}

impl From<Node> for ReadArguments {
    fn from(node: Node) -> Self {
        node.into_arguments().into()
    }
}

/// Reads YAML in which something is nested.
#[cfg(feature = "yaml")]
use yaml::parse_nested as nested_yaml;

/// Without YAML, other forms are tried.
#[cfg(not(feature = "yaml"))]
fn nested_yaml(_text: &str) -> Option<Node> {
    None
}

/// Reads the text in the first of these forms in which it parses: JSON object, other JSON, nested YAML, `key: value` pairs, plain text.
fn cascade(text: &str) -> ReadArguments {
    let text = text.trim();
    match json::object(text) {
        Ok(arguments) => return arguments.into(),
        Err(ArgumentsError::NotAnObject) => {
            let value = Node::json(text).unwrap_or_else(|| Node::Text(text.to_owned()));
            return Node::field(INPUT, value).into();
        }
        Err(_) => {}
    }
    let structured = nested_yaml(text).or_else(|| key_value::read(text));
    structured
        .unwrap_or_else(|| Node::field(INPUT, Node::Text(text.to_owned())))
        .into()
}

/// Like [`cascade`], guided by the tool's schema: repairs broken JSON, reads pairs by their declared types, and assigns a single value to
/// the only argument that it can be meant for.
fn parse_guided(text: &str, subschema: Subschema<'_>) -> ReadArguments {
    let text = text.trim();
    let single = |value: Option<Node>| {
        let name = subschema
            .sole_argument()
            .filter(|_| !subschema.declares(INPUT))
            .unwrap_or(INPUT);
        let declared = subschema.property(name);
        let value = value.unwrap_or_else(|| match declared {
            Some(declared) => typed_value::read_possibly_quoted(text, declared),
            None => Node::Text(text.to_owned()),
        });
        let notes = vec![format!(
            "the text was taken as the argument `{}`",
            schema::display_name(name)
        )];
        ReadArguments {
            arguments: Node::field(name, value).into_arguments(),
            notes,
        }
    };
    match json::object(text) {
        Ok(arguments) => return arguments.into(),
        Err(ArgumentsError::NotAnObject) => return single(Node::json(text)),
        Err(_) => {}
    }
    if let Some(read) = repair(text) {
        return read;
    }
    let structured = nested_yaml(text).or_else(|| key_value::parse_guided(text, subschema));
    structured.map_or_else(|| single(None), ReadArguments::from)
}

fn repair(text: &str) -> Option<ReadArguments> {
    let (node, repairs) = repair::object(text)?;
    let notes = vec![format!("the arguments were mended: {}", repairs.join(", "))];
    Some(ReadArguments {
        arguments: node.into_arguments(),
        notes,
    })
}

#[cfg(test)]
mod tests;
