//! The result of `doctor` in one line, for commands that only hint at it.

use std::fmt;

use serde::Serialize;

use super::{finding::ReportSection, kinds::Level};

/// How many servers have findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Overview {
    fine: usize,
    with_findings: usize,
    with_problems: usize,
}

impl Overview {
    /// The overview of sections; `None` if there is no server.
    pub(super) fn new(sections: &[ReportSection]) -> Option<Self> {
        let servers: Vec<&ReportSection> = sections.iter().filter(|section| section.server.is_some()).collect();
        let fine = servers
            .iter()
            .filter(|server| server.findings().next().is_none())
            .count();
        let has_problem = |server: &&&ReportSection| {
            let mut findings = server.findings();
            findings.any(|finding| finding.kind.level == Level::Problem)
        };
        (!servers.is_empty()).then_some(Self {
            fine,
            with_findings: servers.len() - fine,
            with_problems: servers.iter().filter(has_problem).count(),
        })
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warned = self.with_findings - self.with_problems;
        let parts: Vec<String> = [
            (self.with_problems, "has a problem", "have problems"),
            (warned, "has a warning", "have warnings"),
            (self.fine, "looks fine", "look fine"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
        let total = self.fine + self.with_findings;
        let noun = if total == 1 { "server" } else { "servers" };
        write!(
            f,
            "{total} {noun}, none of them started: {}; `pegboard doctor` tries them and says more",
            parts.join(", ")
        )
    }
}
