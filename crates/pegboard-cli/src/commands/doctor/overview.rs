//! The result of `doctor` in one line, for commands that only hint at it.

use std::fmt;

use serde::Serialize;

use super::finding::ReportSection;

/// How many servers have findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Overview {
    fine: usize,
    with_findings: usize,
}

impl Overview {
    /// The overview of sections; `None` if there is no server.
    pub(super) fn new(sections: &[ReportSection]) -> Option<Self> {
        let servers: Vec<&ReportSection> = sections.iter().filter(|section| section.server.is_some()).collect();
        let fine = servers
            .iter()
            .filter(|server| server.findings().next().is_none())
            .count();
        (!servers.is_empty()).then_some(Self {
            fine,
            with_findings: servers.len() - fine,
        })
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.fine == 1 { "server" } else { "servers" };
        write!(f, "checked without a start: {} {noun} fine", self.fine)?;
        match self.with_findings {
            0 => Ok(()),
            count => write!(f, ", {count} with findings: pegboard doctor"),
        }
    }
}
