//! Reads all of stdin.

use std::io::{self, Read as _};

use super::context::{Context, Ending, interrupted, time_up};
use crate::output::Report;

/// What came of reading stdin.
pub(super) enum Input {
    Read(Vec<u8>),
    /// Why it cannot be read.
    Unreadable(String),
    /// The command ends with this report: it was interrupted, or its time was up.
    Ended(Report),
}

/// Reads stdin, of at most `most` bytes. `nothing` is the JSON document of a command that was ended meanwhile.
pub(super) async fn read(context: &mut Context<'_>, most: u64, nothing: &serde_json::Value) -> Input {
    let output = context.output.clone();
    // On a blocking thread, so that Ctrl-C works while a terminal is read.
    let reading = tokio::task::spawn_blocking(move || read_all(most));
    match context.work(reading).await {
        Ending::Done(Ok(Ok(bytes))) => Input::Read(bytes),
        Ending::Done(Ok(Err(problem))) => Input::Unreadable(problem),
        Ending::Done(Err(error)) => Input::Unreadable(format!("stdin cannot be read: {error}")),
        Ending::TimeUp => Input::Ended(time_up(&output, nothing)),
        Ending::Interrupted => Input::Ended(interrupted(&output, nothing)),
    }
}

fn read_all(most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("stdin has more than {most} bytes"));
    }
    Ok(bytes)
}
