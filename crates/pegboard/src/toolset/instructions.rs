//! What is told to a model about the servers of a view.

use super::{Toolset, is_known_and_resting};
use crate::{
    catalog::{self, Instructions, Section, ToolText},
    filter::fits,
    name::ServerName,
    server::{Phase, Server},
};

impl Toolset {
    /// The part of a system prompt that speaks of this view's servers: what the config says about them and their tools, what they say
    /// about themselves, their prompts, and which of them are not available. It is made of what is known now, and waits for nobody:
    /// [`Toolset::list`] first.
    ///
    /// Words of servers are cleaned of what a person would not see. In our own format only servers with `trust = true` are heard, because
    /// words of a server can tell a model anything.
    pub fn instructions(&self, options: &Instructions) -> String {
        let (tools, _) = self.tools();
        let (mut sections, mut unavailable) = (Vec::new(), Vec::new());
        for server in self.chosen() {
            let described = tools.iter().filter(|listed| listed.tool.server == *server.name());
            let described = described.map(|listed| ToolText {
                exposed: listed.name.clone(),
                name: listed.tool.name.clone(),
                description: listed.tool.description.clone(),
                note: note(&server, &listed.tool.name),
            });
            match absence(&server) {
                Absence::There => sections.push(section(&server, described.collect())),
                Absence::Missing(why) => unavailable.push((server.name().clone(), why)),
                Absence::Unwanted => {}
            }
        }
        let unavailable: Vec<(ServerName, String)> = unavailable;
        catalog::render(options, &sections, &unavailable)
    }
}

fn section(server: &Server, tools: Vec<ToolText>) -> Section {
    let (config, phase) = (server.config(), server.phase());
    let prompts = server.catalog().map(|catalog| {
        let prompts = catalog.prompts.iter();
        let prompts = prompts.map(|prompt| (prompt.name.clone(), prompt.description.clone()));
        prompts.collect()
    });
    Section {
        server: server.name().clone(),
        is_trusted: config.policy.trust,
        config: config.instructions.clone(),
        instructions: phase.live().and_then(|live| live.session.peer.instructions.clone()),
        prompts: prompts.unwrap_or_default(),
        tools,
    }
}

/// What the config says about a tool.
fn note(server: &Server, tool: &str) -> Option<String> {
    server.config().policy.of_tool(tool, fits).instructions
}

/// Whether a server's tools can be called.
enum Absence {
    There,
    Missing(String),
    /// Nobody has asked for it, or somebody does not want it.
    Unwanted,
}

fn absence(server: &Server) -> Absence {
    match server.phase() {
        Phase::Ready(_) => Absence::There,
        Phase::Idle if is_known_and_resting(server) => Absence::There,
        Phase::Down(outage) => Absence::Missing(outage.describe()),
        Phase::Connecting(_) => Absence::Missing("it is still starting".to_owned()),
        Phase::Idle | Phase::Disabled | Phase::Closed => Absence::Unwanted,
    }
}
