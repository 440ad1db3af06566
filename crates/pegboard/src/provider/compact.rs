//! Makes a schema smaller, in steps of growing loss. The arguments themselves always stay.

use serde_json::{Map, Value};

use super::Schema;

/// One step.
pub(super) struct Pass {
    /// What it takes away, in words.
    pub(super) lost: &'static str,
    /// Takes it away. Whether anything changed.
    pub(super) run: fn(&mut Schema) -> bool,
}

/// The steps, the least loss first.
pub(super) const PASSES: &[Pass] = &[
    Pass {
        lost: "titles and examples",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["examples", "title"])),
    },
    Pass {
        lost: "long descriptions of nested arguments",
        run: |schema| each(schema, 0, &mut |schema, depth| depth > 1 && shorten(schema, 120)),
    },
    Pass {
        lost: "defaults and limits of nested arguments",
        run: |schema| each(schema, 0, &mut |schema, depth| depth > 1 && remove(schema, LIMITS)),
    },
    Pass {
        lost: "descriptions of nested arguments",
        run: |schema| {
            each(schema, 0, &mut |schema, depth| {
                depth > 1 && remove(schema, &["description"])
            })
        },
    },
    Pass {
        lost: "what is nested more than three deep",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 3 && hollow(schema)),
    },
    Pass {
        lost: "long descriptions",
        run: |schema| each(schema, 0, &mut |schema, _| shorten(schema, 120)),
    },
    Pass {
        lost: "defaults and limits",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, LIMITS)),
    },
    Pass {
        lost: "what is nested more than two deep",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 2 && hollow(schema)),
    },
    Pass {
        lost: "all descriptions",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["description"])),
    },
    Pass {
        lost: "what is nested",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 1 && hollow(schema)),
    },
    Pass {
        lost: "the lists of allowed values",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["enum"])),
    },
];

const LIMITS: &[&str] = &[
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Visits a schema and all that are in it. Whether any visit changed something. The depth counts the objects and lists around.
fn each(schema: &mut Schema, depth: usize, visit: &mut dyn FnMut(&mut Schema, usize) -> bool) -> bool {
    let mut changed = visit(schema, depth);
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(named)) => {
                for child in named.values_mut().filter_map(Value::as_object_mut) {
                    changed |= each(child, depth + 1, visit);
                }
            }
            ("items" | "additionalProperties", Value::Object(child)) => changed |= each(child, depth + 1, visit),
            ("anyOf" | "prefixItems", Value::Array(children)) => {
                for child in children.iter_mut().filter_map(Value::as_object_mut) {
                    changed |= each(child, depth, visit);
                }
            }
            _ => {}
        }
    }
    changed
}

fn remove(schema: &mut Schema, keywords: &[&str]) -> bool {
    let before = schema.len();
    schema.retain(|keyword, _| !keywords.contains(&keyword.as_str()));
    schema.len() < before
}

fn shorten(schema: &mut Schema, limit: usize) -> bool {
    match schema.get_mut("description") {
        Some(Value::String(text)) if text.len() > limit => {
            text.truncate(text.floor_char_boundary(limit));
            text.push('…');
            true
        }
        _ => false,
    }
}

/// Leaves of an object or list only that it is one.
fn hollow(schema: &mut Schema) -> bool {
    let mut changed = remove(schema, &["additionalProperties", "anyOf", "properties", "required"]);
    for keyword in ["items", "prefixItems"] {
        if schema
            .get(keyword)
            .is_some_and(|items| items.as_object().is_none_or(|items| !items.is_empty()))
        {
            schema.remove(keyword);
            schema.insert("items".into(), Map::new().into());
            changed = true;
        }
    }
    changed
}
