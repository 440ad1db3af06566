//! Opening a view: its name, its own servers and the tools that it brings along.

use std::sync::{Arc, PoisonError};

use super::Pegboard;
use crate::{
    call::View,
    catalog::{Catalog, HeaderRule},
    config::{Scope, ServerConfig, Start},
    name::ServerName,
    native::NativeTools,
    server::Server,
    toolset::Toolset,
    transport::Target,
};

/// The name under which the tools of a view stand, where no server has it.
const HOME: &str = "request";

impl Pegboard {
    /// A view of all servers for one agent. A server whose scope is `session` is started for each view and ends with it.
    pub fn toolset(&self) -> Toolset {
        self.toolset_with(View::new())
    }

    /// A view for one agent, with settings of its own.
    pub fn toolset_with(&self, mut view: View) -> Toolset {
        let people = &self.0.people;
        view.rules.begin(people.approver.as_ref(), &people.agreed);
        view.embeddings = view.embeddings.or_else(|| self.0.embeddings.clone());
        let brought = view.tools.clone().map(|tools| self.brought_along(tools));
        view.home = brought.as_ref().map(|server| server.name().clone());
        let own = self
            .0
            .registry
            .open_view(view.name.as_deref(), view.own_roots(), brought);
        let naming = self.0.naming.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Toolset::new(own, view.with_default_naming(&naming))
    }

    /// A server for tools that a view brings along. What it offers is known before it is started.
    fn brought_along(&self, tools: NativeTools) -> Server {
        let servers = self.0.registry.configured();
        let name = ServerName::free(HOME, |name| is_any(&servers, name));
        let mut settings = ServerConfig::in_process();
        settings.start = Start::Lazy;
        settings.policy.scope = Scope::Session;
        // A view that brings a tool along wants its model to see it.
        settings.policy.always_load = vec!["*".to_owned()];
        let mut catalog = Catalog::default();
        catalog.read_tools(&name, tools.items(), HeaderRule::Ignored);
        let server = self.0.maker.make(name, Target::InProcess(Arc::new(tools)), settings, 0);
        server.presume(catalog);
        server
    }
}

/// Whether a server has this name, in upper or lower case.
fn is_any(servers: &[Server], name: &str) -> bool {
    let mut names = servers.iter().map(|server| server.name().as_str());
    names.any(|taken| taken.eq_ignore_ascii_case(name))
}
