//! Removes secrets and invisible characters from a result that is passed on as bytes.

use serde_json::{Map, Value};

use super::{
    content::Content,
    forwarded_result::{ForwardedResult, ResultKind},
    mask::{mask_answer, mask_block},
    sanitize,
};
use crate::{args::has_duplicate_keys, catalog::sanitize::has_invisible};
use pegboard_base::json_scan::Scan;
use pegboard_mask::{Carried, Counts, DecodedJson, Masker};

/// A field that the server wants back unchanged. It is opaque to everyone else.
const STATE: &str = "requestState";

impl ForwardedResult {
    /// The content blocks, for the text of an error.
    #[doc(hidden)]
    pub fn content(&self) -> Vec<Content> {
        Parts::parse(&self.json)
            .and_then(|parts| parts.content)
            .unwrap_or_default()
    }

    /// Masks the secrets in it and removes invisible characters if `sanitizes` is set. A result without any stays the same bytes. Fails if it
    /// cannot be parsed, which is necessary only if it may have some.
    #[doc(hidden)]
    pub fn mask(&mut self, masker: &Masker, sanitizes: bool, counts: &mut Counts) -> Result<(), Unmasked> {
        let decoded = DecodedJson::new(&self.json, masker).ok_or(Unmasked)?;
        if (!sanitizes || decoded.has_none(has_invisible)) && masker.is_surely_clean_json(&decoded) {
            return Ok(());
        }
        drop(decoded);
        if let Some(masked) = mask_result(self, masker, sanitizes, counts)? {
            self.json = masked.into();
        }
        Ok(())
    }
}

/// A result cannot be parsed, so its secrets cannot be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmasked;

/// Masks a result by its parts. Returns `None` if it stays the same.
fn mask_result(
    result: &ForwardedResult,
    masker: &Masker,
    sanitizes: bool,
    counts: &mut Counts,
) -> Result<Option<Vec<u8>>, Unmasked> {
    let mut parts = Parts::parse(&result.json).ok_or(Unmasked)?;
    let asks = result.kind == ResultKind::InputRequired;
    let state = asks.then(|| parts.rest.remove(STATE)).flatten();
    // Sanitized first: an invisible character inside a secret would hide it from the masker.
    let is_sanitized = sanitizes && parts.has_invisible();
    if is_sanitized {
        parts.sanitize();
    }
    let before = counts.total();
    parts.mask(masker, asks, counts);
    // Of a key that stands twice only the last value was masked, and only that one is written.
    if !is_sanitized && counts.total() == before && !has_duplicate_keys(&result.json) {
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

    /// Masks all parts. The pages that a result sends users to keep their addresses if it `asks` for input.
    fn mask(&mut self, masker: &Masker, asks: bool, counts: &mut Counts) {
        if let Some(content) = &mut self.content {
            mask_answer(content, &mut None, &mut None, masker, counts);
        }
        let urls = if asks { take_urls(&mut self.rest) } else { Vec::new() };
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
        masker.without_patterns().mask_value(&mut url, counts);
        let request = rest
            .get_mut("inputRequests")
            .and_then(|requests| requests.get_mut(&key));
        if let Some(params) = request.and_then(|request| request.get_mut("params")) {
            params["url"] = url;
        }
    }
}

#[cfg(test)]
mod tests;
