//! Masks JSON values: every string, strings with sensitive names, and the data of Kubernetes Secrets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    counts::Counts,
    documents, encoded,
    known_values::MIN_LEN,
    kubernetes,
    masker::{Carried, Masker},
    named_values::{self, Strength},
    span,
    withheld::{WITHHELD, WITHHELD_NAME},
};

/// The deepest nesting that is masked. Messages cannot be nested deeper.
const MAX_DEPTH: usize = 256;
/// The pattern that hides values because of their names.
const NAMED: &str = "secret_assignment";

impl Masker {
    /// Masks a value in place. Returns the counts of what was masked.
    pub fn value(&self, value: &mut Value) -> Counts {
        let mut counts = Counts::default();
        self.mask_value(value, &mut counts);
        counts
    }

    /// Masks a value in place and adds what was masked to `counts`.
    #[doc(hidden)]
    pub fn mask_value(&self, value: &mut Value, counts: &mut Counts) {
        if self.patterns.has(documents::NAME) {
            documents::visit(value, &mut |secret| self.hide(secret, documents::NAME, counts));
        }
        self.walk(value, counts, WalkState::default());
    }

    /// Whether JSON text certainly holds no secret, so that it need not be parsed. Text with escapes may hold one once unescaped.
    #[doc(hidden)]
    pub fn is_surely_clean(&self, json: &str) -> bool {
        !json.contains('\\')
            && !self.patterns.may_find(json, &self.values)
            && matches!(self.values.find(json), Ok(found) if found.is_empty())
    }

    /// Masks the values of a map in place and adds what was masked to `counts`.
    #[doc(hidden)]
    pub fn mask_map(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        if self.patterns.has(documents::NAME) {
            documents::visit_map(map, &mut |secret| self.hide(secret, documents::NAME, counts));
        }
        self.walk_map(map, counts, WalkState::default());
    }

    fn walk(&self, value: &mut Value, counts: &mut Counts, state: WalkState) {
        if state.depth > MAX_DEPTH {
            *value = Value::String(WITHHELD.to_owned());
            return counts.add(WITHHELD_NAME, 1);
        }
        match value {
            Value::String(text) => self.mask(text, counts),
            Value::Array(items) if self.is_secret_in_bytes(items) => {
                *items = vec![Value::String(span::placeholder("secret"))];
                counts.add("secret", 1);
            }
            Value::Array(items) => {
                let mut carried = Carried::default();
                for item in items {
                    match item {
                        Value::String(text) => self.mask_next(text, &mut carried, counts),
                        item => self.walk(item, counts, state.deeper()),
                    }
                }
            }
            Value::Object(map) => self.walk_map(map, counts, state),
            Value::Number(number) if self.values.contains(&number.to_string()) => {
                *value = Value::String(span::placeholder("secret"));
                counts.add("secret", 1);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a list of bytes holds a known secret.
    fn is_secret_in_bytes(&self, items: &[Value]) -> bool {
        let bytes = || items.iter().map(|item| item.as_u64().filter(|byte| *byte <= 0xff));
        if items.len() < MIN_LEN || !bytes().all(|byte| byte.is_some()) {
            return false;
        }
        let list: String = bytes().flatten().map(|byte| format!("{byte},")).collect();
        self.values.occur_in(&list).unwrap_or(true)
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
                value => self.walk_field(key, value, counts, inner),
            }
        }
        self.mask_keys(map, counts);
    }

    /// Masks base64-encoded bytes if they are a text. If it is not UTF-8 and a secret is masked, its other bytes are replaced.
    #[doc(hidden)]
    pub fn mask_bytes(&self, bytes: &mut String, counts: &mut Counts) {
        let plain: String = bytes.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let Some(decoded) = encoded::decode_base64(&plain) else {
            return self.mask(bytes, counts);
        };
        let mut text = String::from_utf8_lossy(&decoded).into_owned();
        let odd = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
        if odd > text.len() / MIN_TEXT {
            return;
        }
        let before = counts.total();
        self.mask(&mut text, counts);
        if counts.total() > before {
            *bytes = STANDARD.encode(text);
        }
    }

    /// Masks the value of a field by its name and by what it is.
    fn walk_field(&self, name: &str, value: &mut Value, counts: &mut Counts, state: WalkState) {
        match value {
            Value::String(_) | Value::Number(_) if self.is_named_secret(name, value) => {
                self.mask_named(name, value, counts)
            }
            // A placeholder in the value makes it longer, and may make it look like a secret.
            Value::String(text)
                if (name == "auth" || self.patterns.is_sensitive_name(name)) && !span::has_placeholder(text) =>
            {
                let mut value = Value::String(std::mem::take(text));
                self.mask_named(name, &mut value, counts);
                if let Value::String(masked) = value {
                    *text = masked;
                }
            }
            Value::Array(items) if named_values::strength_of_list(name) >= Some(Strength::Strong) => {
                let name = if named_values::strength(name).is_some() {
                    name
                } else {
                    &name[..name.len() - 1]
                };
                items
                    .iter_mut()
                    .for_each(|item| self.walk_field(name, item, counts, state.deeper()));
            }
            value => self.walk(value, counts, state),
        }
    }

    /// Whether the default patterns hide a value because of its name.
    fn is_named_secret(&self, name: &str, value: &Value) -> bool {
        let shown = || match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        self.patterns.has(NAMED) && documents::is_named_secret(name, value) && !self.patterns.is_excepted(&shown())
    }

    /// Masks variables and headers: `{"name": "DB_PASSWORD", "value": "…"}`.
    fn mask_variable(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        let Some((name, key)) = documents::pair(map, |name| self.patterns.is_sensitive_name(name))
            .map(|(name, key)| (name.to_owned(), key))
        else {
            return;
        };
        if let Some(value) = map.get_mut(key) {
            self.walk_field(&name, value, counts, WalkState::default());
        }
    }

    /// Masks a value with a sensitive name. If the name makes it a secret, all of it is masked.
    fn mask_named(&self, name: &str, value: &mut Value, counts: &mut Counts) {
        let found = match &*value {
            Value::String(text) => {
                let line = format!("{}: {}", Value::from(name), Value::from(text.as_str()));
                self.patterns.find_by_name(&line)
            }
            _ => Ok(None),
        };
        match found {
            Ok(Some(found)) => self.hide(value, found, counts),
            Ok(None) if self.is_named_secret(name, value) => self.hide(value, NAMED, counts),
            Ok(None) => {
                if let Value::String(text) = value {
                    self.mask(text, counts);
                }
            }
            Err(_) => {
                *value = Value::String(WITHHELD.to_owned());
                counts.add(WITHHELD_NAME, 1);
            }
        }
    }

    /// Replaces a value by the placeholder of a pattern.
    fn hide(&self, value: &mut Value, pattern: &'static str, counts: &mut Counts) {
        let shown = value.as_str().unwrap_or_default();
        if span::is_placeholder(shown) || self.patterns.is_excepted(shown) {
            return;
        }
        *value = Value::String(span::placeholder(pattern));
        counts.add(pattern, 1);
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
            .trim()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(&b))
}

/// A text has at most one byte in this many that is not UTF-8. Pictures have more.
const MIN_TEXT: usize = 10;

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
