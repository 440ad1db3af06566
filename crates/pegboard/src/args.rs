//! A call's arguments: from a model's text to one JSON object that fits the tool, kept as the text it will be sent as.
//!
//! Reading (`json`, `repair`, `yaml`, `key_value`, `pairs`) makes an object of a text; checking (`check`, `fit`) compares the object with the
//! tool's schema and changes types where that is wanted. Both say what they did.

mod coerce;
mod command_line;
mod json;
mod key_value;
mod node;
mod problem;
mod raw_fields;
mod repair;
mod scalar;
mod schema;
mod typed_value;
mod validate;
mod validation_cost;
mod yaml;

pub(crate) use raw_fields::RawFields;
pub(crate) use schema::in_short;
pub(crate) use validate::Checker;

use serde_json::{Map, Value, value::RawValue};

use crate::config::Reading;
use node::Node;
use schema::Shape;

/// The longest text that is read. No server takes more by default.
const MAX_BYTES: usize = 16 << 20;
/// How many unknown arguments are named.
const MAX_UNKNOWN: usize = 10;
/// The most pairs in one text or map that is not plain JSON.
const MAX_PAIRS: usize = 1000;
/// The argument that a text becomes which is nothing else.
const INPUT: &str = "input";

/// The arguments of a call: a JSON object, kept as text.
#[derive(Debug, Clone)]
pub struct Arguments(Box<RawValue>);

impl Arguments {
    /// Reads a JSON object. An empty text is an empty object.
    pub fn parse(text: &str) -> Result<Self, ArgumentsError> {
        bounded(text)?;
        json::object(text)
    }

    /// Reads what a model wrote, in the given way. The schema is the tool's; only [`Reading::Guided`] looks at it.
    ///
    /// ```
    /// use pegboard::{Arguments, Reading};
    ///
    /// let schema = serde_json::json!({"properties": {
    ///     "tags": {"type": "array", "items": {"type": "string"}},
    ///     "name": {"type": "string"},
    /// }});
    /// let read = Arguments::read("tags: a,b,c, name: 5", Reading::Guided, &schema)?;
    /// assert_eq!(read.arguments.as_str(), r#"{"tags":["a","b","c"],"name":"5"}"#);
    /// # Ok::<(), pegboard::ArgumentsError>(())
    /// ```
    pub fn read(text: &str, reading: Reading, schema: &Value) -> Result<ReadArguments, ArgumentsError> {
        bounded(text)?;
        match reading {
            Reading::Json => json::object(text).map(ReadArguments::from),
            Reading::Repair => json::object(text)
                .map(ReadArguments::from)
                .or_else(|error| repaired(text).ok_or(error)),
            Reading::Cascade => Ok(cascade(text)),
            Reading::Guided => Ok(guided(text, Shape::new(schema))),
        }
    }

    /// Reads `key=value` pairs as a person types them. A value becomes what the schema declares; where nothing is declared it is JSON if it
    /// can be, and else a text.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        schema: &Value,
    ) -> Result<Self, ArgumentsError> {
        command_line::read(pairs, Shape::new(schema))
    }

    /// A sentence for each argument that the schema does not know, with the name that it most likely misspells. There are none for a schema
    /// that says nothing about names, or that says that it takes others.
    pub fn unknown(&self, schema: &Value) -> Vec<String> {
        let shape = Shape::new(schema);
        let (true, Ok(given)) = (shape.is_closed(), self.by_name()) else {
            return Vec::new();
        };
        let unknown = given.keys().filter(|name| !shape.knows(name));
        let sentence = |name: &String| {
            let start = format!("the tool declares no argument `{}`", schema::plain(name));
            match shape.nearest(name) {
                Some(near) => format!("{start}; did you mean `{}`?", schema::plain(near)),
                None => start,
            }
        };
        unknown.take(MAX_UNKNOWN).map(sentence).collect()
    }

    /// The object on one line. Messages are lines on some wires, so a line break in the text would end one and begin another; in JSON it can
    /// only stand between values.
    fn new(object: Box<RawValue>) -> Self {
        if memchr::memchr2(b'\n', b'\r', object.get().as_bytes()).is_none() {
            return Self(object);
        }
        let line = object.get().replace(['\n', '\r'], " ");
        RawValue::from_string(line).map_or_else(|_| Self::default(), Self)
    }

    /// The object as the text that is sent.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// The arguments by name. A name that stands twice, at any depth, is refused: nobody knows which one the server reads.
    pub(crate) fn by_name(&self) -> Result<Map<String, Value>, String> {
        match json::value(self)? {
            Value::Object(map) => Ok(map),
            _ => Err("the arguments are no object".to_owned()),
        }
    }
}

fn bounded(text: &str) -> Result<(), ArgumentsError> {
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
    /// What had to be mended or guessed, in words.
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

/// JSON object, other JSON, nested YAML, pairs, text: the first that fits.
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
    let structured = yaml::nested(text).or_else(|| key_value::read(text));
    structured
        .unwrap_or_else(|| Node::field(INPUT, Node::Text(text.to_owned())))
        .into()
}

/// The same with the tool's schema at hand: slips are mended, pairs are understood as they are declared, and a single value goes to the
/// argument that wants it.
fn guided(text: &str, shape: Shape<'_>) -> ReadArguments {
    let text = text.trim();
    let alone = |value: Option<Node>| {
        let name = shape.only().filter(|_| !shape.knows(INPUT)).unwrap_or(INPUT);
        let declared = shape.property(name);
        let value = value.unwrap_or_else(|| match declared {
            Some(declared) => typed_value::unquoted_value(text, declared),
            None => Node::Text(text.to_owned()),
        });
        let notes = vec![format!("the text was taken as the argument `{}`", schema::plain(name))];
        ReadArguments {
            arguments: Node::field(name, value).into_arguments(),
            notes,
        }
    };
    match json::object(text) {
        Ok(arguments) => return arguments.into(),
        Err(ArgumentsError::NotAnObject) => return alone(Node::json(text)),
        Err(_) => {}
    }
    if let Some(read) = repaired(text) {
        return read;
    }
    let structured = yaml::nested(text).or_else(|| key_value::guided(text, shape));
    structured.map_or_else(|| alone(None), ReadArguments::from)
}

fn repaired(text: &str) -> Option<ReadArguments> {
    let (node, mended) = repair::object(text)?;
    let notes = vec![format!("the arguments were mended: {}", mended.join(", "))];
    Some(ReadArguments {
        arguments: node.into_arguments(),
        notes,
    })
}

impl Default for Arguments {
    fn default() -> Self {
        Map::new().into()
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(arguments: Map<String, Value>) -> Self {
        let text = Value::Object(arguments).to_string();
        // What serde_json wrote, it can read.
        Self(RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl TryFrom<Value> for Arguments {
    type Error = ArgumentsError;

    fn try_from(value: Value) -> Result<Self, ArgumentsError> {
        match value {
            Value::Object(arguments) => Ok(arguments.into()),
            Value::Null => Ok(Self::default()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(ArgumentsError::NotAnObject),
        }
    }
}

/// Why a text cannot be the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// It is not JSON.
    #[error("the arguments are not JSON: {problem} (line {line}, column {column})")]
    NotJson {
        /// Where, counted from one.
        line: usize,
        /// Where in that line.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// It is JSON, but no object.
    #[error("the arguments must be a JSON object, such as {{\"key\": \"value\"}}")]
    NotAnObject,
    /// An argument was given twice.
    #[error("the argument `{0}` is given twice")]
    Twice(String),
    /// A pair gives an item of a list without the items before it.
    #[error("the argument `{0}` leaves out items of its list; number them 0, 1, 2 in order")]
    Gap(String),
    /// It is too long.
    #[error("the arguments have {bytes} bytes, and {limit} are allowed")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
}

#[cfg(test)]
mod tests;
