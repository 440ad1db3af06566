//! The report as text and as JSON.

use serde_json::{Value, json};

use super::{
    finding::{Finding, Fixes, ReportLine, ReportSection},
    kinds::{self, Level},
};
use crate::{
    output::{self, Paint, one_line, wrap, wrap_message},
    settings::in_short,
};

/// The least width of the text column, however narrow the terminal.
const MIN_TEXT: usize = 30;
/// The width of a level and the space after it.
const LEVEL: usize = 9;

/// The number of findings of a level.
pub(super) fn count(sections: &[ReportSection], level: Level) -> usize {
    let lines = sections.iter().flat_map(|section| &section.lines);
    lines.filter(|line| line.level() == level).count()
}

pub(super) fn json(sections: &[ReportSection], fixes: &Fixes) -> Value {
    let servers = sections.iter().filter(|section| section.server.is_some());
    let machine = sections.iter().filter(|section| section.server.is_none());
    let steps: Vec<Value> = machine
        .flat_map(|section| &section.lines)
        .map(ReportLine::json)
        .collect();
    json!({
        "ok": count(sections, Level::Problem) == 0,
        "problems": count(sections, Level::Problem),
        "warnings": count(sections, Level::Warning),
        "servers": servers.map(ReportSection::json).collect::<Vec<Value>>(),
        "machine": steps,
        "fixed": fixes.fixed,
        "would_fix": fixes.would,
    })
}

/// How much of the report is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What is wrong, and the names of what is fine.
    Findings,
    /// Every step.
    Steps,
}

/// The report on a terminal.
pub(super) fn show(sections: &[ReportSection], detail: Detail) -> String {
    text(sections, detail, output::width(), Paint::detect(&std::io::stdout()))
}

/// The report for people, problems first. `width` is that of the terminal; without one, lines are as long as they are.
pub(super) fn text(sections: &[ReportSection], detail: Detail, width: Option<usize>, paint: Paint) -> String {
    let mut shown: Vec<&ReportSection> = sections.iter().filter(|section| !section.lines.is_empty()).collect();
    shown.sort_by_key(|section| match section.level() {
        Level::Problem => 0,
        Level::Warning => 1,
        Level::Ok => 2,
    });
    if detail == Detail::Steps {
        return steps(&shown, detail, width, paint);
    }
    let (fine, with_findings): (Vec<_>, Vec<_>) = shown.into_iter().partition(|section| section.level() == Level::Ok);
    let (unapproved, with_findings): (Vec<_>, Vec<_>) = with_findings.into_iter().partition(|one| waits(one));
    let merged = merge(&unapproved);
    let unapproved = merged.as_ref().map_or(unapproved, |merged| vec![merged]);
    let mut text = steps(&[unapproved, with_findings].concat(), detail, width, paint);
    for (label, is_off) in [("fine", false), ("disabled", true)] {
        let names = fine.iter().filter(|section| section.is_off == is_off);
        let names: Vec<&str> = names.filter_map(|section| section.server.as_deref()).collect();
        if !names.is_empty() {
            let line = format!("{label}: {}", names.join(", "));
            text.push_str(&wrap_message(&line, width, 0).replacen(label, &paint.green(label), 1));
            text.push('\n');
        }
    }
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

/// Whether a server of a host waits for approval, and nothing else is known of it.
fn waits(section: &ReportSection) -> bool {
    let mut findings = section.findings();
    section.lines.len() == 1 && findings.all(|finding| finding.kind.id == kinds::HOST_SERVER_UNAPPROVED.id)
}

/// One section for all servers that wait for approval; `None` if there are not two of them.
fn merge(sections: &[&ReportSection]) -> Option<ReportSection> {
    let [first, _, ..] = sections else { return None };
    let names: Vec<&str> = sections
        .iter()
        .filter_map(|section| section.server.as_deref())
        .collect();
    let mut merged = ReportSection::for_server(&names.join(", "), first.title.clone());
    let fix = first.findings().find_map(|finding| finding.fix.clone());
    let found = "they are servers of hosts that are not approved to start";
    merged.add_finding(Finding::new(&kinds::HOST_SERVER_UNAPPROVED, found).fix(fix.unwrap_or_default()));
    Some(merged)
}

/// The sections with their lines.
fn steps(sections: &[&ReportSection], detail: Detail, width: Option<usize>, paint: Paint) -> String {
    let is_shown = |line: &&ReportLine| detail == Detail::Steps || line.level() != Level::Ok;
    let label = |line: &ReportLine| match line {
        ReportLine::Fine { step, .. } => step.as_str(),
        ReportLine::Found(finding) => finding.kind.id,
    };
    let lines = sections.iter().flat_map(|section| &section.lines).filter(is_shown);
    let widest = lines.map(|line| label(line).len()).max().unwrap_or(0);
    let indent = 2 + LEVEL + widest + 2;
    let room = width.map(|width| width.saturating_sub(indent).max(MIN_TEXT));
    let mut text = String::new();
    for section in sections {
        let title = match &section.server {
            Some(name) => format!("{}: {}", paint.bold(name), one_line(&section.title)),
            None => paint.bold(&section.title),
        };
        text.push_str(&wrap_message(&title, width, 0));
        text.push('\n');
        let mut lines: Vec<&ReportLine> = section.lines.iter().filter(is_shown).collect();
        lines.sort_by_key(|line| line.step());
        for line in lines {
            let level = line.level();
            let padding = " ".repeat(LEVEL - level.as_str().len());
            text.push_str(&format!(
                "  {}{padding}{:widest$}  ",
                paint_level(paint, level),
                label(line)
            ));
            let (found, fix) = match line {
                ReportLine::Fine { found, .. } => (found, None),
                ReportLine::Found(finding) => (&finding.found, finding.fix.as_deref()),
            };
            // Fixes have whole paths, because a shell or a config file reads them.
            let mut said = words(&in_short(found), room, indent);
            if let Some(fix) = fix {
                said.push('\n');
                said.push_str(&" ".repeat(indent));
                said.push_str(&wrap(&format!("fix: {}", one_line(fix)), room, indent));
            }
            text.push_str(&said);
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

fn paint_level(paint: Paint, level: Level) -> String {
    let word = level.as_str();
    match level {
        Level::Ok => paint.green(word),
        Level::Warning => paint.yellow(word),
        Level::Problem => paint.red(word),
    }
}

/// A text with its own lines kept, because it may be the end of a log.
fn words(text: &str, room: Option<usize>, indent: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| wrap(&one_line(line), room, indent)).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// The last line: how many findings there are, and what to do next.
pub(super) fn summary(sections: &[ReportSection], fixable: usize) -> String {
    let servers = sections.iter().filter(|section| section.server.is_some()).count();
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let (problems, warnings) = (count(sections, Level::Problem), count(sections, Level::Warning));
    let of = counted(servers, "server");
    let mut text = match (problems, warnings) {
        (0, 0) => format!("no problem with {of}"),
        (0, _) => format!("no problem with {of}, {}", counted(warnings, "warning")),
        (_, 0) => format!("{} with {of}", counted(problems, "problem")),
        _ => format!(
            "{} and {} with {of}",
            counted(problems, "problem"),
            counted(warnings, "warning")
        ),
    };
    if fixable > 0 {
        text.push_str(&format!("; `pegboard doctor --fix` fixes {fixable} of them"));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::kinds::ReachStep;

    fn sections() -> Vec<ReportSection> {
        let mut github = ReportSection::for_server("github", "npx".to_owned());
        github.add_fine(ReachStep::Config, "/home/ada/.config/pegboard/pegboard.toml:3");
        github.add_fine(ReachStep::Program, "`npx` is /usr/bin/npx");
        github.add_finding(
            Finding::new(
                &kinds::EXITS_AT_START,
                "the server's process ended: exit code 1; its last words were:\nError: GITHUB_PERSONAL_ACCESS_TOKEN is not set\n    at main (/home/ada/.npm/_npx/1/index.js:12:3)",
            )
            .fix("the server's own words above say why it ended"),
        );
        github.add_finding(
            Finding::new(
                &kinds::UNPINNED_PACKAGE,
                "each start runs the newest version of `@modelcontextprotocol/server-github`",
            )
            .fix("write one version: `@modelcontextprotocol/server-github@1.2.3`"),
        );
        let mut time = ReportSection::for_server("time", "https://time.example/mcp".to_owned());
        time.add_fine(ReachStep::Config, "/home/ada/.config/pegboard/pegboard.toml:9");
        time.add_fine(ReachStep::Connection, "it answers");
        time.add_fine(ReachStep::Handshake, "time 1.0, protocol 2025-11-25 (legacy)");
        time.add_fine(ReachStep::List, "2 tools");
        let mut machine = ReportSection::for_machine();
        machine.add_finding(
            Finding::new(
                &kinds::DAEMON_LEFTOVERS,
                "/run/user/1000/pegboard/0123456789abcdef01234567.sock is the socket of a daemon that was killed",
            )
            .fix("rm /run/user/1000/pegboard/0123456789abcdef01234567.sock"),
        );
        vec![github, time, machine]
    }

    fn screen(width: Option<usize>) -> String {
        let sections = sections();
        format!(
            "{}{}",
            text(&sections, Detail::Findings, width, Paint::forced(false)),
            summary(&sections, 1)
        )
    }

    #[test]
    fn a_screen_of_80_columns() {
        insta::assert_snapshot!(screen(Some(80)));
    }

    #[test]
    fn a_screen_of_120_columns() {
        insta::assert_snapshot!(screen(Some(120)));
    }

    #[test]
    fn every_step_of_a_server_that_was_named() {
        insta::assert_snapshot!(text(&sections(), Detail::Steps, Some(80), Paint::forced(false)));
    }

    #[test]
    fn many_healthy_servers_take_few_lines() {
        let healthy = |number| {
            let mut section = ReportSection::for_server(&format!("server-{number}"), "npx".to_owned());
            section.add_fine(ReachStep::List, "2 tools");
            section.is_off = number == 9;
            section
        };
        let sections: Vec<ReportSection> = (0..10).map(healthy).collect();
        let shown = text(&sections, Detail::Findings, Some(60), Paint::forced(false));
        assert_eq!(
            shown,
            "fine: server-0, server-1, server-2, server-3, server-4,\n  server-5, server-6, server-7, server-8\ndisabled: server-9\n\n"
        );
    }

    #[test]
    fn a_pipe_gets_whole_lines() {
        assert!(screen(None).contains("its last words were:\n"));
        assert!(screen(None).contains("exit code 1; its last words were:"));
    }

    #[test]
    fn text_of_a_server_cannot_forge_lines() {
        let mut section = ReportSection::for_server("x", "x".to_owned());
        section.add_finding(Finding::new(
            &kinds::EXITS_AT_START,
            "a\n\x1b[2Jno problem with 1 server",
        ));
        let shown = text(&[section], Detail::Findings, Some(80), Paint::forced(false));
        assert!(!shown.contains('\x1b') && !shown.contains("\nno problem"), "{shown}");
    }
}
