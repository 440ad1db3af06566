//! [`Refusals`]: says in the log why access tokens are refused, for the person who has set up the gateway. Never what a token is.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use pegboard_base::{log_event, sync::Mutex};
use tokio::time::Instant;

use crate::door::token_fault::TokenFault;

/// At most so many lines are written in so much time.
const MAX_LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);
/// The longest part of a token's claim in a line, in characters.
const MAX_SHOWN: usize = 200;

/// Why a token is refused, with details that are for the log only.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) fault: TokenFault,
    pub(super) detail: Option<String>,
}

impl From<TokenFault> for Refused {
    fn from(fault: TokenFault) -> Self {
        Self { fault, detail: None }
    }
}

/// Writes refusals to the log, a few at a time: anybody can send wrong tokens.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    begun: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Refusals {
    pub(super) fn report(&self, refused: &Refused) {
        let line = self.window.lock().line();
        if let Some(left_out) = line {
            let reason = refused.fault;
            // A field without a value is left out. Its text is quoted already.
            let detail = refused.detail.as_deref().map(tracing::field::display);
            tracing::info!(name: log_event::CLIENT_REFUSED, %reason, detail, left_out, "an access token was refused");
        }
    }
}

impl Window {
    /// Returns whether a line may be written, and how many were left out before it.
    fn line(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.begun.is_none_or(|begun| now - begun >= WINDOW) {
            (self.begun, self.lines) = (Some(now), 0);
        }
        if self.lines >= MAX_LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Values of a claim or a setting, quoted, escaped and cut.
pub(super) struct Shown<I>(pub(super) I);

impl<T: AsRef<str>, I: IntoIterator<Item = T> + Clone> fmt::Display for Shown<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for value in self.0.clone() {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{:?}", value.as_ref())?;
            if text.len() > 4 * MAX_SHOWN {
                break;
            }
        }
        match text.char_indices().nth(MAX_SHOWN) {
            Some((at, _)) => write!(f, "{}…", &text[..at]),
            None if text.is_empty() => f.write_str("nothing"),
            None => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_refusals_is_counted_and_not_written() {
        let mut window = Window::default();
        let written = (0..1000).filter(|_| window.line().is_some()).count();
        assert_eq!(written, 10);
        tokio::time::advance(WINDOW).await;
        assert_eq!((window.line(), window.line()), (Some(990), Some(0)));
    }

    #[test]
    fn values_are_quoted_escaped_and_cut() {
        assert_eq!(Shown(["a", "b\n\"c"]).to_string(), r#""a", "b\n\"c""#);
        assert_eq!(Shown([""; 0]).to_string(), "nothing");
        let long = "x".repeat(100_000);
        assert_eq!(Shown([&long, &long]).to_string().chars().count(), MAX_SHOWN + 1);
    }
}
