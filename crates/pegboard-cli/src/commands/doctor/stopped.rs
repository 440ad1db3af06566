//! Why `doctor` ends before it has looked at everything.

use serde_json::json;

use super::{
    finding::{Fixes, ReportSection},
    screen::{self, Detail},
};
use crate::{
    commands::context::{Context, interruption_report, time_up},
    exit::Exit,
    output::Report,
    settings::Complaint,
};

/// Why not everything was looked at.
pub(super) enum Stopped {
    Refused(Complaint),
    TimeUp,
    Interrupted,
}

impl Stopped {
    /// Prints the reason, after what was found until then.
    pub(super) async fn end(
        self,
        mut context: Context<'_>,
        sections: &[ReportSection],
        fixes: &Fixes,
        detail: Detail,
    ) -> Exit {
        let mut found = screen::json(sections, fixes);
        // What was not looked at may be wrong.
        found["ok"] = json!(false);
        let report = match self {
            Self::Refused(complaint) => return context.refuse(&complaint, &found).await,
            Self::TimeUp => time_up(&context.output, &found),
            Self::Interrupted => interruption_report(&context.output, &found),
        };
        let report = match context.output.is_json() {
            true => report,
            false => Report {
                data: format!("{}{}", screen::show(sections, detail), fixes.text()),
                ..report
            },
        };
        context.print(report).await
    }
}
