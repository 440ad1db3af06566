//! Why `doctor` ends without a report.

use serde_json::Value;

use crate::{
    commands::context::{Context, interruption_report, time_up},
    exit::Exit,
    settings::Complaint,
};

/// Why there is no report.
pub(super) enum Stopped {
    Refused(Complaint),
    TimeUp,
    Interrupted,
}

impl Stopped {
    /// Prints the reason, and for programs the empty document.
    pub(super) async fn end(self, mut context: Context<'_>, empty: &Value) -> Exit {
        let report = match self {
            Self::Refused(complaint) => return context.refuse(&complaint, empty).await,
            Self::TimeUp => time_up(&context.output, empty),
            Self::Interrupted => interruption_report(&context.output, empty),
        };
        context.print(report).await
    }
}
