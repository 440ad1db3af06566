//! Values of JSON: every text in them, the names that texts stand under, and the structure of Kubernetes manifests.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{Counts, Masker, WITHHELD, WITHHELD_NAME, kubernetes, span};

/// The wire lets nothing deeper through.
const MAX_DEPTH: usize = 256;

impl Masker {
    /// Masks a value in its place and tells what was hidden in it.
    pub fn value(&self, value: &mut Value) -> Counts {
        let mut counts = Counts::default();
        self.mask_value(value, &mut counts);
        counts
    }

    pub(crate) fn mask_value(&self, value: &mut Value, counts: &mut Counts) {
        self.walk(value, counts, Place::default());
    }

    /// Whether JSON surely holds no secret, so that it need not be read. A text with escapes is another one when it is read.
    pub(crate) fn is_surely_clean(&self, json: &str) -> bool {
        !json.contains('\\')
            && !self.rules.may_find(json)
            && matches!(self.values.find(json), Ok(found) if found.is_empty())
    }

    pub(crate) fn mask_map(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        self.walk_map(map, counts, Place::default());
    }

    fn walk(&self, value: &mut Value, counts: &mut Counts, place: Place) {
        if place.depth > MAX_DEPTH {
            *value = Value::String(WITHHELD.to_owned());
            return counts.add(WITHHELD_NAME, 1);
        }
        match value {
            Value::String(text) => self.mask(text, counts),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.walk(item, counts, place.deeper())),
            Value::Object(map) => self.walk_map(map, counts, place),
            Value::Number(number) if self.values.contains(&number.to_string()) => {
                *value = Value::String(span::mark("secret"));
                counts.add("secret", 1);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn walk_map(&self, map: &mut Map<String, Value>, counts: &mut Counts, place: Place) {
        if map.is_empty() {
            return;
        }
        let mut inner = place.deeper();
        if self.rules.has(kubernetes::NAME) {
            let kind = map.get("kind").and_then(Value::as_str);
            inner.of_secrets = place.of_secrets || kind == Some("SecretList");
            if kind == Some("Secret") || (place.of_secrets && kind.is_none()) {
                hide_sections(map, counts);
            }
        }
        self.hide_variable(map, counts);
        let kind = map.get("mimeType").and_then(Value::as_str).map(str::to_owned);
        for (key, value) in map.iter_mut() {
            match value {
                Value::String(bytes) if is_bytes(key, kind.as_deref(), bytes) => self.mask_bytes(bytes, counts),
                Value::String(text) if self.rules.minds_name(key) => self.mask_named(key, text, counts),
                value => self.walk(value, counts, inner),
            }
        }
        self.mask_keys(map, counts);
    }

    /// Bytes in base64: if they are a text, it is masked; if not, they stay as they are.
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

    /// `{"name": "DB_PASSWORD", "value": "…"}`, as containers have it.
    fn hide_variable(&self, map: &mut Map<String, Value>, counts: &mut Counts) {
        let Some(Value::String(name)) = map.get("name") else {
            return;
        };
        if !map.get("value").is_some_and(Value::is_string) || !self.rules.minds_name(name) {
            return;
        }
        let name = name.clone();
        if let Some(Value::String(text)) = map.get_mut("value") {
            self.mask_named(&name, text, counts);
        }
    }

    /// A text under a name that means something: it is looked at together with its name. All of it is hidden if it is a secret for its name.
    fn mask_named(&self, name: &str, text: &mut String, counts: &mut Counts) {
        let line = format!("{}: {}", Value::from(name), Value::from(text.as_str()));
        match self.rules.find_named(&line) {
            Ok(Some(found)) if !span::is_mark(text) => {
                *text = span::mark(found);
                counts.add(found, 1);
            }
            Ok(_) => self.mask(text, counts),
            Err(_) => {
                *text = WITHHELD.to_owned();
                counts.add(WITHHELD_NAME, 1);
            }
        }
    }

    /// Names can hold secrets as well. They are seldom, so the map is made anew only then.
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

/// Whether a text is the bytes of a resource, a picture or a sound.
fn is_bytes(key: &str, kind: Option<&str>, text: &str) -> bool {
    let named = key == "blob" || (key == "data" && kind.is_some());
    named
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(&b))
}

/// Where in a value we are.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    depth: usize,
    /// Whether objects without a kind are Secrets here: the items of a SecretList.
    of_secrets: bool,
}

impl Place {
    fn deeper(mut self) -> Self {
        self.depth += 1;
        self
    }
}

fn hide_sections(map: &mut Map<String, Value>, counts: &mut Counts) {
    for section in kubernetes::SECTIONS {
        if let Some(value) = map.get_mut(*section)
            && !value.is_null()
            && value != kubernetes::MARK
        {
            *value = Value::String(kubernetes::MARK.to_owned());
            counts.add(kubernetes::NAME, 1);
        }
    }
}
