//! The text formats of the supported agents.

use std::fmt::Write as _;

use super::{options::InstructionFormat, section::FittedSection};
use crate::catalog::sanitize::one_line;
use pegboard_base::name::{ServerName, dunder};

/// The whole text, without a trailing newline.
pub(super) fn text(
    format: InstructionFormat,
    sections: &[FittedSection],
    unavailable: &[(ServerName, String)],
) -> String {
    let shown = sections.iter().filter(|section| !section.is_empty());
    let mut parts: Vec<String> = match format {
        InstructionFormat::Pegboard => shown.map(pegboard).collect(),
        InstructionFormat::Tarsy => shown.map(tarsy).collect(),
        InstructionFormat::AiAgent => shown.map(ai_agent).collect(),
        InstructionFormat::Goat => shown.map(goat).collect(),
        InstructionFormat::Minion => sections.iter().map(minion).filter(|part| !part.is_empty()).collect(),
    };
    if format == InstructionFormat::Goat && !parts.is_empty() {
        parts.insert(0, "# MCP Server Instructions".to_owned());
    }
    if !unavailable.is_empty() {
        parts.push(unavailable_section(format, unavailable));
    }
    parts.join("\n\n")
}

/// Quotes every line of a server's text, so that it cannot begin a section of its own.
fn quote(paragraph: &str) -> String {
    let lines: Vec<String> = paragraph
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

fn pegboard(section: &FittedSection) -> String {
    let mut text = format!("## {}", section.server);
    if let Some(paragraph) = &section.config {
        let _ = write!(text, "\n\n{paragraph}");
    }
    if let Some(paragraph) = &section.instructions {
        let _ = write!(text, "\n\nThe server says about itself:\n\n{}", quote(paragraph));
    }
    if !section.prompts.is_empty() {
        let _ = write!(text, "\n\nIts prompts:\n\n{}", quote(&list(&section.prompts)));
    }
    if section.notes().next().is_some() {
        text.push_str("\n\nNotes on its tools:\n");
        for (tool, note) in section.notes() {
            let _ = write!(text, "\n- `{}`: {note}", tool.exposed);
        }
    }
    text
}

fn tarsy(section: &FittedSection) -> String {
    let mut text = format!("## {} Instructions\n", section.server);
    for paragraph in texts(section) {
        let _ = write!(text, "\n{paragraph}");
    }
    for (tool, note) in section.notes() {
        let _ = write!(text, "\n- {}.{}: {note}", section.server, tool.name);
    }
    text
}

fn ai_agent(section: &FittedSection) -> String {
    let mut text = format!("#### MCP Server: {}", section.server);
    for paragraph in texts(section) {
        let _ = write!(text, "\n{paragraph}");
    }
    for (tool, note) in section.notes() {
        let name = dunder(section.server.as_str(), &tool.name);
        let _ = write!(text, "\n\n##### Tool: {name}\n{note}");
    }
    text
}

fn goat(section: &FittedSection) -> String {
    let mut text = format!("## {}", section.server);
    for paragraph in texts(section) {
        let _ = write!(text, "\n{paragraph}");
    }
    for (tool, note) in section.notes() {
        let _ = write!(text, "\n- {}: {note}", tool.exposed);
    }
    text
}

fn minion(section: &FittedSection) -> String {
    let server = &section.server;
    let mut lines: Vec<String> = texts(section)
        .map(|paragraph| format!("[MCP:{server}] {paragraph}"))
        .collect();
    for tool in &section.tools {
        let mut line = format!("- mcp_{server}_{}: [MCP:{server}]", tool.name);
        for paragraph in [&tool.description, &tool.note].into_iter().flatten() {
            let _ = write!(line, " {}", one_line(paragraph));
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// The instructions of the config and of the server, and the prompts.
fn texts(section: &FittedSection) -> impl Iterator<Item = String> {
    let prompts = (!section.prompts.is_empty()).then(|| list(&section.prompts));
    let texts = [section.config.clone(), section.instructions.clone(), prompts];
    texts.into_iter().flatten()
}

fn list(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| format!("- {line}")).collect();
    lines.join("\n")
}

fn unavailable_section(format: InstructionFormat, unavailable: &[(ServerName, String)]) -> String {
    let lines: Vec<_> = unavailable
        .iter()
        .map(|(server, why)| format!("- **{server}**: {why}"))
        .collect();
    let lines = lines.join("\n");
    match format {
        InstructionFormat::Tarsy => format!(
            "## Unavailable MCP Servers\n\nThe following servers failed to initialize and their tools are NOT available:\n{lines}\n\n\
             Do not attempt to use tools from these servers."
        ),
        InstructionFormat::AiAgent => format!("#### Unavailable MCP Servers\n{lines}"),
        InstructionFormat::Pegboard | InstructionFormat::Goat | InstructionFormat::Minion => {
            format!("## Unavailable MCP Servers\n\nTools of these servers cannot be called at the moment:\n\n{lines}")
        }
    }
}
