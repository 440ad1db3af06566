//! Arguments that are valid for the shown schema are valid for the tool's own schema after reversal.

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::Index};

use super::*;

/// Schemas with constructs that dialects convert, but none that a dialect must drop: the model could not know about those.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": ["integer", "boolean"]})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        Just(json!({"enum": [1, 2, null]})),
        Just(json!({"const": true})),
        Just(json!({"type": "object"})),
        Just(json!({"type": "object", "additionalProperties": {"type": "object"}})),
        Just(json!({})),
        Just(json!({"$ref": "#/$defs/shared"})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            3 => object(inner.clone()),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            1 => (object(inner.clone()), object(inner.clone())).prop_map(|(mut a, mut b)| {
                for (branch, tag) in [(&mut a, "a"), (&mut b, "b")] {
                    branch["properties"]["kind"] = json!({"const": tag});
                    branch["required"].as_array_mut().unwrap().push("kind".into());
                    branch["additionalProperties"] = false.into();
                }
                json!({"oneOf": [a, b]})
            }),
            1 => inner.prop_map(|schema| json!({"anyOf": [schema, {"type": "null"}]})),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[a-z]{1,4}", "[$a-z.é -]{1,6}", "[0-9]{1,2}", "[a-z]{70}"];
    prop::collection::btree_map(name, (inner, any::<bool>()), 1..4).prop_map(|properties| {
        let required: Vec<&String> = properties
            .iter()
            .filter(|(_, (_, required))| *required)
            .map(|(name, _)| name)
            .collect();
        let schemas: BTreeMap<&String, &Value> = properties.iter().map(|(name, (schema, _))| (name, schema)).collect();
        json!({"type": "object", "properties": schemas, "required": required})
    })
}

/// A stand-in for the model: writes a value that is valid for the schema, driven by `choices`.
struct Model {
    choices: Vec<Index>,
    at: usize,
}

impl Model {
    fn choose(&mut self, among: usize) -> usize {
        self.at += 1;
        self.choices[self.at % self.choices.len()].index(among)
    }

    fn write(&mut self, schema: &Value) -> Value {
        if let Some(branches) = schema["anyOf"].as_array() {
            let branch = self.choose(branches.len());
            return self.write(&branches[branch]);
        }
        if schema["nullable"] == true && self.choose(3) == 0 {
            return Value::Null;
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.choose(values.len())].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.choose(kinds.len())].as_str(),
            kind => kind.as_str(),
        };
        let is_json = schema["description"].as_str().unwrap_or_default().contains("JSON");
        match kind {
            Some("string") if is_json => "{}".into(),
            Some("string") => ["", "text", "{}", "5"][self.choose(4)].into(),
            Some("integer") => self.choose(99).into(),
            Some("boolean") => (self.choose(2) == 1).into(),
            Some("array") => (0..self.choose(3)).map(|_| self.write(&schema["items"])).collect(),
            Some("object") => self.object(schema),
            Some("null") => Value::Null,
            _ => json!([1, "any"]),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = schema["required"]
                .as_array()
                .is_some_and(|names| names.contains(&name.as_str().into()));
            if is_required || self.choose(2) == 0 {
                fields.insert(name.clone(), self.write(property));
            }
        }
        fields.into()
    }
}

proptest! {
    #[test]
    fn arguments_for_the_shown_schema_are_valid_for_the_own_one(
        mut own in object(schema()),
        provider in prop::sample::select(Provider::ALL.to_vec()),
        choices in prop::collection::vec(any::<Index>(), 8..40),
    ) {
        own["$defs"] = json!({"shared": {"type": "object", "properties": {"s p": {"type": "string"}}, "required": ["s p"]}});
        let definition = define(provider, own.clone());
        let written = if provider == Provider::Mcp {
            return Ok(());
        } else {
            Model { choices, at: 0 }.write(&definition.schema)
        };
        let reversed = back(&definition, written.clone());
        let validator = jsonschema::validator_for(&own).unwrap();
        let problems: Vec<String> = validator.iter_errors(&reversed).map(|error| error.to_string()).collect();
        prop_assert!(problems.is_empty(), "{provider}: {problems:?}\nown {own:#}\nshown {:#}\nwritten {written}\nturned {reversed}", definition.schema);
    }

    #[test]
    fn no_value_makes_a_conversion_panic(value in any_json(), provider in prop::sample::select(Provider::ALL.to_vec())) {
        if let Ok(root) = canonical::root(&inline_refs::inline(&value)) {
            let converted = provider.convert(&root);
            prop_assert_eq!(converted.schema["type"].as_str(), Some("object"));
            let again = provider.convert(&root);
            prop_assert_eq!(&converted.schema, &again.schema);
        }
    }
}

/// JSON values that resemble schemas.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "object",
        "string",
        "array",
        "null",
        "integer",
        "#",
        "#/properties/a",
        "^a",
        "a",
        "",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    let keys = [
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "enum",
        "const",
        "required",
        "$ref",
        "additionalProperties",
        "not",
        "minimum",
        "nullable",
        "prefixItems",
        "description",
        "default",
        "a",
        "b",
        "patternProperties",
        "$defs",
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        prop_oneof![
            3 => prop::collection::btree_map(prop::sample::select(keys.to_vec()), inner.clone(), 0..5)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}
