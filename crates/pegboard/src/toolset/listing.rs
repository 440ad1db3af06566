//! Listed tools, and the servers whose tools cannot be listed.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value};

use crate::{
    call::Route,
    catalog::{Risk, Schema, Tool, ToolKind},
    name::ServerName,
    provider::{Definition, Provider},
    server::{Outage, Server},
    status::State,
};

/// How many bytes of a definition are taken for one token.
const BYTES_PER_TOKEN: usize = 4;

/// What can be called, and what cannot be and why.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The tools by server, then by name.
    pub tools: Vec<ListedTool>,
    /// The servers whose tools are not among them.
    pub unavailable: Vec<Unavailable>,
    /// What was wrong with the listings.
    pub warnings: Vec<String>,
    /// Those warnings that tell which tools cannot be offered to the view's provider, and why.
    #[serde(skip)]
    pub quarantined: Vec<String>,
    /// Whose API the tools are listed for.
    #[serde(skip)]
    pub(super) provider: Provider,
}

impl Listing {
    /// The tools as the view's provider takes them: exactly the array for the `tools` of its API.
    pub fn definitions(&self) -> Vec<Value> {
        if self.provider == Provider::Mcp {
            return self.tools.iter().map(ListedTool::as_mcp).collect();
        }
        let defined = self.tools.iter().filter_map(|listed| {
            let definition = listed.definition.as_deref()?;
            Some((listed.name.as_str(), definition))
        });
        self.provider.list(defined)
    }
}

/// A tool and the name that models see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListedTool {
    /// The name that models see.
    pub name: String,
    /// The tool.
    pub tool: Arc<Tool>,
    /// The tool as the view's provider takes it, if that is not how its server defined it.
    pub definition: Option<Arc<Definition>>,
    /// Whose tool it is.
    pub kind: ToolKind,
    /// How much harm a call may do. Annotations of an MCP server lower it only if the server's config says `trust = true`.
    pub risk: Risk,
}

impl ListedTool {
    pub(super) fn of(route: &Route) -> Self {
        let is_believed = route.is_believed(&route.server.config_snapshot().policy);
        Self {
            kind: route.kind,
            risk: route.tool.risk(is_believed),
            name: route.name.clone(),
            tool: route.tool.clone(),
            definition: route.definition.clone(),
        }
    }

    /// The tool as MCP writes it, under the name that models see.
    fn as_mcp(&self) -> Value {
        let tool = &self.tool;
        let mut shown = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown.insert(key.to_owned(), value);
            }
        };
        put("name", Some(self.name.clone().into()));
        put("title", tool.title.clone().map(Value::from));
        put("description", tool.description.clone().map(Value::from));
        put("inputSchema", Some(tool.input_schema.value()));
        put("outputSchema", tool.output_schema.as_ref().map(Schema::value));
        put("annotations", tool.annotations.clone().map(Value::from));
        shown.into()
    }

    /// About how many tokens the definition takes: its name, description and schema.
    pub fn tokens(&self) -> usize {
        let description = self.tool.description.as_ref().map_or(0, String::len);
        let bytes = self.name.len() + description + self.tool.input_schema.as_str().len();
        bytes.div_ceil(BYTES_PER_TOKEN)
    }
}

impl Serialize for ListedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.tool;
        let mut listed = serializer.serialize_struct("ListedTool", 10)?;
        listed.serialize_field("name", &self.name)?;
        listed.serialize_field("server", &tool.server)?;
        listed.serialize_field("tool", &tool.name)?;
        listed.serialize_field("title", &tool.title)?;
        listed.serialize_field("description", &tool.description)?;
        listed.serialize_field("input_schema", &tool.input_schema)?;
        listed.serialize_field("output_schema", &tool.output_schema)?;
        listed.serialize_field("annotations", &tool.annotations)?;
        listed.serialize_field("kind", &self.kind)?;
        listed.serialize_field("risk", &self.risk)?;
        listed.end()
    }
}

/// A server whose tools cannot be listed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Unavailable {
    /// The server.
    pub server: ServerName,
    /// Where its life stands.
    pub state: State,
    /// What failed.
    pub error: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

impl Unavailable {
    pub(crate) fn of(server: &Server, outage: &Outage) -> Self {
        Self {
            server: server.name().clone(),
            state: server.phase().state(),
            error: outage.describe(),
            hint: outage.hint.clone(),
        }
    }
}
