//! Text that a server prints to stdout before its first message.

use std::sync::Arc;

use super::line_splitter::MAX_INSPECTED;
use crate::transport::wire::Inbox;
use pegboard_base::sync::Mutex;

/// The stdout text of a server that has sent no message yet: its first line of text, and the start of an unfinished line. Often that is
/// a question to the user, or the address of a server that does not speak stdio.
#[derive(Debug, Clone, Default)]
pub(in crate::transport) struct StdoutNoise(Arc<Mutex<String>>);

impl StdoutNoise {
    /// Replaces the text. `unfinished` is what was read of a line that has no newline yet.
    pub(super) fn record(&self, first_line: &str, unfinished: &[u8], inbox: &dyn Inbox) {
        // Masked before it is truncated: half a secret would not be recognised.
        let unfinished = inbox.mask_output(&String::from_utf8_lossy(
            &unfinished[..unfinished.len().min(MAX_INSPECTED)],
        ));
        let unfinished = &unfinished[..unfinished.floor_char_boundary(200)];
        let printable = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let text = format!("{}\n{}", printable(first_line), printable(unfinished))
            .trim()
            .to_owned();
        *self.0.lock() = text;
    }

    pub(in crate::transport) fn text(&self) -> Option<String> {
        let text = self.0.lock();
        (!text.is_empty()).then(|| text.clone())
    }
}
