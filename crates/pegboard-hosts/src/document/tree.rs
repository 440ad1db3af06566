//! What a document says, in the order in which it says it.

use serde_json::{Map, Value};

/// The keys of an entry in the order in which people write them; others follow by name.
const USUAL_ORDER: [&str; 12] = [
    "name",
    "title",
    "description",
    "type",
    "transport",
    "command",
    "args",
    "url",
    "httpUrl",
    "cwd",
    "env",
    "headers",
];

/// A value with the order of its keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Leaf(Value),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Tree {
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.clone(), value.value()));
                Value::Object(entries.collect())
            }
        }
    }

    /// What is at the path.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, step| match tree {
            Self::Map(entries) => entries.iter().find(|(key, _)| key == step).map(|(_, value)| value),
            Self::Leaf(_) | Self::List(_) => None,
        })
    }

    pub(super) fn keys(&self) -> Vec<String> {
        match self {
            Self::Map(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
            Self::Leaf(_) | Self::List(_) => Vec::new(),
        }
    }
}

/// The entries of a map, in the usual order.
pub(super) fn order(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| {
        USUAL_ORDER
            .iter()
            .position(|usual| usual == key)
            .unwrap_or(USUAL_ORDER.len())
    });
    entries
}

/// `value` under the keys of `path`, one in the other.
pub(super) fn nest(path: &[&str], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |value, key| {
        Value::Object(Map::from_iter([((*key).to_owned(), value)]))
    })
}

/// The values of a list that differ from those of a known one, by their place; `None` if more than single values differ.
pub(super) fn find_changed_items<'a>(known: &Tree, wanted: &'a Value) -> Option<Vec<(usize, &'a Value)>> {
    let (Tree::List(known), Value::Array(wanted)) = (known, wanted) else {
        return None;
    };
    let pairs = known.iter().zip(wanted).enumerate();
    let changed: Vec<_> = pairs.filter(|(_, (old, new))| old.value() != **new).collect();
    let is_single = |old: &Tree, new: &Value| matches!(old, Tree::Leaf(_)) && !new.is_array() && !new.is_object();
    let is_possible = known.len() == wanted.len() && changed.iter().all(|(_, (old, new))| is_single(old, new));
    is_possible.then(|| changed.into_iter().map(|(place, (_, new))| (place, new)).collect())
}

/// Puts a value at a path, as an edit of the text should.
pub(super) fn put(root: &mut Value, path: &[&str], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *root = value.clone();
        return;
    };
    if !root.is_object() {
        *root = Value::Object(Map::new());
    }
    if let Value::Object(map) = root {
        put(map.entry(*first).or_insert(Value::Null), rest, value);
    }
}

/// Takes away what is at a path.
pub(super) fn take(root: &mut Value, path: &[&str]) {
    if let (Value::Object(map), Some((first, rest))) = (root, path.split_first()) {
        if rest.is_empty() {
            map.remove(*first);
        } else if let Some(inner) = map.get_mut(*first) {
            take(inner, rest);
        }
    }
}

/// Whether both say the same. An empty map and one that is not there are the same, since formats differ in whether they can write it.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    prune(one) == prune(other)
}

fn prune(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), prune(value)));
            let kept: Map<_, _> = entries.filter(|(_, value)| !value.is_null()).collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        Value::Array(items) => Value::Array(items.iter().map(prune).collect()),
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        other => other.clone(),
    }
}
