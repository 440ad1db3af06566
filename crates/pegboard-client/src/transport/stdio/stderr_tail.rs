//! Reads the stderr of a process and keeps the last part of it. It is always drained, so that the process never blocks on a full pipe.

use std::{collections::VecDeque, sync::Arc};

use pegboard_base::sync::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How many bytes are kept.
const KEPT: usize = 256 << 10;
/// How many bytes are shown in an error message.
const SHOWN: usize = 4 << 10;

/// A line without a newline is logged once it is longer than this.
const MAX_LINE: usize = 64 << 10;

/// The last bytes of a process's stderr. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Reads the stream to its end, logs its lines and keeps the last part. `shown` masks secrets.
    pub(super) async fn collect(
        self,
        mut stream: impl AsyncRead + Unpin,
        server: &str,
        shown: impl Fn(&str) -> String,
    ) {
        let mut chunk = vec![0; 8 << 10];
        let mut unlogged = Vec::new();
        while let Ok(read @ 1..) = stream.read(&mut chunk).await {
            let text = &chunk[..read];
            log_lines(&mut unlogged, text, server, &shown);
            let mut kept = self.0.lock();
            kept.extend(text);
            let surplus = kept.len().saturating_sub(KEPT);
            kept.drain(..surplus);
        }
    }

    /// The last lines, masked by `shown` and without control characters; `None` if there are none.
    pub(super) fn text(&self, shown: impl Fn(&str) -> String) -> Option<String> {
        let bytes: Vec<u8> = {
            let kept = self.0.lock();
            kept.iter().copied().collect()
        };
        // Masked before it is truncated: a part of a secret would not be recognised.
        let text = shown(&String::from_utf8_lossy(&bytes));
        let from = text.floor_char_boundary(text.len().saturating_sub(SHOWN));
        let text = match text[from..].split_once('\n') {
            // The first line is incomplete.
            Some((_, rest)) if from > 0 => rest,
            _ => &text[from..],
        };
        let shown: String = text
            .trim()
            .chars()
            .map(|c| {
                if c.is_control() && !matches!(c, '\n' | '\t') {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        (!shown.is_empty()).then_some(shown)
    }
}

/// Logs complete lines. Incomplete ones are held back, so that a secret that arrives in two reads is still masked.
fn log_lines(unlogged: &mut Vec<u8>, text: &[u8], server: &str, shown: &impl Fn(&str) -> String) {
    if !tracing::enabled!(target: "pegboard::stderr", tracing::Level::DEBUG) {
        return;
    }
    unlogged.extend_from_slice(text);
    let end = match unlogged.iter().rposition(|b| *b == b'\n') {
        Some(end) => end + 1,
        None if unlogged.len() > MAX_LINE => unlogged.len(),
        None => return,
    };
    // A key that is not complete waits for its end, because its later lines alone would not be recognised.
    let end = match open_block(&unlogged[..end]) {
        Some(_) if unlogged.len() > MAX_LINE => end,
        Some(0) => return,
        Some(start) => start,
        None => end,
    };
    let lines: Vec<u8> = unlogged.drain(..end).collect();
    let lines = shown(&String::from_utf8_lossy(&lines));
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        tracing::debug!(target: "pegboard::stderr", server, text = %line.trim_end().escape_debug(), "stderr");
    }
}

/// The start of a PEM block without an end.
fn open_block(text: &[u8]) -> Option<usize> {
    let begin = memchr::memmem::rfind(text, b"-----BEGIN ")?;
    let is_open = memchr::memmem::find(&text[begin..], b"-----END ").is_none();
    let line = text[..begin].iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    is_open.then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(input: &[u8]) -> Option<String> {
        let tail = StderrTail::default();
        tail.clone().collect(input, "one", str::to_owned).await;
        tail.text(str::to_owned)
    }

    #[tokio::test]
    async fn the_last_whole_lines_are_shown_without_control_characters() {
        assert_eq!(tail(b"").await, None);
        assert_eq!(tail(b"one\ntwo\x1b[2J\n").await.as_deref(), Some("one\ntwo\u{fffd}[2J"));
        let long = format!("{}\nlast", "x".repeat(10_000));
        assert_eq!(tail(long.as_bytes()).await.as_deref(), Some("last"));
    }

    #[test]
    fn a_block_without_an_end_is_held_back_from_its_first_line_on() {
        let header = concat!("-----BEGIN PRIV", "ATE KEY-----\n");
        assert_eq!(open_block(format!("one\n{header}MII\n").as_bytes()), Some(4));
        assert_eq!(open_block(format!("{header}MII\n").as_bytes()), Some(0));
        assert_eq!(open_block(format!("{header}MII\n-----END x").as_bytes()), None);
        assert_eq!(open_block(b"one\n"), None);
    }

    #[tokio::test]
    async fn memory_stays_bounded_however_much_is_written() {
        let tail = StderrTail::default();
        tail.clone()
            .collect(vec![b'x'; 3 << 20].as_slice(), "one", str::to_owned)
            .await;
        assert_eq!(tail.0.lock().len(), KEPT);
    }
}
