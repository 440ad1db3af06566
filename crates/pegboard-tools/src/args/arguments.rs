//! The arguments of a call as a JSON object in text form.

use std::{fmt, sync::LazyLock};

use serde_json::{Map, Value, value::RawValue};

use super::error::ArgumentsError;

/// The arguments of a call: a JSON object, kept as text.
#[derive(Clone, Default)]
pub struct Arguments(
    /// `None` is the empty object.
    Option<Box<RawValue>>,
);

static EMPTY: LazyLock<Arguments> = LazyLock::new(|| Map::new().into());

impl Arguments {
    /// Wraps an object and puts it on one line. Some transports frame messages by line breaks; valid JSON has raw line breaks only
    /// between tokens, so a space can replace each.
    pub(super) fn new(object: Box<RawValue>) -> Self {
        if memchr::memchr2(b'\n', b'\r', object.get().as_bytes()).is_none() {
            return Self(Some(object));
        }
        let line = object.get().replace(['\n', '\r'], " ");
        Self(RawValue::from_string(line).ok())
    }

    /// The object as the text that is sent.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("{}", |object| object.get())
    }

    /// The object as unparsed JSON.
    #[doc(hidden)]
    pub fn as_raw(&self) -> &RawValue {
        self.0.as_deref().or(EMPTY.0.as_deref()).unwrap_or(RawValue::NULL)
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arguments").field(&self.as_raw()).finish()
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(arguments: Map<String, Value>) -> Self {
        let text = Value::Object(arguments).to_string();
        // serde_json parses its own output.
        Self(RawValue::from_string(text).ok())
    }
}

/// Takes the text over without parsing it.
impl TryFrom<Box<RawValue>> for Arguments {
    type Error = ArgumentsError;

    fn try_from(object: Box<RawValue>) -> Result<Self, ArgumentsError> {
        match object.get().as_bytes().first() {
            Some(b'{') => Ok(Self::new(object)),
            Some(b'n') => Ok(Self::default()),
            _ => Err(ArgumentsError::NotAnObject),
        }
    }
}

/// Copies the text without parsing it.
impl TryFrom<&RawValue> for Arguments {
    type Error = ArgumentsError;

    fn try_from(object: &RawValue) -> Result<Self, ArgumentsError> {
        object.to_owned().try_into()
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
