//! Reads all of stdin, or of a file that the user names.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::context::{Context, Ending, interruption_report, time_up};
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
    let reading = tokio::task::spawn_blocking(move || read_stdin(most));
    match context.work(reading).await {
        Ending::Done(Ok(Ok(bytes))) => Input::Read(bytes),
        Ending::Done(Ok(Err(problem))) => Input::Unreadable(problem),
        Ending::Done(Err(error)) => Input::Unreadable(format!("stdin cannot be read: {error}")),
        Ending::TimeUp => Input::Ended(time_up(&output, nothing)),
        Ending::Interrupted => Input::Ended(interruption_report(&output, nothing)),
    }
}

/// Reads a file of at most `most` bytes, or says why it cannot be read. A pipe may have no writer yet, and a device may have no end.
pub(super) async fn read_file(context: &mut Context<'_>, path: &Path, most: u64) -> Ending<Result<Vec<u8>, String>> {
    let (shown, path) = (path.display().to_string(), path.to_owned());
    // On a blocking thread, so that Ctrl-C and the deadline end the wait for a pipe.
    let reading = tokio::task::spawn_blocking(move || File::open(path).and_then(|file| read_all(file, most)));
    match context.work(reading).await {
        Ending::Done(Ok(Ok(Some(bytes)))) => Ending::Done(Ok(bytes)),
        Ending::Done(Ok(Ok(None))) => Ending::Done(Err(format!("{shown} is larger than {most} bytes"))),
        Ending::Done(Ok(Err(error))) => Ending::Done(Err(format!("{shown}: {error}"))),
        Ending::Done(Err(error)) => Ending::Done(Err(format!("{shown}: {error}"))),
        Ending::TimeUp => Ending::TimeUp,
        Ending::Interrupted => Ending::Interrupted,
    }
}

fn read_stdin(most: u64) -> Result<Vec<u8>, String> {
    let read = read_all(io::stdin(), most).map_err(|error| format!("stdin cannot be read: {error}"))?;
    read.ok_or_else(|| format!("stdin has more than {most} bytes"))
}

/// Reads to the end; `None` if that is more than `most` bytes.
fn read_all(from: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
