//! Asks the person at the terminal for agreement, before something is trusted.

use std::io::{self, IsTerminal as _};

use tokio_util::sync::CancellationToken;

use crate::{
    output::Output,
    terminal::{Keyboard, Lines as _},
};

/// Whether there is a person to ask.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, and returns whether the answer is yes.
pub(super) async fn agrees(output: &Output, question: &str) -> bool {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    output.say(&format!("{question} [y/N] "));
    // On a blocking thread, so that Ctrl-C works while the terminal is read.
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next();
        drop(aside);
        line
    });
    let line = match reading.await {
        Ok(line) => line.ok().flatten().unwrap_or_default(),
        Err(_) => String::new(),
    };
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
