//! The order in which a server lists the arguments of a tool. Schemas are stored with sorted keys, so it is kept beside them.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::sanitize::has_invisible;

/// The order in which a server lists the arguments of a tool, if it is known: for each place the position among the sorted names. Tools that
/// differ only in it are equal, because a server may list its arguments in another order after each start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ArgumentOrder(Option<Box<[u16]>>);

impl PartialEq for ArgumentOrder {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ArgumentOrder {
    /// The order of arguments whose position among the sorted ones is given for each place.
    pub(super) fn new(positions: Box<[u16]>) -> Self {
        Self(Some(positions))
    }

    /// The order in a definition of a tool, as its server wrote it.
    pub(super) fn read(text: &[u8]) -> Self {
        let definition: Definition = serde_json::from_slice(text).unwrap_or_default();
        let KeyOrder(names) = definition.input_schema.properties;
        // A name that is shown without its invisible characters may be sorted elsewhere.
        if names.len() > usize::from(u16::MAX) || names.iter().any(|name| has_invisible(name)) {
            return Self::default();
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Self::default();
        }
        let position = |name: &String| sorted.binary_search(&name).map_or(0, |at| at as u16);
        Self::new(names.iter().map(position).collect())
    }

    /// Whether the server lists them sorted.
    pub(super) fn is_sorted(&self) -> bool {
        self.0.as_ref().is_some_and(|positions| positions.is_sorted())
    }

    /// What is sorted by name in this order, if it is one of as many names.
    pub(super) fn apply<T: Clone>(&self, sorted: &[T]) -> Option<Vec<T>> {
        let positions = self.0.as_deref().filter(|positions| positions.len() == sorted.len())?;
        positions
            .iter()
            .map(|at| sorted.get(usize::from(*at)).cloned())
            .collect()
    }
}

/// What the order needs of a definition.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Definition {
    #[serde(rename = "inputSchema")]
    input_schema: InputSchema,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputSchema {
    properties: KeyOrder,
}

/// The keys of an object, in their order.
#[derive(Default)]
struct KeyOrder(Vec<String>);

impl<'de> Deserialize<'de> for KeyOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = KeyOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyOrder, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(KeyOrder(names))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::catalog::{Catalog, HeaderRule, Item, ListedTools, Tool};
    use pegboard_base::{name::ServerName, secret::Secret};
    use pegboard_mask::{Masker, Masking};

    fn listed(definition: &str) -> Tool {
        let server = ServerName::parse("fx").unwrap();
        let masker = Masker::new(&Masking::default(), [Secret::new("hunter2hunter2")]).unwrap();
        let mut listed = ListedTools::new(&server, HeaderRule::Enforced, Some(masker));
        listed.read(vec![Item::Text(definition.to_owned().into())]);
        let mut catalog = Catalog::default();
        catalog.take_tools(listed);
        (*catalog.tools[0]).clone()
    }

    fn defined(properties: &str, more: &str) -> String {
        format!(
            r#"{{"name":"t","inputSchema":{{"required":["b"],"properties":{properties},"type":"object"}},{more}"title":"T"}}"#
        )
    }

    #[test]
    fn arguments_keep_the_order_of_their_server() {
        let properties = r#"{"source":{"type":"string"},"destination":{"properties":{"z":{},"y":{}}},"mode":{}}"#;
        // The second one is parsed by way of a tree.
        for more in ["", r#""description":"a\u200bb","#] {
            let tool = listed(&defined(properties, more));
            assert_eq!(tool.argument_names().unwrap(), ["source", "destination", "mode"]);
            let text = tool.input_schema_as_listed();
            assert!(
                text.starts_with(r#"{"properties":{"source":{"type":"string"},"destination":{"#),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), tool.input_schema.value());
            assert_eq!(tool.input_schema.as_str(), tool.input_schema.value().to_string());
        }
    }

    #[test]
    fn sorted_arguments_and_none_have_an_order_too() {
        let tool = listed(&defined(r#"{"a":{},"b":{}}"#, ""));
        assert_eq!(tool.argument_names().unwrap(), ["a", "b"]);
        assert_eq!(tool.input_schema_as_listed(), tool.input_schema.as_str());
        let tool = listed(r#"{"name":"t","inputSchema":{"type":"object"}}"#);
        assert_eq!(tool.argument_names().unwrap(), [""; 0]);
    }

    #[test]
    fn an_order_that_is_not_certain_is_not_known() {
        for (properties, why) in [
            (r#"{"b":{},"a":{},"b":{}}"#, "a name twice"),
            ("{\"b\":{},\"a\u{200b}\":{}}", "an invisible character"),
            (r#"{"b":{},"hunter2hunter2":{}}"#, "a name that is masked"),
        ] {
            let tool = listed(&defined(properties, ""));
            assert_eq!(tool.argument_names(), None, "{why}");
            assert_eq!(tool.input_schema_as_listed(), tool.input_schema.as_str(), "{why}");
        }
        let server = ServerName::parse("fx").unwrap();
        let tree = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"b": {}, "a": {}}}});
        assert_eq!(Tool::from_definition(&server, tree).unwrap().argument_names(), None);
    }

    #[test]
    fn tools_that_differ_in_the_order_of_arguments_are_equal() {
        let one = listed(&defined(r#"{"a":{},"b":{}}"#, ""));
        let other = listed(&defined(r#"{"b":{},"a":{}}"#, ""));
        assert_eq!(one, other);
        assert_eq!(one.definition_hash(), other.definition_hash());
        assert_ne!(one.argument_names(), other.argument_names());
    }
}
