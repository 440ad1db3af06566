//! [`Params`]: the params of a message as JSON text, whose fields are found without a tree.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use pegboard_base::json_scan::Scan;
use pegboard_protocol::{RpcError, meta};
use serde::Deserialize;

use super::json_fields::{MAX_DEPTH, fields};

/// The fields whose places are noted when a message is parsed.
const NOTED: [&str; 6] = ["_meta", "name", "arguments", "uri", "requestState", "inputResponses"];
/// The same for `_meta`: what concerns the connection between the client and this server.
const NOTED_META: [&str; 5] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    meta::PROGRESS_TOKEN,
];

/// The params of a message: a JSON object as text, checked when the message was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    json: Bytes,
    noted: [Option<TextRange>; NOTED.len()],
    has_unnoted: bool,
    noted_meta: [Option<TextRange>; NOTED_META.len()],
    has_unnoted_meta: bool,
}

/// Where a value stands in the text of the params. Small, because every message carries several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextRange {
    start: u32,
    end: u32,
}

impl TextRange {
    /// `None` for a text of more than 4 GiB, which no wire accepts.
    fn try_new(range: &Range<usize>) -> Option<Self> {
        Some(Self {
            start: u32::try_from(range.start).ok()?,
            end: u32::try_from(range.end).ok()?,
        })
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Params {
    /// Wraps the text of a JSON object, which must be valid. Refuses one that nests too deep, and one with two fields of a name
    /// that decides where a request goes: parsers differ in which of them they take.
    pub(crate) fn from_text(json: Bytes) -> Result<Self, RpcError> {
        let mut noted = [None; NOTED.len()];
        let (mut all, mut has_unnoted) = (fields(&json), false);
        for field in all.by_ref() {
            let Some(index) = NOTED.iter().position(|key| field.is(key)) else {
                has_unnoted = true;
                continue;
            };
            let place = TextRange::try_new(&field.value).ok_or_else(too_long)?;
            if noted[index].replace(place).is_some() {
                let key = NOTED[index];
                return Err(RpcError::invalid_params(format!(
                    "`params` has the field `{key}` twice"
                )));
            }
        }
        if all.depth() > MAX_DEPTH {
            let message = format!("`params` nests deeper than {MAX_DEPTH} levels");
            return Err(RpcError::invalid_params(message));
        }
        let (noted_meta, has_unnoted_meta) = match noted[0] {
            Some(meta) => note_meta(&json, meta),
            None => Default::default(),
        };
        Ok(Self {
            json,
            noted,
            has_unnoted,
            noted_meta,
            has_unnoted_meta,
        })
    }

    /// Reads params, which stand next in the text of a message. `None` for what [`Params::from_text`] refuses, and for anything that is not valid JSON.
    pub(super) fn read(scan: &mut Scan<'_>, message: &Bytes) -> Option<Self> {
        if scan.peek() != Some(b'{') {
            return None;
        }
        let start = scan.at();
        let mut params = Self::default();
        scan.fields(|scan, key| {
            let index = NOTED.iter().position(|noted| *noted == key);
            let place = match index {
                Some(0) => params.read_meta(scan, start)?,
                Some(_) | None => read_value(scan, start, 2)?,
            };
            match index {
                Some(index) => params.noted[index].replace(place).is_none().then_some(()),
                None => {
                    params.has_unnoted = true;
                    Some(())
                }
            }
        })?;
        params.json = message.slice(start..scan.at());
        Some(params)
    }

    /// Reads `_meta`, and notes its fields. Returns where it stands.
    fn read_meta(&mut self, scan: &mut Scan<'_>, start: usize) -> Option<TextRange> {
        if scan.peek() != Some(b'{') {
            self.has_unnoted_meta = true;
            return read_value(scan, start, 2);
        }
        let meta = scan.at() - start;
        scan.fields(|scan, key| {
            let place = read_value(scan, start, 3)?;
            match NOTED_META.iter().position(|noted| *noted == key) {
                Some(index) => self.noted_meta[index] = self.noted_meta[index].or(Some(place)),
                None => self.has_unnoted_meta = true,
            }
            Some(())
        })?;
        TextRange::try_new(&(meta..scan.at() - start))
    }

    /// The text of the object; `{}` if the message has no params.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Parses the fields that `T` has.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        serde_json::from_slice(&self.json).map_err(|error| RpcError::invalid_params(format!("invalid params: {error}")))
    }

    /// Whether a tool call has other fields than its name, its arguments and `_meta`.
    pub(crate) fn has_others(&self) -> bool {
        let has = |key: &str| self.range(key).is_some();
        self.has_unnoted || has("uri") || has("requestState") || has("inputResponses")
    }

    /// Returns the value of a top-level field as JSON text, a slice of [`Params::json`].
    pub fn field(&self, key: &str) -> Option<Bytes> {
        self.range(key).map(|range| self.json.slice(range))
    }

    /// Returns the value of a top-level field that is a string.
    pub fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        self.range(key).and_then(|range| text(&self.json[range]))
    }

    /// Whether `_meta` has fields that do not concern the connection between the client and this server.
    pub(crate) fn has_other_meta(&self) -> bool {
        self.has_unnoted_meta
    }

    /// Returns the value of a `_meta` field as JSON text. If there are several of this name, the first one.
    pub fn meta(&self, key: &str) -> Option<Bytes> {
        if let Some(index) = NOTED_META.iter().position(|noted| *noted == key) {
            return self.noted_meta[index].map(|place| self.json.slice(place.range()));
        }
        let meta = self.field("_meta")?;
        let range = fields(&meta).find(|field| field.is(key))?.value;
        Some(meta.slice(range))
    }

    fn range(&self, key: &str) -> Option<Range<usize>> {
        match NOTED.iter().position(|noted| *noted == key) {
            Some(index) => self.noted[index].map(TextRange::range),
            None => fields(&self.json).find(|field| field.is(key)).map(|field| field.value),
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            json: Bytes::from_static(b"{}"),
            noted: Default::default(),
            has_unnoted: false,
            noted_meta: Default::default(),
            has_unnoted_meta: false,
        }
    }
}

/// Skips a value at nesting depth `depth` of the message. Returns where it stands in params that begin at `start`.
fn read_value(scan: &mut Scan<'_>, start: usize, depth: usize) -> Option<TextRange> {
    scan.peek();
    let value = scan.at();
    scan.skip_checked(depth)?;
    TextRange::try_new(&(value - start..scan.at() - start))
}

/// Notes the fields of `_meta`. Returns their places, and whether there are others.
fn note_meta(json: &[u8], meta: TextRange) -> ([Option<TextRange>; NOTED_META.len()], bool) {
    let text = &json[meta.range()];
    let mut noted = [None; NOTED_META.len()];
    // What is no object must be refused where it is read.
    let mut has_unnoted = !text.starts_with(b"{");
    for field in fields(text) {
        let Some(index) = NOTED_META.iter().position(|key| field.is(key)) else {
            has_unnoted = true;
            continue;
        };
        let start = meta.range().start;
        let place = TextRange::try_new(&(start + field.value.start..start + field.value.end));
        noted[index] = noted[index].or(place);
    }
    (noted, has_unnoted)
}

fn too_long() -> RpcError {
    RpcError::invalid_params("`params` is longer than 4 GiB")
}

/// The string that a JSON text is.
pub(super) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        serde_json::from_slice(json).ok().map(Cow::Owned)
    } else {
        std::str::from_utf8(inner).ok().map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_protocol::code;

    fn params(json: &str) -> Result<Params, RpcError> {
        Params::from_text(Bytes::copy_from_slice(json.as_bytes()))
    }

    #[test]
    fn fields_are_slices_of_the_text() {
        let params = params(r#"{"name":"a\"b","arguments":{"x":[1]},"other":7,"_meta":{"progressToken":3}}"#).unwrap();
        assert_eq!(params.text("name").as_deref(), Some("a\"b"));
        let arguments = params.field("arguments").unwrap();
        assert_eq!(arguments, r#"{"x":[1]}"#);
        assert_eq!(params.json().slice_ref(&arguments), arguments, "not copied");
        assert_eq!(params.field("other").unwrap(), "7");
        assert_eq!(params.meta("progressToken").unwrap(), "3");
        assert_eq!(params.meta("none"), None);
        assert_eq!(params.text("arguments"), None);
    }

    #[test]
    fn a_field_that_decides_must_be_single() {
        for json in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"_meta":{},"x":1,"_meta":{}}"#,
            r#"{"requestState":"a","requestState":"a"}"#,
        ] {
            assert_eq!(params(json).unwrap_err().code, code::INVALID_PARAMS, "{json}");
        }
        params(r#"{"other":1,"other":2}"#).unwrap();
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        params(&nested(MAX_DEPTH - 1)).unwrap();
        assert!(params(&nested(MAX_DEPTH)).unwrap_err().message.contains("128"));
        params(&nested(1_000_000)).unwrap_err();
    }
}
