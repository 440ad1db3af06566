//! Scans definitions for text that tries to instruct the model: tool poisoning.
//!
//! A scanner cannot find every attack, and does not replace pins or approval. It finds what published attacks have in common: instructions
//! that override others or must be kept from the user, requests for secrets, text that people do not see, and encoded text.

mod encoded;
mod finding;
mod normalize;
mod rules;
mod severity;

pub use finding::Finding;
pub use severity::FindingSeverity;

use serde_json::Value;

use super::{
    Prompt,
    removed_text::{self, Invisible, RemovedText},
    sanitize::MAX_DESCRIPTION,
    tool::Tool,
};
use rules::Rule;

/// The most findings for one definition; more would not help a person.
const MAX_FINDINGS: usize = 16;
/// The longest text of a definition that is searched, in bytes. Texts are cut at less; only instructions can be longer.
const MAX_TEXT: usize = 64 << 10;

impl Tool {
    /// What looks like an attack on the model in its definition: in its name, title, description, annotations, and every text of its schemas.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = findings_in_heading(&self.name, self.title.as_deref(), self.description.as_deref());
        if self
            .description
            .as_ref()
            .is_some_and(|text| text.len() + 8 > MAX_DESCRIPTION)
        {
            found.push(Finding::new(
                Rule::LENGTH,
                "description",
                "it is longer than any that we show",
            ));
        }
        scan_json("inputSchema", self.input_schema.as_str(), &mut found);
        if let Some(schema) = &self.output_schema {
            scan_json("outputSchema", schema.as_str(), &mut found);
        }
        if let Some(annotations) = &self.annotations {
            annotations
                .iter()
                .for_each(|(key, value)| scan_value(&format!("annotations.{key}"), value, &mut found));
        }
        if let Some(more) = &self.more {
            scan_json("_meta", more, &mut found);
        }
        self.removed.iter().for_each(|removed| add_removed(removed, &mut found));
        found.truncate(MAX_FINDINGS);
        found
    }
}

/// What looks like an attack in the name, title and description of a definition.
fn findings_in_heading(name: &str, title: Option<&str>, description: Option<&str>) -> Vec<Finding> {
    let mut found = Vec::new();
    check_name(name, &mut found);
    scan("name", name, &mut found);
    for (at, text) in [("title", title), ("description", description)] {
        if let Some(text) = text {
            scan(at, text, &mut found);
        }
    }
    found
}

impl Prompt {
    /// What looks like an attack on the model in its definition.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = findings_in_heading(&self.name, self.title.as_deref(), self.description.as_deref());
        self.arguments
            .iter()
            .for_each(|argument| scan_value("arguments", argument, &mut found));
        found.truncate(MAX_FINDINGS);
        found
    }
}

/// Scans one text of a server, such as its instructions.
pub fn scan_text(at: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    scan(at, text, &mut found);
    found.truncate(MAX_FINDINGS);
    found
}

/// Scans every text of a JSON document: keys and values. Most documents have nothing suspicious and are not parsed.
fn scan_json(at: &str, json: &str, found: &mut Vec<Finding>) {
    if rules::may_match(json) {
        let tree: Value = serde_json::from_str(json).unwrap_or_default();
        scan_value(at, &tree, found);
    }
}

fn scan_value(at: &str, value: &Value, found: &mut Vec<Finding>) {
    if found.len() >= MAX_FINDINGS {
        return;
    }
    match value {
        Value::String(text) => scan(at, text, found),
        Value::Array(items) => items.iter().for_each(|item| scan_value(at, item, found)),
        // The JSON reader limits the depth.
        Value::Object(fields) => {
            for (key, value) in fields {
                scan(at, key, found);
                scan_value(&format!("{at}.{key}"), value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn scan(at: &str, text: &str, found: &mut Vec<Finding>) {
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    if found.len() >= MAX_FINDINGS || !rules::may_match(text) {
        return;
    }
    if let Some(removed) = removed_text::find_in_text(at, text) {
        add_removed(&removed, found);
    }
    if normalize::has_padding(text) {
        found.push(Finding::new(
            Rule::PADDING,
            at,
            "text behind many blank lines or spaces",
        ));
    }
    let plain = normalize::normalize(text);
    if encoded::is_spelled_out(&plain) {
        found.push(Finding::new(Rule::SPELLED, at, &plain));
    }
    rules::matches(&plain, |rule, excerpt| found.push(Finding::new(rule, at, excerpt)));
    for hidden in encoded::hidden_texts(text) {
        let before = found.len();
        let inner = normalize::normalize(&hidden);
        rules::matches(&inner, |_, excerpt| {
            found.push(Finding::new(Rule::ENCODED_INSTRUCTION, at, excerpt))
        });
        if found.len() == before {
            found.push(Finding::new(Rule::ENCODED, at, &inner));
        }
    }
}

fn add_removed(removed: &RemovedText, found: &mut Vec<Finding>) {
    let (rule, excerpt) = match removed.kind {
        Invisible::Tags => (Rule::TAGS, removed.message.as_str()),
        Invisible::Direction => (Rule::DIRECTION, "characters that change the direction of text"),
        Invisible::Control => (Rule::CONTROL, "escape sequences or control characters"),
        Invisible::ZeroWidth => (Rule::ZERO_WIDTH, "characters without width"),
    };
    found.push(Finding::new(rule, &removed.at, excerpt));
}

/// A name that is a sentence is text for the model.
fn check_name(name: &str, found: &mut Vec<Finding>) {
    if name.split_whitespace().count() > 4 {
        found.push(Finding::new(Rule::NAME, "name", name));
    }
}

#[cfg(test)]
mod tests;
