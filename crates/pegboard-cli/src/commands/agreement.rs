//! Asks the person at the terminal for agreement, before something is trusted.

use std::io::{self, IsTerminal as _};

use tokio_util::sync::CancellationToken;

use crate::{
    output::{Output, message_width, wrap_message},
    terminal::{Keyboard, Lines as _},
};

/// Whether there is a person to ask.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// How often a question is asked for one answer.
const MAX_TRIES: usize = 3;

/// Asks a question, and returns whether the answer is yes. What is neither yes nor no, such as a key that was typed too early, is asked about again.
pub(super) async fn agrees(output: &Output, question: &str) -> bool {
    let question = format!("{question} [y/N]");
    let mut question = format!("{} ", wrap_message(&question, message_width(), 0));
    for _ in 0..MAX_TRIES {
        let line = read(output, &question).await;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return true,
            "" | "n" | "no" => return false,
            _ => "please answer y or n: ".clone_into(&mut question),
        }
    }
    false
}

/// Reads the answer to a question; empty if the terminal is gone.
async fn read(output: &Output, question: &str) -> String {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    output.say(question);
    // On a blocking thread, so that Ctrl-C works while the terminal is read.
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next();
        drop(aside);
        line
    });
    match reading.await {
        Ok(line) => line.ok().flatten().unwrap_or_default(),
        Err(_) => String::new(),
    }
}
