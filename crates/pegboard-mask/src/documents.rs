//! Objects whose structure says which of their values are secrets: answers of secret managers, Terraform's sensitive values, lists of
//! variables and headers.
//!
//! The rules are written once, for parsed JSON. In a text they are applied to the JSON documents in it.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value};

use super::{
    named_values::{self, Strength, ValueForm},
    span::{self, Span},
};

/// The pattern's name.
pub(super) const NAME: &str = "secret_document";
/// Words of which every such object contains one, in lower case.
pub(super) const KEYWORDS: &[&str] = &[
    "lease_id",
    "sensitive",
    "payload",
    "securestring",
    "/secrets/",
    "keyname",
    "kty\"",
    "kty\\",
];
/// The private parameters of a JSON Web Key.
const JWK_PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];
/// The shortest private parameter of a JSON Web Key.
const MIN_JWK: usize = 16;
/// The shortest secret that is looked for in a text.
const MIN_LEN: usize = 3;
/// The most documents in one text.
const MAX_DOCUMENTS: usize = 64;

/// Calls `hide` for every string, number and list item that is a secret because of the object around it.
pub(super) fn visit(value: &mut Value, hide: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(map) => visit_map(map, hide),
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, hide)),
        _ => {}
    }
}

/// The same for the fields of an object.
pub(super) fn visit_map(map: &mut Map<String, Value>, hide: &mut impl FnMut(&mut Value)) {
    if marks_value(map) {
        for name in ["value", "Value"] {
            if let Some(value) = map.get_mut(name) {
                hide_all(value, hide);
            }
        }
    }
    if is_gcp_version(map)
        && let Some(data) = map.get_mut("payload").and_then(|payload| payload.get_mut("data"))
    {
        hide_all(data, hide);
    }
    if map.get("kty").is_some_and(Value::is_string) {
        for name in JWK_PRIVATE {
            let value = map.get_mut(name);
            if let Some(value) = value.filter(|value| value.as_str().is_some_and(|text| text.len() >= MIN_JWK)) {
                hide_all(value, hide);
            }
        }
    }
    if map.contains_key("lease_id") && map.contains_key("request_id") {
        hide_vault(map, hide);
    }
    for (values, marks) in [
        ("values", "sensitive_values"),
        ("after", "after_sensitive"),
        ("before", "before_sensitive"),
    ] {
        if let Some(marks) = map.get(marks).cloned()
            && let Some(values) = map.get_mut(values)
        {
            hide_marked(values, &marks, hide);
        }
    }
    if let Some(paths) = map.get("sensitive_attributes").cloned()
        && let Some(attributes) = map.get_mut("attributes")
    {
        hide_paths(attributes, &paths, hide);
    }
    map.iter_mut().for_each(|(_, value)| visit(value, hide));
}

/// Whether the object says that its `value` is a secret.
fn marks_value(map: &Map<String, Value>) -> bool {
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let is_secure = |name: &str| text(name).is_some_and(|kind| kind.eq_ignore_ascii_case("securestring"));
    let is_key_vault = text("id").is_some_and(|id| id.contains(".net/secrets/"));
    let is_storage_key = text("keyName").is_some() && map.contains_key("permissions");
    map.get("sensitive") == Some(&Value::Bool(true))
        || map.get("isSecret") == Some(&Value::Bool(true))
        || is_secure("Type")
        || is_secure("type")
        || is_key_vault
        || is_storage_key
}

/// Whether this is a version of a secret of Google's Secret Manager.
fn is_gcp_version(map: &Map<String, Value>) -> bool {
    map.get("name")
        .and_then(Value::as_str)
        .is_some_and(|name| name.contains("/secrets/"))
}

/// Hides the data of an answer of Vault. Lists of names stay readable.
fn hide_vault(map: &mut Map<String, Value>, hide: &mut impl FnMut(&mut Value)) {
    let Some(Value::Object(data)) = map.get_mut("data") else {
        return;
    };
    if let Some(inner) = data.get_mut("data").filter(|inner| inner.is_object()) {
        return hide_all(inner, hide);
    }
    for (key, value) in data.iter_mut() {
        let is_listing = matches!(
            key.as_str(),
            "keys" | "key_info" | "policies" | "ttl" | "path" | "type" | "metadata"
        );
        if !is_listing && value.is_string() {
            hide_all(value, hide);
        }
    }
}

/// Hides every string and number of a value.
fn hide_all(value: &mut Value, hide: &mut impl FnMut(&mut Value)) {
    match value {
        Value::String(text) if named_values::is_no_literal(text.trim()) => {}
        Value::String(_) | Value::Number(_) => hide(value),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_all(item, hide)),
        Value::Object(map) => map.iter_mut().for_each(|(_, value)| hide_all(value, hide)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Hides what a second value of the same structure marks with `true`.
fn hide_marked(value: &mut Value, marks: &Value, hide: &mut impl FnMut(&mut Value)) {
    match (value, marks) {
        (value, Value::Bool(true)) => hide_all(value, hide),
        (Value::Object(map), Value::Object(marks)) => {
            for (key, marks) in marks {
                if let Some(value) = map.get_mut(key) {
                    hide_marked(value, marks, hide);
                }
            }
        }
        (Value::Array(items), Value::Array(marks)) => {
            for (item, marks) in items.iter_mut().zip(marks) {
                hide_marked(item, marks, hide);
            }
        }
        _ => {}
    }
}

/// Hides the attributes that a list of paths names, as Terraform's state does.
fn hide_paths(attributes: &mut Value, paths: &Value, hide: &mut impl FnMut(&mut Value)) {
    for path in paths.as_array().into_iter().flatten() {
        let mut at = Some(&mut *attributes);
        for step in path.as_array().into_iter().flatten() {
            let key = step.get("value");
            at = match key {
                Some(Value::String(key)) => at.and_then(|value| value.get_mut(key)),
                Some(key) => key
                    .as_u64()
                    .and_then(|index| at.and_then(|value| value.get_mut(index as usize))),
                None => at,
            };
        }
        if let Some(value) = at.filter(|_| path.as_array().is_some_and(|path| !path.is_empty())) {
            hide_all(value, hide);
        }
    }
}

/// Whether the name in a pair of fields makes the value beside it a secret. Returns the key of the value.
pub(super) fn pair(map: &Map<String, Value>, is_sensitive: impl Fn(&str) -> bool) -> Option<(&str, &'static str)> {
    const NAMES: &[&str] = &[
        "name",
        "Name",
        "key",
        "Key",
        "header",
        "variable",
        "ParameterKey",
        "keyName",
        "id",
        "label",
    ];
    let value = ["value", "Value", "ParameterValue"]
        .into_iter()
        .find(|key| map.contains_key(*key))?;
    let is_name = |name: &&str| named_values::strength_of_list(name).is_some() || is_sensitive(name);
    let mut names = NAMES.iter().filter_map(|key| map.get(*key).and_then(Value::as_str));
    names.find(is_name).map(|name| (name, value))
}

/// Finds the secrets of the JSON documents in a text.
pub(super) fn find(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_DOCUMENTS {
        let Some(start) = document_start(text, at) else { break };
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let document = documents.next();
        at = start + documents.byte_offset().max(1);
        if let Some(Ok(document)) = document {
            find_in(text, start..at, document, &mut found);
        }
        at = text.ceil_char_boundary(at);
    }
    found
}

/// The next brace or bracket at the start of a line, of a quotation or of the text.
fn document_start(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(step) = memchr::memchr2(b'{', b'[', text.as_bytes().get(at..)?) {
        let place = at + step;
        let before = text.as_bytes()[..place]
            .iter()
            .rev()
            .take(64)
            .find(|b| !matches!(b, b' ' | b'\t'));
        if before.is_none_or(|b| b"\n:='`".contains(b)) {
            return Some(place);
        }
        at = place + 1;
    }
    None
}

fn find_in(text: &str, range: Range<usize>, mut document: Value, found: &mut Vec<Span>) {
    let mut secrets: Vec<String> = Vec::new();
    visit(&mut document, &mut |value| {
        if value.as_str().is_none_or(|text| text.len() >= MIN_LEN) {
            secrets.push(value.to_string());
        }
    });
    secrets.sort_unstable();
    secrets.dedup();
    let Ok(finder) = AhoCorasick::new(&secrets) else {
        return found.push(Span::new(range, NAME, "[MASKED_SECRET_DOCUMENT]"));
    };
    for place in finder.find_iter(&text[range.clone()]) {
        let is_string = text[range.start + place.start()..].starts_with('"');
        let inset = usize::from(is_string);
        found.push(Span {
            range: range.start + place.start() + inset..range.start + place.end() - inset,
            name: NAME.into(),
            replacement: span::placeholder(NAME).into(),
        });
    }
}

/// Whether a value under this name is a secret.
pub(super) fn is_named_secret(name: &str, value: &Value) -> bool {
    let strength = named_values::strength(name).filter(|_| !span::has_placeholder(name));
    match (value, strength) {
        (Value::String(text), Some(strength)) => named_values::is_secret(strength, text, ValueForm::Quoted),
        (Value::Number(number), Some(Strength::Password)) => number.to_string().len() >= 4,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden(mut document: Value) -> Vec<String> {
        let mut secrets = Vec::new();
        visit(&mut document, &mut |value| secrets.push(value.to_string()));
        secrets
    }

    #[test]
    fn secret_managers_answers_are_secrets_under_any_name() {
        for document in [
            json!({"Parameter": {"Name": "/app/db", "Type": "SecureString", "Value": "hunter2"}}),
            json!({"name": "projects/1/secrets/db/versions/1", "payload": {"data": "hunter2", "dataCrc32c": "1"}}),
            json!({"id": "https://x.vault.azure.net/secrets/db/1", "value": "hunter2"}),
            json!({"request_id": "1", "lease_id": "", "data": {"data": {"user": "hunter2"}, "metadata": {"version": 1}}}),
            json!({"request_id": "1", "lease_id": "", "data": {"user": "hunter2"}}),
            json!({"out": {"sensitive": true, "type": "string", "value": "hunter2"}}),
            json!({"values": {"a": ["x", "hunter2"]}, "sensitive_values": {"a": [false, true]}}),
            json!({"attributes": {"a": "x", "b": "hunter2"}, "sensitive_attributes": [[{"type": "get_attr", "value": "b"}]]}),
            json!({"change": {"after": {"b": "hunter2"}, "after_sensitive": {"b": true}}}),
            json!({"keyName": "key1", "permissions": "FULL", "value": "hunter2"}),
        ] {
            assert_eq!(hidden(document.clone()), ["\"hunter2\""], "{document}");
            let text = format!("the answer:\n{document:#}\nand more");
            let found = find(&text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(&text[found[0].range.clone()], "hunter2");
        }
    }

    #[test]
    fn private_parameters_of_web_keys_are_secrets() {
        let private = "wN3fK9sQ2mT7xR4vB8cJ5hL1pZ6yD0gA-eUiOq_Wk2s";
        let key =
            json!({"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "d": private});
        assert_eq!(hidden(json!({"keys": [key]})), [format!("{private:?}")]);
        let text = format!("curl -d '{key}'");
        assert_eq!(&text[find(&text)[0].range.clone()], private);
    }

    #[test]
    fn other_objects_have_no_such_secrets() {
        for document in [
            json!({"kty": "RSA", "n": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "e": "AQAB", "d": "short"}),
            json!({"x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "d": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8T"}),
            json!({"out": {"sensitive": false, "value": "open"}}),
            json!({"Parameter": {"Type": "String", "Value": "open"}}),
            json!({"payload": {"data": "open"}}),
            json!({"request_id": "1", "lease_id": "", "data": {"keys": ["a", "b"]}}),
        ] {
            assert_eq!(hidden(document.clone()), [""; 0], "{document}");
        }
    }
}
