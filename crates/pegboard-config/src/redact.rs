//! Renders settings as JSON, as written, with secrets redacted.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::{
    field::DefaultValue,
    secret_detection,
    setting::{Setting, Text, Values},
    tree::{Node, Value},
    units,
};
use pegboard_base::secret::names_secret;

/// Renders a setting as written, with secrets redacted.
pub(super) fn render_setting(name: &str, value: &Setting) -> Json {
    match value {
        Setting::Bool(value) => (*value).into(),
        Setting::Count(value) => (*value).into(),
        Setting::Duration(value) => units::duration_text(*value).into(),
        Setting::Size(value) => units::SizeText(*value).to_string().into(),
        Setting::Word(word) => (*word).into(),
        Setting::Text(text) if matches!(name, "command" | "headers_helper") => {
            secret_detection::redact_line(&text.written).into()
        }
        Setting::Text(text) => secret_detection::redact_text(name, &text.written).into(),
        Setting::Secret(text) => secret_detection::redact_secret(&text.written).into(),
        Setting::List(items) if matches!(name, "args" | "command" | "headers_helper") => arguments(items),
        Setting::List(items) => items.iter().map(|item| render_setting(name, item)).collect(),
        Setting::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.clone(), render_setting(key, value)));
            Json::Object(entries.collect())
        }
        Setting::Table(values) => Json::Object(table(values)),
        Setting::Any(unchecked) => any(name, &unchecked.0),
    }
}

/// Renders the default of a field; `None` if it has none.
pub(super) fn render_default(value: DefaultValue) -> Option<Json> {
    let duration = |value: Duration| Json::from(units::duration_text(value));
    match value {
        DefaultValue::None => None,
        DefaultValue::Bool(value) => Some(value.into()),
        DefaultValue::Count(value) => Some(value.into()),
        DefaultValue::Size(value) => Some(units::SizeText(value as u64).to_string().into()),
        DefaultValue::Duration(value) => Some(duration(value)),
        DefaultValue::Durations(values) => Some(values.iter().copied().map(duration).collect()),
        DefaultValue::Text(text) => Some(text.into()),
        DefaultValue::Texts(texts) => Some(texts.iter().copied().collect()),
        DefaultValue::EmptyList => Some(Json::Array(Vec::new())),
        DefaultValue::EmptyTable => Some(Json::Object(Map::new())),
    }
}

fn table(values: &Values) -> Map<String, Json> {
    values
        .iter()
        .map(|(name, found)| (name.to_owned(), render_setting(name, &found.setting)))
        .collect()
}

fn arguments(items: &[Setting]) -> Json {
    let written: Vec<&str> = items
        .iter()
        .map(|item| match item {
            Setting::Text(Text { written, .. }) => written.as_str(),
            _ => "",
        })
        .collect();
    secret_detection::redact_args(&written).into()
}

/// Renders a value that is not validated. Texts whose name or form is that of a secret are redacted.
fn any(name: &str, node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) if names_secret(name) => secret_detection::redact_secret(text).into(),
        Value::Text(text) => secret_detection::redact_text(name, text).into(),
        Value::List(items) => items.iter().map(|item| any(name, item)).collect(),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|entry| (entry.key.clone(), any(&entry.key, &entry.value)));
            Json::Object(entries.collect())
        }
    }
}
