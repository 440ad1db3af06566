//! The text about a view's servers for a system prompt.

use super::{lister::Lister, open_view::OpenView};
use crate::server::{Phase, Server};
use pegboard_base::name::ServerName;
use pegboard_tools::{
    catalog::{self, Instructions, Section, ToolText},
    filter::fits,
};

/// Writes the part of a system prompt about a view's servers.
pub(super) fn write_instructions(open: &OpenView, options: &Instructions) -> String {
    let (tools, _) = Lister::new(open).list_tools();
    let (mut sections, mut unavailable) = (Vec::new(), Vec::new());
    for server in open.selected_servers() {
        let described = tools.iter().filter(|listed| listed.tool.server == *server.name());
        let described = described.map(|listed| ToolText {
            exposed: listed.name.clone(),
            name: listed.tool.name.clone(),
            description: listed.tool.description.clone(),
            note: note(&server, &listed.tool.name),
        });
        match instruction_entry(&server, Lister::new(open)) {
            InstructionEntry::Section => sections.push(section(&server, described.collect())),
            InstructionEntry::Unavailable(why) => unavailable.push((server.name().clone(), why)),
            InstructionEntry::Omitted => {}
        }
    }
    let unavailable: Vec<(ServerName, String)> = unavailable;
    catalog::render(options, &sections, &unavailable)
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
        instructions: server.listing().instructions(),
        prompts: prompts.unwrap_or_default(),
        tools,
    }
}

/// The config's instructions for a tool.
fn note(server: &Server, tool: &str) -> Option<String> {
    server.config().policy.for_tool(tool, fits).instructions
}

/// How a server appears in the instructions.
enum InstructionEntry {
    Section,
    Unavailable(String),
    /// Not connected yet, disabled or closed.
    Omitted,
}

fn instruction_entry(server: &Server, lister: Lister<'_>) -> InstructionEntry {
    match server.phase() {
        Phase::Ready(_) => InstructionEntry::Section,
        Phase::Idle | Phase::Connecting(_) if lister.is_listed(server) => InstructionEntry::Section,
        Phase::Down(outage) => InstructionEntry::Unavailable(outage.describe()),
        Phase::Connecting(attempt) => match &attempt.after {
            Some(outage) => InstructionEntry::Unavailable(outage.describe()),
            // It may be ready before the model reads this.
            None => InstructionEntry::Omitted,
        },
        Phase::Idle | Phase::Disabled | Phase::Closed => InstructionEntry::Omitted,
    }
}
