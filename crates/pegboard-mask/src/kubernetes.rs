//! Finds the data of Kubernetes Secrets in YAML, JSON, lists and annotations, also inside prose, truncated, or malformed.
//!
//! The text is not parsed and reserialised: data sections are located in place, so the rest of the text stays unchanged. If the sections of a
//! Secret cannot be determined, everything from the first possible section name on is masked.

mod block;
mod findings;
mod flow;

pub(super) use findings::{NAME, PLACEHOLDER, SECTIONS};

use memchr::memmem;

use super::span::Span;
use findings::Findings;

/// Finds all data sections of Secrets in a text.
pub(super) fn find(text: &str) -> Vec<Span> {
    if memmem::find(text.as_bytes(), b"kind").is_none() && !may_be_truncated(text) {
        return Vec::new();
    }
    let mut findings = Findings::new(text);
    if findings.markers.is_empty() && !may_be_truncated(text) {
        return Vec::new();
    }
    flow::scan(text, &mut findings);
    block::scan(text, &mut findings);
    let unparsed = findings.unparsed_markers();
    if !unparsed.is_empty() {
        block::mask_all_after(text, &unparsed, &mut findings);
    }
    findings.spans
}

/// Whether the text may hold a truncated Secret without a marker: `kind` often comes after `data`.
fn may_be_truncated(text: &str) -> bool {
    text.contains("apiVersion") && text.contains("data")
}
