//! What servers and tools are, as far as it is known: for programs that pass requests on.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::toolset_handle::Toolset;
use crate::{catalog::Tool, name, outcome::Failure, status::Era};

/// What a server says about itself. Secrets are masked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerDescription {
    /// The protocol era of its connection.
    pub era: Era,
    /// The protocol version of its connection.
    pub version: String,
    /// The capabilities that it declares.
    pub capabilities: Map<String, Value>,
    /// Its name, version and so on.
    pub info: Map<String, Value>,
    /// Its instructions, unless they are held until a person accepts them.
    pub instructions: Option<String>,
}

/// A tool that is known now.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct KnownTool {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The protocol era of its server, while that is connected.
    pub era: Option<Era>,
}

impl KnownTool {
    /// Creates the value for a tool whose server is not connected.
    pub fn new(tool: Arc<Tool>) -> Self {
        Self { tool, era: None }
    }
}

impl Toolset {
    /// Returns what a server says about itself. The server is started and waited for if needed.
    pub async fn describe_server(&self, server: impl AsRef<str>) -> Result<ServerDescription, Failure> {
        let name = &self.server_name(server.as_ref())?;
        let (server, live) = self.ready_server(name).await?;
        let peer = &live.session.peer;
        let mut capabilities = Value::Object(peer.capabilities.clone());
        live.session.masker().current().value(&mut capabilities);
        let mut info = Map::new();
        if let Some(declared) = &peer.info {
            info.insert("name".to_owned(), declared.name.clone().into());
            info.insert("version".to_owned(), declared.version.clone().into());
        }
        Ok(ServerDescription {
            era: peer.era,
            version: peer.version.to_string(),
            capabilities: capabilities.as_object().cloned().unwrap_or_default(),
            info,
            instructions: server.instructions(),
        })
    }

    /// Returns the tool that `name` means, if it is known now. It starts no server and waits for none.
    pub fn known_tool(&self, name: &str) -> Option<KnownTool> {
        let route = self.known_route(name).ok()??;
        let era = route.server.phase().live().map(|live| live.session.peer.era);
        Some(KnownTool {
            tool: route.tool.clone(),
            era,
        })
    }

    /// Names pairs of a server and, say, a prompt of it as the view names tools. Different pairs get different names.
    pub fn exposed_names(&self, pairs: &[(&str, &str)]) -> Vec<String> {
        let (style, rules) = self.view.names();
        name::expose(pairs, &style, &rules)
    }
}
