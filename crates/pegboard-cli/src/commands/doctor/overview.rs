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
        let (noun, needs) = match self.with_findings {
            1 => ("server", "needs"),
            _ => ("servers", "need"),
        };
        match (self.fine, self.with_findings) {
            (1, 0) => f.write_str("the config of 1 server is fine"),
            (fine, 0) => write!(f, "the config of {fine} servers is fine"),
            (0, count) => write!(f, "{count} {noun} {needs} attention: run `pegboard doctor`"),
            (fine, count) => write!(
                f,
                "{count} {noun} {needs} attention, {fine} fine: run `pegboard doctor`"
            ),
        }
    }
}
