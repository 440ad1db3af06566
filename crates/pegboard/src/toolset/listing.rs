//! Listed tools, and servers whose tools cannot be listed.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value};

use crate::status::State;
use crate::{
    call::Route,
    server::{Outage, Server},
};
use pegboard_base::{
    diagnosis::{Code, Diagnosis},
    name::ServerName,
};
use pegboard_tools::{
    catalog::{ListWarning, Risk, Schema, Tool, ToolKind},
    provider::{Definition, Provider},
};

/// An estimate of the bytes per token of a definition.
const BYTES_PER_TOKEN: usize = 4;

/// The available tools, and why others are unavailable.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The tools by server, then by name.
    pub tools: Vec<ListedTool>,
    /// The servers whose tools are missing.
    pub unavailable: Vec<Unavailable>,
    /// Problems of the listings, in words.
    pub warnings: Vec<String>,
    /// Problems of the listings, as data. Decide by their codes, not by the words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ListWarning>,
    /// The warnings about tools that cannot be offered to the view's provider.
    #[serde(skip)]
    pub quarantined: Vec<String>,
    /// The provider that the tools are listed for.
    #[serde(skip)]
    pub(super) provider: Provider,
}

impl Listing {
    /// Creates a listing of these tools, in MCP's format.
    pub fn from_tools(tools: impl IntoIterator<Item = ListedTool>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            unavailable: Vec::new(),
            warnings: Vec::new(),
            problems: Vec::new(),
            quarantined: Vec::new(),
            provider: Provider::Mcp,
        }
    }

    /// Lists the tools for a provider. Tools that cannot be offered to it are moved to the warnings.
    #[must_use]
    pub fn for_provider(mut self, provider: Provider) -> Self {
        if self.provider != provider {
            self.provider = provider;
            self.tools.iter_mut().for_each(|listed| listed.definition = None);
        }
        self.define_missing();
        self
    }

    /// Defines the tools without a definition for the provider. Those that cannot be offered to it are moved to the warnings.
    pub(super) fn define_missing(&mut self) {
        let provider = self.provider;
        if provider == Provider::Mcp {
            return;
        }
        let mut refused = Vec::new();
        self.tools.retain_mut(|listed| {
            if listed.definition.is_none() {
                match provider.define(&listed.tool, None) {
                    Ok(definition) => listed.definition = Some(Arc::new(definition)),
                    Err(why) => refused.push(format!("tool `{}` is not offered to {provider}: {why}", listed.name)),
                }
            }
            listed.definition.is_some()
        });
        for warning in &refused {
            self.warn(ListWarning::new(Code::SchemaRefused, warning.as_str()));
        }
        self.quarantined.extend(refused);
    }

    /// Adds a problem.
    pub(super) fn warn(&mut self, problem: ListWarning) {
        self.warnings.push(problem.to_string());
        self.problems.push(problem);
    }

    /// The tools in the provider's format: exactly the array for the `tools` field of its API.
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

/// The tools.
impl IntoIterator for Listing {
    type Item = ListedTool;
    type IntoIter = std::vec::IntoIter<ListedTool>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

/// The tools.
impl<'a> IntoIterator for &'a Listing {
    type Item = &'a ListedTool;
    type IntoIter = std::slice::Iter<'a, ListedTool>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.iter()
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
    /// The definition for the view's provider, if it differs from the server's.
    pub definition: Option<Arc<Definition>>,
    /// Whether it is a tool of an MCP server, of this program, or a built-in one.
    pub kind: ToolKind,
    /// How much harm a call may do. Annotations of an MCP server lower it only if the server's config says `trust = true`.
    pub risk: Risk,
    /// Whether its server can be called now, as far as is known. `false` only in a view that keeps the tools of servers that are down
    /// ([`View::catalog_only`](crate::View::catalog_only), [`View::list_known`](crate::View::list_known)).
    pub available: bool,
}

/// The server name of tools that have no server.
const NO_SERVER: &str = "local";

impl ListedTool {
    /// Creates a tool of this program from its name, its description and the JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Result<Self, InvalidTool> {
        let server = ServerName::parse(NO_SERVER).map_err(|error| InvalidTool(error.to_string()))?;
        let name = name.into();
        Self::from_parts(&server, &name, &name, Some(description.into()), schema)
    }

    /// Creates a tool of a server that is listed as `name`.
    pub(super) fn from_parts(
        server: &ServerName,
        tool: &str,
        name: &str,
        description: Option<String>,
        schema: Value,
    ) -> Result<Self, InvalidTool> {
        let mut definition = Map::new();
        definition.insert("name".to_owned(), tool.into());
        definition.insert("inputSchema".to_owned(), schema);
        if let Some(description) = description {
            definition.insert("description".to_owned(), description.into());
        }
        let tool = Tool::parse_built_in(server, definition.into()).map_err(InvalidTool)?;
        Ok(Self {
            kind: ToolKind::Native,
            risk: tool.risk(true),
            name: name.to_owned(),
            tool: Arc::new(tool),
            definition: None,
            available: true,
        })
    }

    pub(super) fn from_route(route: &Route) -> Self {
        let is_believed = route.is_believed(&route.server.config_snapshot().policy);
        Self {
            kind: route.kind,
            risk: route.tool.risk(is_believed),
            name: route.name.clone(),
            tool: route.tool.clone(),
            definition: route.definition.clone(),
            available: true,
        }
    }

    /// The tool in MCP's format, under the name that models see.
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

    /// An estimate of the tokens of the definition: its name, description and schema.
    pub fn tokens(&self) -> usize {
        let description = self.tool.description.as_ref().map_or(0, String::len);
        let bytes = self.name.len() + description + self.tool.input_schema.as_str().len();
        bytes.div_ceil(BYTES_PER_TOKEN)
    }
}

impl Serialize for ListedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.tool;
        let mut listed = serializer.serialize_struct("ListedTool", 10 + usize::from(!self.available))?;
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
        if !self.available {
            listed.serialize_field("available", &false)?;
        }
        listed.end()
    }
}

/// A tool cannot be listed: its name or its schema is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool cannot be listed: {0}")]
pub struct InvalidTool(String);

impl InvalidTool {
    pub(super) fn new(problem: String) -> Self {
        Self(problem)
    }
}

/// A server whose tools cannot be listed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Unavailable {
    /// The server.
    pub server: ServerName,
    /// The server's state.
    pub state: State,
    /// What failed.
    pub error: String,
    /// What an operator can do about it.
    pub hint: Option<String>,
    /// The stable word for what is wrong, such as `connection-refused`.
    pub code: Option<Code>,
    /// What is wrong, as data. Decide by its code, not by the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
}

impl Unavailable {
    /// Creates the entry of a server that is down.
    pub fn new(server: ServerName, error: impl Into<String>) -> Self {
        Self {
            server,
            state: State::Down,
            error: error.into(),
            hint: None,
            code: None,
            diagnosis: None,
        }
    }

    pub(crate) fn from_outage(server: &Server, outage: &Outage) -> Self {
        Self {
            server: server.name().clone(),
            state: server.reported_phase().state(),
            error: outage.describe(),
            hint: outage.hint.clone(),
            code: Some(outage.diagnosis_code()),
            diagnosis: Some(Box::new(outage.diagnosis(server.name().as_str()))),
        }
    }
}
