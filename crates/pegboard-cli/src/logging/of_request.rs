//! The request of a client that a line belongs to.

use pegboard::telemetry::{current, current_request};

/// The ids by which a line is found with those of its request, as their names and texts. Nothing for a line that belongs to none.
pub(super) fn ids() -> impl Iterator<Item = (&'static str, String)> {
    let request = current_request();
    // A span of this process is nearer than that of the client.
    let span = current().or_else(|| request.as_ref()?.span());
    let ids = [
        ("request_id", request.map(|request| request.to_string())),
        ("trace_id", span.map(|(trace, _)| trace.to_string())),
        ("span_id", span.map(|(_, span)| span.to_string())),
    ];
    ids.into_iter().filter_map(|(name, id)| Some((name, id?)))
}
