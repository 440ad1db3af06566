//! [`Transcript`]: what a case is about, sent and received, for the report of a failure.

use std::{collections::VecDeque, sync::Arc};

use pegboard_base::sync::Mutex;

/// How many lines that came are kept.
const KEPT: usize = 2;
/// How much of a line is kept.
const LINE: usize = 300;

/// The last message of a case on its newest connection, and what came after it.
#[derive(Debug, Clone, Default)]
pub(super) struct Transcript {
    lines: Arc<Mutex<TranscriptLines>>,
}

#[derive(Debug, Default)]
struct TranscriptLines {
    sent: Option<String>,
    /// Whether `sent` belongs to the handshake or asks whether the server still answers.
    is_aside: bool,
    came: VecDeque<String>,
}

impl Transcript {
    /// Records what was sent. What came before it no longer matters.
    pub(super) fn record_sent(&self, text: &str) {
        *self.lines.lock() = TranscriptLines {
            sent: Some(shorten(text)),
            ..TranscriptLines::default()
        };
    }

    /// Records a message that the case is not about: one of the handshake, or one that asks whether the server still answers. It is shown only
    /// if there is no other.
    pub(super) fn record_sent_aside(&self, text: &str) {
        let mut lines = self.lines.lock();
        if lines.sent.is_none() {
            (lines.sent, lines.is_aside) = (Some(shorten(text)), true);
        }
    }

    pub(super) fn record_received(&self, text: &str) {
        keep(&mut self.lines.lock().came, text);
    }

    /// Records the response to a message that the case is not about.
    pub(super) fn came_aside(&self, text: &str) {
        let mut lines = self.lines.lock();
        if lines.is_aside {
            keep(&mut lines.came, text);
        }
    }

    /// Forgets everything: there is a new connection.
    pub(super) fn clear(&self) {
        *self.lines.lock() = TranscriptLines::default();
    }

    /// The last message that was sent.
    pub(super) fn last_sent(&self) -> Option<String> {
        self.lines.lock().sent.clone()
    }

    /// What came after it.
    pub(super) fn last_came(&self) -> Option<String> {
        let lines = self.lines.lock();
        let came: Vec<&str> = lines.came.iter().map(String::as_str).collect();
        (!came.is_empty()).then(|| came.join("\n"))
    }
}

fn keep(lines: &mut VecDeque<String>, text: &str) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(shorten(text));
}

/// The beginning of a text, and how long it is if there is more.
pub(super) fn shorten(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(LINE) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(transcript: &Transcript) -> (Option<String>, Option<String>) {
        (transcript.last_sent(), transcript.last_came())
    }

    fn is(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_message_that_a_case_is_about_is_shown_and_not_the_ones_around_it() {
        let transcript = Transcript::default();
        transcript.record_sent_aside("initialize");
        transcript.came_aside("greeting");
        transcript.record_sent_aside("initialized");
        assert_eq!(shown(&transcript), (is("initialize"), is("greeting")));
        transcript.record_sent("{]");
        transcript.record_sent_aside("ping");
        transcript.record_received("parse error");
        transcript.came_aside("pong");
        assert_eq!(shown(&transcript), (is("{]"), is("parse error")));
    }

    #[test]
    fn a_new_connection_begins_with_nothing() {
        let transcript = Transcript::default();
        transcript.record_sent("{]");
        transcript.clear();
        assert_eq!(shown(&transcript), (None, None));
    }
}
