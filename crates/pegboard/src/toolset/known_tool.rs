//! What is known of a view's tools without waiting for their servers.

use std::sync::Arc;

use super::{builtin_definitions::ResourceTools, builtin_tools, toolset_handle::Toolset};
use crate::call;
use crate::status::Era;
use pegboard_base::name::{self, ServerName};
use pegboard_tools::catalog::Tool;

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
    /// Returns the tool that `name` means, if it is known now. It starts no server and waits for none.
    pub fn known_tool(&self, name: &str) -> Option<KnownTool> {
        let route = self.known_route(name).ok()??;
        let era = route.server.phase().live().map(|live| live.session.peer.era);
        Some(KnownTool {
            tool: route.tool.clone(),
            era,
        })
    }

    /// The server that the name of a tool refers to. The tool need not be known: a server that waits for a sign-in has not listed any. `None` if
    /// no server of the view fits, or several do.
    pub fn server_of(&self, name: &str) -> Option<ServerName> {
        if let Ok(Some(route)) = self.known_route(name) {
            return Some(route.tool.server.clone());
        }
        let mut servers = self.selected_servers();
        servers.retain(|server| call::may_belong_to(name, server.name()));
        match servers.as_slice() {
            [server] => Some(server.name().clone()),
            _ => None,
        }
    }

    /// The servers of the view that wait for a sign-in, as far as is known now. It starts no server.
    pub fn awaiting_sign_in(&self) -> Vec<ServerName> {
        let mut servers = self.selected_servers();
        servers.retain(|server| server.phase().awaits_sign_in());
        servers.iter().map(|server| server.name().clone()).collect()
    }

    /// Returns `true` if `name` means a built-in tool of the view, such as `find_tools` or `read_output`.
    pub fn is_built_in(&self, name: &str) -> bool {
        let outputs = &self.view.result_options;
        self.snapshot(|snapshot| {
            let discovery = self.view.tool_budget.is_some().then(|| snapshot.discovery.all());
            let resources = snapshot.resources.as_ref().map(ResourceTools::all);
            let reader = (outputs.always_readable || outputs.spill.is_used()).then_some(&snapshot.read_output);
            let mut tools = discovery.into_iter().chain(resources).flatten().chain(reader);
            tools.any(|tool| builtin_tools::matches(name, tool, &snapshot.table, self.view.audience))
        })
    }

    /// Names pairs of a server and, say, one of its prompts as the view names tools. Different pairs get different names.
    pub fn exposed_names(&self, pairs: &[(&str, &str)]) -> Vec<String> {
        let (style, rules) = self.view.names();
        name::expose(pairs, &style, &rules)
    }
}
