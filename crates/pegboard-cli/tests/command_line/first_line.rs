//! The first line that a process prints.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long a process may take to print it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first line of an output. The rest is read and dropped, so that the process never waits for it.
///
/// # Panics
///
/// If there is no line in time.
#[track_caller]
pub(crate) fn first_line(output: impl Read + Send + 'static) -> String {
    let (sender, first) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        let read = output.read_line(&mut line).map(|_| line);
        // The test may have ended.
        let _ = sender.send(read);
        let _ = io::copy(&mut output, &mut io::sink());
    });
    first.recv_timeout(PATIENCE).unwrap().unwrap()
}
