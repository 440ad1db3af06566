//! [`ForwardedResult`]: the result of a request as bytes, and how secrets and invisible characters are removed from it.

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{
    content::Content,
    mask::{mask_answer, mask_block},
    sanitize,
};
use crate::{
    catalog::sanitize::has_invisible,
    json_scan::Scan,
    mask::{Carried, Counts, DecodedJson, Masker},
};

/// A field that the server wants back unchanged. It is opaque to everyone else.
const STATE: &str = "requestState";

/// The `result` of a response: a JSON object as the server wrote it, except that secrets are masked and, unless the server is trusted,
/// invisible characters are removed.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardedResult {
    pub(crate) json: Bytes,
    pub(crate) kind: ResultKind,
    pub(crate) has_result_type: bool,
    pub(crate) is_error: bool,
    /// The size of the payload in bytes.
    pub(crate) payload: usize,
}

/// What a result is, by its `resultType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ResultKind {
    /// The final result of the request.
    #[default]
    Complete,
    /// A request for input. The same request is sent again with the input in `inputResponses` and the `requestState` of this result.
    InputRequired,
    /// A task that the server runs in the background.
    Task,
    /// A result of another type, which an extension of the protocol defines.
    Other,
}

impl ForwardedResult {
    /// The JSON object. It may have line breaks between its tokens.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the JSON object. A long one is a part of the server's message, and holds the message's share of the board's memory budget until
    /// it is dropped.
    pub fn into_bytes(self) -> Bytes {
        self.json
    }

    /// What the result is.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Whether the object has the field `resultType`, as servers of the newest era write it.
    pub fn has_result_type(&self) -> bool {
        self.has_result_type
    }

    /// Whether it is the result of a tool that failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Creates a final result from the text of an object.
    pub(crate) fn written(json: String, is_error: bool) -> Self {
        Self {
            payload: json.len(),
            json: json.into(),
            kind: ResultKind::Complete,
            has_result_type: false,
            is_error,
        }
    }

    /// The content blocks, for the text of an error.
    pub(crate) fn content(&self) -> Vec<Content> {
        Parts::parse(&self.json)
            .and_then(|parts| parts.content)
            .unwrap_or_default()
    }

    /// Masks the secrets in it and removes invisible characters if `sanitizes` is set. A result without any stays the same bytes. Fails if it
    /// cannot be parsed, which is necessary only if it may have some.
    pub(crate) fn mask(&mut self, masker: &Masker, sanitizes: bool, counts: &mut Counts) -> Result<(), Unmasked> {
        let json = str::from_utf8(&self.json).map_err(|_| Unmasked)?;
        let decoded = DecodedJson::new(json);
        if (!sanitizes || decoded.has_none(has_invisible)) && masker.is_surely_clean_json(&decoded) {
            return Ok(());
        }
        drop(decoded);
        if let Some(masked) = masked(&self.json, masker, sanitizes, counts)? {
            self.json = masked.into();
        }
        Ok(())
    }
}

/// A result cannot be parsed, so its secrets cannot be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unmasked;

/// Masks a result by its parts. Returns `None` if it stays the same.
fn masked(json: &[u8], masker: &Masker, sanitizes: bool, counts: &mut Counts) -> Result<Option<Vec<u8>>, Unmasked> {
    let mut parts = Parts::parse(json).ok_or(Unmasked)?;
    let state = parts.rest.remove(STATE);
    // Sanitized first: an invisible character inside a secret would hide it from the masker.
    let is_sanitized = sanitizes && parts.has_invisible();
    if is_sanitized {
        parts.sanitize();
    }
    let before = counts.total();
    parts.mask(masker, counts);
    if !is_sanitized && counts.total() == before {
        return Ok(None);
    }
    if let Some(state) = state {
        parts.rest.insert(STATE.to_owned(), state);
    }
    parts.write().map(Some)
}

/// The parts of a result that are masked differently.
struct Parts {
    /// The content blocks of a tool's result.
    content: Option<Vec<Content>>,
    rest: Map<String, Value>,
}

impl Parts {
    /// Parses a result. Long texts of content blocks are copied once.
    fn parse(json: &[u8]) -> Option<Self> {
        let (mut content, mut rest) = (None, Map::new());
        let mut scan = Scan::new(json);
        let fast = scan.fields(|scan, key| {
            if key == "content" && scan.peek() == Some(b'[') {
                let mut blocks = Vec::new();
                scan.items(|scan| {
                    blocks.push(Content::read_plain(scan, 2)?);
                    Some(())
                })?;
                return content.replace(blocks).is_none().then_some(());
            }
            rest.insert(key.to_owned(), scan.value(1)?).is_none().then_some(())
        });
        if fast.is_some() && scan.is_at_end() {
            return Some(Self { content, rest });
        }
        let Ok(Value::Object(mut rest)) = serde_json::from_slice(json) else {
            return None;
        };
        let blocks = rest.get("content").filter(|content| content.is_array()).cloned();
        let content = blocks.and_then(|blocks| serde_json::from_value(blocks).ok());
        if content.is_some() {
            rest.remove("content");
        }
        Some(Self { content, rest })
    }

    fn has_invisible(&self) -> bool {
        let in_content = |content: &Vec<Content>| content.iter().any(sanitize::has_invisible_block);
        self.content.as_ref().is_some_and(in_content) || sanitize::has_invisible_map(&self.rest)
    }

    fn sanitize(&mut self) {
        self.content.iter_mut().flatten().for_each(sanitize::sanitize_block);
        sanitize::sanitize_map(&mut self.rest);
    }

    fn mask(&mut self, masker: &Masker, counts: &mut Counts) {
        if let Some(content) = &mut self.content {
            mask_answer(content, &mut None, &mut None, masker, counts);
        }
        let urls = take_urls(&mut self.rest);
        if let Some(Value::Array(messages)) = self.rest.get_mut("messages") {
            mask_messages(messages, masker, counts);
        }
        masker.mask_map(&mut self.rest, counts);
        put_urls(&mut self.rest, urls, masker, counts);
    }

    fn write(&self) -> Result<Vec<u8>, Unmasked> {
        let mut out = Vec::new();
        out.push(b'{');
        if let Some(content) = &self.content {
            out.extend_from_slice(b"\"content\":");
            serde_json::to_writer(&mut out, content).map_err(|_| Unmasked)?;
        }
        for (key, value) in &self.rest {
            if out.len() > 1 {
                out.push(b',');
            }
            serde_json::to_writer(&mut out, key).map_err(|_| Unmasked)?;
            out.push(b':');
            serde_json::to_writer(&mut out, value).map_err(|_| Unmasked)?;
        }
        out.push(b'}');
        Ok(out)
    }
}

/// Masks the content of a prompt's messages. A private key may be spread over several of them.
fn mask_messages(messages: &mut [Value], masker: &Masker, counts: &mut Counts) {
    let mut carried = Carried::default();
    for message in messages {
        let Some(content) = message.get_mut("content").filter(|content| content.is_object()) else {
            continue;
        };
        if let Ok(mut block) = serde_json::from_value::<Content>(content.clone()) {
            let before = counts.total();
            mask_block(&mut block, masker, &mut carried, counts);
            if counts.total() > before {
                *content = serde_json::to_value(&block).unwrap_or_default();
            }
        }
    }
}

/// Takes the pages that users are sent to out of the input requests, by the key of the request. A pattern match would break their URLs.
fn take_urls(rest: &mut Map<String, Value>) -> Vec<(String, Value)> {
    let Some(Value::Object(requests)) = rest.get_mut("inputRequests") else {
        return Vec::new();
    };
    let url = |(key, request): (&String, &mut Value)| {
        let url = request.get_mut("params")?.get_mut("url")?;
        Some((key.clone(), url.take()))
    };
    requests.iter_mut().filter_map(url).collect()
}

/// Puts the pages back, with the known secrets in their URLs masked.
fn put_urls(rest: &mut Map<String, Value>, urls: Vec<(String, Value)>, masker: &Masker, counts: &mut Counts) {
    for (key, mut url) in urls {
        masker.known_only().mask_value(&mut url, counts);
        let request = rest
            .get_mut("inputRequests")
            .and_then(|requests| requests.get_mut(&key));
        if let Some(params) = request.and_then(|request| request.get_mut("params")) {
            params["url"] = url;
        }
    }
}

impl fmt::Debug for ForwardedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardedResult")
            .field("bytes", &self.json.len())
            .field("kind", &self.kind)
            .field("has_result_type", &self.has_result_type)
            .field("is_error", &self.is_error)
            .finish()
    }
}

#[cfg(test)]
mod tests;
