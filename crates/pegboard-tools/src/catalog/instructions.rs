//! Generates the part of a system prompt about servers: the operator's and the servers' instructions, prompts, notes on tools, and which
//! servers are unavailable.

mod format;
mod options;
mod section;

pub use options::{InstructionFormat, Instructions, ServerWords};
pub use section::{Section, ToolText};

use super::sanitize::{one_line, truncate};
use pegboard_base::name::ServerName;
use section::FittedSection;

/// The longest reason why a server is unavailable.
const MAX_REASON: usize = 300;

/// Renders the text about these servers, and about unavailable ones with the reason. Both are sorted by name.
pub fn render(options: &Instructions, sections: &[Section], unavailable: &[(ServerName, String)]) -> String {
    let mut sections: Vec<FittedSection> = sections
        .iter()
        .map(|section| FittedSection::fit(options, section))
        .collect();
    sections.sort_by(|a, b| a.server.cmp(&b.server));
    let reason = |(server, why): &(ServerName, String)| {
        let mut why = one_line(why);
        truncate(&mut why, MAX_REASON);
        (server.clone(), why)
    };
    let mut unavailable: Vec<_> = unavailable.iter().filter(|_| options.unavailable).map(reason).collect();
    unavailable.sort();
    format::text(options.format, &sections, &unavailable)
}

#[cfg(test)]
mod tests;
