//! Compacts a schema in passes of increasing loss. No pass removes an argument.

use serde_json::{Map, Value};

use super::schema::{BOUNDS, Schema};

/// One compaction pass.
pub(super) struct CompactionPass {
    /// What it removes, as shown to the user.
    pub(super) lost: &'static str,
    /// Runs the pass. Returns whether the schema changed.
    pub(super) run: fn(&mut Schema) -> bool,
}

/// The passes, the least loss first.
pub(super) const PASSES: &[CompactionPass] = &[
    CompactionPass {
        lost: "titles and examples",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["examples", "title"])),
    },
    CompactionPass {
        lost: "long descriptions of nested arguments",
        run: |schema| each(schema, 0, &mut |schema, depth| depth > 1 && shorten(schema, 120)),
    },
    CompactionPass {
        lost: "defaults and limits of nested arguments",
        run: |schema| each(schema, 0, &mut |schema, depth| depth > 1 && remove_limits(schema)),
    },
    CompactionPass {
        lost: "descriptions of nested arguments",
        run: |schema| {
            each(schema, 0, &mut |schema, depth| {
                depth > 1 && remove(schema, &["description"])
            })
        },
    },
    CompactionPass {
        lost: "what is nested more than three deep",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 3 && hollow(schema)),
    },
    CompactionPass {
        lost: "long descriptions",
        run: |schema| each(schema, 0, &mut |schema, _| shorten(schema, 120)),
    },
    CompactionPass {
        lost: "defaults and limits",
        run: |schema| each(schema, 0, &mut |schema, _| remove_limits(schema)),
    },
    CompactionPass {
        lost: "what is nested more than two deep",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 2 && hollow(schema)),
    },
    CompactionPass {
        lost: "all descriptions",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["description"])),
    },
    CompactionPass {
        lost: "what is nested",
        run: |schema| each(schema, 0, &mut |schema, depth| depth >= 1 && hollow(schema)),
    },
    CompactionPass {
        lost: "the lists of allowed values",
        run: |schema| each(schema, 0, &mut |schema, _| remove(schema, &["enum"])),
    },
];

/// Keywords that limit values, besides [`BOUNDS`].
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

/// Visits a schema and its subschemas. Returns whether a visit changed something. The depth counts the enclosing objects and arrays.
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

fn remove_limits(schema: &mut Schema) -> bool {
    remove(schema, LIMITS) | remove(schema, BOUNDS)
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

/// Removes everything inside an object or array but its type.
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
