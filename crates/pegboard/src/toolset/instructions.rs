//! The text about a view's servers for a system prompt.

use super::{list_tools::is_listed_while_idle, toolset_handle::Toolset};
use crate::server::{Phase, Server};
use pegboard_base::name::ServerName;
use pegboard_tools::{
    catalog::{self, Instructions, Section, ToolText},
    filter::fits,
};

impl Toolset {
    /// Returns the part of a system prompt about this view's servers: instructions of the config for them and their tools, the servers' own
    /// instructions, their prompts, and which servers are unavailable. It does not wait for servers and leaves out those that start
    /// for the first time, so call [`Toolset::list`] first.
    ///
    /// Invisible characters are removed from the servers' texts. In our own format only the texts of servers with `trust = true` are
    /// included, because a server's text can instruct a model to do anything.
    pub fn instructions(&self, options: &Instructions) -> String {
        let (tools, _) = self.tools();
        let (mut sections, mut unavailable) = (Vec::new(), Vec::new());
        for server in self.selected_servers() {
            let described = tools.iter().filter(|listed| listed.tool.server == *server.name());
            let described = described.map(|listed| ToolText {
                exposed: listed.name.clone(),
                name: listed.tool.name.clone(),
                description: listed.tool.description.clone(),
                note: note(&server, &listed.tool.name),
            });
            match instruction_entry(&server) {
                InstructionEntry::Section => sections.push(section(&server, described.collect())),
                InstructionEntry::Unavailable(why) => unavailable.push((server.name().clone(), why)),
                InstructionEntry::Omitted => {}
            }
        }
        let unavailable: Vec<(ServerName, String)> = unavailable;
        catalog::render(options, &sections, &unavailable)
    }
}

fn section(server: &Server, tools: Vec<ToolText>) -> Section {
    let config = server.config();
    let prompts = server.catalog().map(|catalog| {
        let prompts = catalog.prompts.iter();
        let prompts = prompts.map(|prompt| (prompt.name.clone(), prompt.description.clone()));
        prompts.collect()
    });
    Section {
        server: server.name().clone(),
        is_trusted: config.policy.trust,
        config: config.instructions.clone(),
        instructions: server.instructions(),
        prompts: prompts.unwrap_or_default(),
        tools,
    }
}

/// The config's instructions for a tool.
fn note(server: &Server, tool: &str) -> Option<String> {
    server.config().policy.of_tool(tool, fits).instructions
}

/// How a server appears in the instructions.
enum InstructionEntry {
    Section,
    Unavailable(String),
    /// Not connected yet, disabled or closed.
    Omitted,
}

fn instruction_entry(server: &Server) -> InstructionEntry {
    match server.phase() {
        Phase::Ready(_) => InstructionEntry::Section,
        Phase::Idle if is_listed_while_idle(server) => InstructionEntry::Section,
        Phase::Down(outage) => InstructionEntry::Unavailable(outage.describe()),
        Phase::Connecting(attempt) => match &attempt.after {
            Some(outage) => InstructionEntry::Unavailable(outage.describe()),
            // It may be ready before the model reads this.
            None => InstructionEntry::Omitted,
        },
        Phase::Idle | Phase::Disabled | Phase::Closed => InstructionEntry::Omitted,
    }
}
