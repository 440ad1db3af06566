//! Health, readiness and warnings, derived from the servers' status rows.

use crate::status::{AUDIT_REQUIRED, ServerStatus, State, Warning};
use crate::{audit::AuditFailure, call::JournalProblem, server::Server};

/// Whether every enabled server is ready or idle. Draining servers do not count, nor does one that refuses a principal's credentials.
pub(super) fn is_healthy(rows: &[ServerStatus]) -> bool {
    let refuses_principal = |row: &ServerStatus| row.principal.is_some() && row.state == State::NeedsAuth;
    without_draining(rows).all(|row| is_well(row.state) || refuses_principal(row))
}

/// One warning for each server, or view instance, that is not healthy and has an error.
pub(super) fn warnings(rows: &[ServerStatus]) -> Vec<Warning> {
    let troubled = without_draining(rows).filter(|row| !is_well(row.state));
    troubled.filter_map(warning).collect()
}

/// Whether a required server can serve calls: an instance is ready or, for a session-scoped server that no view needs now, its last start
/// succeeded.
pub(super) fn is_served(server: &Server, rows: &[ServerStatus]) -> bool {
    let of_server = || without_draining(rows).filter(|row| row.name == *server.name());
    let is_ready = of_server().any(|row| row.state == State::Ready);
    let is_resting = || of_server().all(|row| matches!(row.state, State::Idle | State::Connecting));
    is_ready || (server.is_spare() && server.listing().was_listed() && is_resting())
}

/// One warning for each kind of problem with the definitions of a server.
pub(super) fn definition_warnings(server: &Server) -> Vec<Warning> {
    let warnings = server.listing().warnings().into_iter().enumerate();
    let warnings = warnings.map(|(index, warning)| Warning {
        id: format!("definitions:{}:{index}", server.name()),
        category: "definitions",
        message: format!("server `{}` has definitions to look at", server.name()),
        details: warning.message,
        server: Some(server.name().clone()),
        created_at: pegboard_base::timestamp::Timestamp::now(),
    });
    warnings.collect()
}

/// The warning about an audit log that cannot be written.
pub(super) fn audit_warning(failure: AuditFailure) -> Warning {
    let (id, message) = match failure.is_required {
        true => (
            AUDIT_REQUIRED,
            "calls are refused, because the audit log cannot be written",
        ),
        false => ("audit:optional", "calls are missing from the audit log"),
    };
    let details = match failure.is_required {
        true => format!("{}; {}", failure.reason, failure.hint),
        false => failure.reason,
    };
    Warning {
        id: id.to_owned(),
        category: "audit",
        message: message.to_owned(),
        details,
        server: None,
        created_at: failure.since,
    }
}

/// The warning about a journal in which calls cannot be noted.
pub(super) fn journal_warning(problem: JournalProblem) -> Warning {
    Warning {
        id: "journal".to_owned(),
        category: "journal",
        message: "calls in flight are not noted, so a crash would leave them untold".to_owned(),
        details: problem.message,
        server: None,
        created_at: problem.since,
    }
}

fn without_draining(rows: &[ServerStatus]) -> impl Iterator<Item = &ServerStatus> {
    rows.iter().filter(|row| !row.draining)
}

fn is_well(state: State) -> bool {
    matches!(state, State::Ready | State::Idle | State::Disabled)
}

fn warning(row: &ServerStatus) -> Option<Warning> {
    let error = row.last_error.as_ref()?;
    let (id, of_view) = match (&row.view, &row.principal) {
        (Some(view), _) => (format!("mcp_health:{}:{view}", row.name), format!(" of view `{view}`")),
        (None, Some(principal)) => (
            format!("mcp_health:{}:principal:{principal}", row.name),
            format!(" of principal `{principal}`"),
        ),
        (None, None) => (format!("mcp_health:{}", row.name), String::new()),
    };
    Some(Warning {
        id,
        category: "mcp_health",
        message: format!("server `{}`{of_view} is {}", row.name, row.state.as_str()),
        details: error.message_for_all(),
        server: Some(row.name.clone()),
        created_at: row.since,
    })
}
