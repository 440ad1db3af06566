//! The order of the keys of a JSON document, which a tree of values does not keep.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Where the keys of a document are.
#[derive(Debug)]
pub(super) enum Order {
    /// A value without keys.
    Leaf,
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Order {
    /// The text of a document with its keys in this order. Keys that are not known to it come last.
    pub(super) fn text(&self, value: &Value) -> String {
        let mut text = String::new();
        self.write(value, &mut text);
        text
    }

    fn write(&self, value: &Value, text: &mut String) {
        match (self, value) {
            (Self::List(orders), Value::Array(items)) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    orders.get(index).unwrap_or(&Self::Leaf).write(item, text);
                }
                text.push(']');
            }
            (Self::Table(orders), Value::Object(table)) => {
                let known: BTreeSet<&String> = orders.iter().map(|(key, _)| key).collect();
                let rest = table.keys().filter(|key| !known.contains(key));
                let rest = rest.map(|key| (key, &Self::Leaf));
                let fields = orders.iter().map(|(key, order)| (key, order)).chain(rest);
                text.push('{');
                let mut is_first = true;
                for (key, order) in fields {
                    let Some(value) = table.get(key) else { continue };
                    if !is_first {
                        text.push(',');
                    }
                    is_first = false;
                    text.push_str(&Value::from(key.as_str()).to_string());
                    text.push(':');
                    order.write(value, text);
                }
                text.push('}');
            }
            (_, value) => text.push_str(&value.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RecordingReader)
    }
}

struct RecordingReader;

impl<'de> Visitor<'de> for RecordingReader {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Order, A::Error> {
        let mut orders = Vec::new();
        while let Some(order) = items.next_element()? {
            orders.push(order);
        }
        Ok(Order::List(orders))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Order, A::Error> {
        let mut orders: Vec<(String, Order)> = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some((key, order)) = fields.next_entry::<String, Order>()? {
            // A key that is there twice has one value in a tree.
            if seen.insert(key.clone()) {
                orders.push((key, order));
            }
        }
        Ok(Order::Table(orders))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_stay_where_they_were_while_values_change() {
        let text = r#"{"z":[{"b":1,"a":"\u00e9"}],"a":null,"z2":{"y":true,"x":-1.5},"a":2}"#;
        let order: Order = serde_json::from_str(text).unwrap();
        let mut value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            order.text(&value),
            r#"{"z":[{"b":1,"a":"é"}],"a":2,"z2":{"y":true,"x":-1.5}}"#
        );
        value["z"][0]["a"] = json!("[MASKED]");
        value["new"] = json!({"k": 1});
        value["z2"] = json!("gone");
        assert_eq!(
            order.text(&value),
            r#"{"z":[{"b":1,"a":"[MASKED]"}],"a":2,"z2":"gone","new":{"k":1}}"#
        );
    }
}
