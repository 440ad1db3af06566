//! What one view has for itself: servers of which each view has its own, and the tools that it brings along.

use std::sync::Arc;

use super::Pegboard;
use crate::{
    call::View,
    catalog::{Catalog, HeaderRule},
    config::{Scope, ServerConfig, Start},
    name::ServerName,
    native::NativeTools,
    server::Server,
    transport::Target,
};

/// The name under which the tools of a view stand, where no server has it.
const HOME: &str = "request";

impl Pegboard {
    /// The servers that only this view uses. They end with it.
    pub(super) fn own_servers(&self, view: &mut View) -> Vec<Server> {
        let servers = self.0.shelf.all();
        let own = servers
            .iter()
            .filter(|server| server.config().policy.scope == Scope::Session);
        let mut own: Vec<Server> = own.map(Server::fresh).collect();
        if let Some(roots) = view.own_roots() {
            for server in &own {
                server.set_roots(roots);
            }
        }
        if let Some(tools) = view.tools.clone() {
            let server = self.brought_along(tools, &servers);
            view.home = Some(server.name().clone());
            own.push(server);
        }
        for server in &own {
            server.belongs_to(view.name.as_deref().unwrap_or_default());
        }
        own
    }

    /// A server for tools that a view brings along. What it offers is known before it is started.
    fn brought_along(&self, tools: NativeTools, others: &[Server]) -> Server {
        let name = ServerName::free(HOME, |name| is_any(others, name));
        let mut settings = ServerConfig::in_process();
        settings.start = Start::Lazy;
        // Whoever brings a tool along wants it to be seen.
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
