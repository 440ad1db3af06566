//! Converts tools from and to rmcp's type.

use std::{borrow::Cow, sync::Arc};

use ::rmcp::model::{self, MetaObject};
use serde_json::{Map, Value};

use super::{
    content::{json, parse},
    not_convertible::NotConvertible,
};
use crate::catalog::{Schema, Tool};
use pegboard_base::name::ServerName;

/// The tool under the name that its server uses. Lost are the server's name, annotations that are not as the protocol defines them, and fields
/// that rmcp's type does not have, such as `execution`. If icons and `_meta` together are longer than 4 KiB, they are lost too.
impl From<&Tool> for model::Tool {
    fn from(tool: &Tool) -> Self {
        let description = tool.description.clone().map(Cow::Owned);
        let mut converted = Self::new_with_raw(tool.name.clone(), description, schema(&tool.input_schema));
        converted.title = tool.title.clone();
        converted.output_schema = tool.output_schema.as_ref().map(schema);
        converted.annotations = parse(tool.annotations.clone().map(Value::Object));
        let mut more: Map<String, Value> = tool
            .more
            .as_deref()
            .and_then(|more| serde_json::from_str(more).ok())
            .unwrap_or_default();
        converted.icons = parse(more.remove("icons"));
        converted.meta = match more.remove("_meta") {
            Some(Value::Object(meta)) => Some(MetaObject(meta)),
            _ => None,
        };
        converted
    }
}

/// The tool as if `server` listed it. Fails where the board would leave it out of a listing: an invalid name, or a schema that is invalid or
/// too large.
impl TryFrom<(ServerName, model::Tool)> for Tool {
    type Error = NotConvertible;

    fn try_from((server, tool): (ServerName, model::Tool)) -> Result<Self, NotConvertible> {
        let what = format!("tool `{}`", tool.name.escape_debug());
        Self::parse_built_in(&server, json(&tool)).map_err(|problem| NotConvertible::new(what, problem))
    }
}

fn schema(schema: &Schema) -> Arc<model::JsonObject> {
    Arc::new(match schema.value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    })
}
