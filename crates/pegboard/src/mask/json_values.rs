//! Masks JSON values: every string, strings with sensitive names, and the data of Kubernetes Secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    counts::Counts,
    kubernetes,
    masker::Masker,
    span,
    withheld::{WITHHELD, WITHHELD_NAME},
};

/// The deepest nesting that is masked. Messages cannot be nested deeper.
const MAX_DEPTH: usize = 256;

impl Masker {
    /// Masks a value in place. Returns the counts of what was masked.
    pub fn value(&self, value: &mut Value) -> Counts {
        let mut counts = Counts::default();
        self.mask_value(value, &mut counts);
        counts
    }

    pub(crate) fn mask_value(&self, value: &mut Value, counts: &mut Counts) {
        self.walk(value, counts, WalkState::default());
    }

    /// Whether JSON text certainly holds no secret, so that it need not be parsed. Text with escapes may hold one once unescaped.
    pub(crate) fn is_surely_clean(&self, json: &str) -> bool {
        !json.contains('\\')
            && !self.patterns.may_find(json)
            && matches!(self.values.find(json), Ok(found) if found.is_empty())
    }

    pub(crate) fn mask_map(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        self.walk_map(map, counts, WalkState::default());
    }

    fn walk(&self, value: &mut Value, counts: &mut Counts, state: WalkState) {
        if state.depth > MAX_DEPTH {
            *value = Value::String(WITHHELD.to_owned());
            return counts.add(WITHHELD_NAME, 1);
        }
        match value {
            Value::String(text) => self.mask(text, counts),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.walk(item, counts, state.deeper())),
            Value::Object(map) => self.walk_map(map, counts, state),
            Value::Number(number) if self.values.contains(&number.to_string()) => {
                *value = Value::String(span::placeholder("secret"));
                counts.add("secret", 1);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk_map(&self, map: &mut Map<String, Value>, counts: &mut Counts, state: WalkState) {
        if map.is_empty() {
            return;
        }
        let mut inner = state.deeper();
        if self.patterns.has(kubernetes::NAME) {
            let kind = map.get("kind").and_then(Value::as_str);
            inner.of_secrets = state.of_secrets || kind == Some("SecretList");
            if kind == Some("Secret") || (state.of_secrets && kind.is_none()) {
                mask_secret_data(map, counts);
            }
        }
        self.mask_variable(map, counts);
        let kind = map.get("mimeType").and_then(Value::as_str).map(str::to_owned);
        for (key, value) in map.iter_mut() {
            match value {
                Value::String(bytes) if is_bytes(key, kind.as_deref(), bytes) => self.mask_bytes(bytes, counts),
                Value::String(text) if self.patterns.is_sensitive_name(key) => self.mask_named(key, text, counts),
                value => self.walk(value, counts, inner),
            }
        }
        self.mask_keys(map, counts);
    }

    /// Masks base64-encoded bytes if they are UTF-8 text. Other bytes stay as they are.
    pub(crate) fn mask_bytes(&self, bytes: &mut String, counts: &mut Counts) {
        let decoded = STANDARD
            .decode(bytes.trim())
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(mut text) = decoded {
            let before = counts.total();
            self.mask(&mut text, counts);
            if counts.total() > before {
                *bytes = STANDARD.encode(text);
            }
        }
    }

    /// Masks environment variables of containers: `{"name": "DB_PASSWORD", "value": "…"}`.
    fn mask_variable(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        let Some(Value::String(name)) = map.get("name") else {
            return;
        };
        if !map.get("value").is_some_and(Value::is_string) || !self.patterns.is_sensitive_name(name) {
            return;
        }
        let name = name.clone();
        if let Some(Value::String(text)) = map.get_mut("value") {
            self.mask_named(&name, text, counts);
        }
    }

    /// Masks a string with a sensitive name. If the name makes it a secret, all of it is masked.
    fn mask_named(&self, name: &str, text: &mut String, counts: &mut Counts) {
        let line = format!("{}: {}", Value::from(name), Value::from(text.as_str()));
        match self.patterns.find_by_name(&line) {
            Ok(Some(found)) if !span::is_placeholder(text) => {
                *text = span::placeholder(found);
                counts.add(found, 1);
            }
            Ok(_) => self.mask(text, counts),
            Err(_) => {
                *text = WITHHELD.to_owned();
                counts.add(WITHHELD_NAME, 1);
            }
        }
    }

    /// Masks secrets in keys. They are rare, so the map is changed only for those.
    fn mask_keys(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        let hidden: Vec<(String, String)> = map
            .keys()
            .filter_map(|key| {
                let masked = self.text(key);
                counts.add_all(&masked.counts);
                (!masked.counts.is_empty()).then(|| (key.clone(), masked.text.into_owned()))
            })
            .collect();
        for (key, masked) in hidden {
            if let Some(value) = map.remove(&key) {
                let free = (1..).map(|n| {
                    if n == 1 {
                        masked.clone()
                    } else {
                        format!("{masked}_{n}")
                    }
                });
                if let Some(name) = { free }.find(|name| !map.contains_key(name)) {
                    map.insert(name, value);
                }
            }
        }
    }
}

/// Whether a string is the base64 data of a resource, an image or audio.
fn is_bytes(key: &str, kind: Option<&str>, text: &str) -> bool {
    let named = key == "blob" || (key == "data" && kind.is_some());
    named
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(&b))
}

/// The state of the walk through a value.
#[derive(Debug, Clone, Copy, Default)]
struct WalkState {
    depth: usize,
    /// Whether objects without a `kind` are Secrets, as the items of a SecretList are.
    of_secrets: bool,
}

impl WalkState {
    fn deeper(mut self) -> Self {
        self.depth += 1;
        self
    }
}

fn mask_secret_data(map: &mut Map<String, Value>, counts: &mut Counts) {
    for section in kubernetes::SECTIONS {
        if let Some(value) = map.get_mut(*section)
            && !value.is_null()
            && value != kubernetes::PLACEHOLDER
        {
            *value = Value::String(kubernetes::PLACEHOLDER.to_owned());
            counts.add(kubernetes::NAME, 1);
        }
    }
}
