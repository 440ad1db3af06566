//! The part of JSON Schema that types of other languages can say.

use serde_json::{Map, Value};

/// How deep schemas are followed. Deeper parts, and recursive ones, are [`Shape::Any`].
const MAX_DEPTH: usize = 8;

/// The shape of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Any,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// One of these strings.
    Words(Vec<String>),
    List(Box<Self>),
    /// An object whose keys are not known.
    Map(Box<Self>),
    Object(Vec<ShapeField>),
    Either(Vec<Self>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapeField {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) is_required: bool,
    pub(super) shape: Shape,
}

impl Shape {
    pub(super) fn from_schema(schema: &Value) -> Self {
        read(schema, schema, 0)
    }
}

fn read(schema: &Value, root: &Value, depth: usize) -> Shape {
    let Value::Object(map) = schema else { return Shape::Any };
    if depth > MAX_DEPTH {
        return Shape::Any;
    }
    if let Some(Value::String(reference)) = map.get("$ref") {
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(Shape::Any, |found| read(found, root, depth + 1));
    }
    if let Some(Value::Array(values)) = map.get("enum") {
        let words: Option<Vec<String>> = values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        return words.filter(|words| !words.is_empty()).map_or(Shape::Any, Shape::Words);
    }
    if let Some(Value::String(word)) = map.get("const") {
        return Shape::Words(vec![word.clone()]);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(schemas)) = map.get(key) {
            return either(schemas.iter().map(|schema| read(schema, root, depth + 1)).collect());
        }
    }
    match map.get("type") {
        Some(Value::Array(types)) => {
            let one = |name: &Value| shape_of_type(name.as_str().unwrap_or_default(), map, root, depth);
            either(types.iter().map(one).collect())
        }
        Some(Value::String(name)) => shape_of_type(name, map, root, depth),
        _ if map.contains_key("properties") => shape_of_type("object", map, root, depth),
        _ => Shape::Any,
    }
}

fn shape_of_type(name: &str, map: &Map<String, Value>, root: &Value, depth: usize) -> Shape {
    match name {
        "null" => Shape::Null,
        "boolean" => Shape::Boolean,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "string" => Shape::String,
        "array" => Shape::List(Box::new(
            map.get("items")
                .map_or(Shape::Any, |items| read(items, root, depth + 1)),
        )),
        "object" => match map.get("properties") {
            Some(Value::Object(properties)) if !properties.is_empty() => {
                Shape::Object(fields(properties, map, root, depth))
            }
            _ => {
                let rest = map.get("additionalProperties");
                Shape::Map(Box::new(rest.map_or(Shape::Any, |rest| read(rest, root, depth + 1))))
            }
        },
        _ => Shape::Any,
    }
}

/// The fields of an object, those that are required first.
fn fields(properties: &Map<String, Value>, map: &Map<String, Value>, root: &Value, depth: usize) -> Vec<ShapeField> {
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let one = |(name, schema): (&String, &Value)| ShapeField {
        name: name.clone(),
        description: super::one_paragraph(schema.get("description").and_then(Value::as_str).unwrap_or_default()),
        is_required: required.contains(&name.as_str()),
        shape: read(schema, root, depth + 1),
    };
    let mut fields: Vec<ShapeField> = properties.iter().map(one).collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

fn either(shapes: Vec<Shape>) -> Shape {
    let mut different: Vec<Shape> = Vec::new();
    for shape in shapes {
        if shape == Shape::Any {
            return Shape::Any;
        }
        if !different.contains(&shape) {
            different.push(shape);
        }
    }
    match different.len() {
        0 => Shape::Any,
        1 => different.remove(0),
        _ => Shape::Either(different),
    }
}
