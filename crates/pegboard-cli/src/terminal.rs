//! Reads lines that the user types at the terminal, cancellably, and without echo for secrets.

#[cfg(unix)]
mod echo;

use std::io;

use tokio_util::sync::CancellationToken;

#[cfg(unix)]
pub(crate) use echo::EchoOff;

/// The longest line that is read: far more than a user types.
const MAX_LINE: usize = 64 << 10;

/// A source of typed lines.
pub(crate) trait Lines {
    /// The next line; `None` at the end of the input.
    fn next(&mut self) -> io::Result<Option<String>>;

    /// Like [`Self::next`], without echo.
    fn next_hidden(&mut self) -> io::Result<Option<String>>;
}

/// The terminal on stdin. Reads fail once the token is cancelled.
#[derive(Debug)]
pub(crate) struct Keyboard(CancellationToken);

impl Keyboard {
    pub(crate) fn until(cancelled: CancellationToken) -> Self {
        Self(cancelled)
    }
}

impl Lines for Keyboard {
    fn next(&mut self) -> io::Result<Option<String>> {
        let line = read_line(&self.0)?;
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
    }

    fn next_hidden(&mut self) -> io::Result<Option<String>> {
        let _guard = EchoOff::new()?;
        self.next()
    }
}

/// One line with its newline; empty at the end of the input. Unbuffered, so that no input is lost to the next reader of stdin.
#[cfg(unix)]
fn read_line(cancelled: &CancellationToken) -> io::Result<Vec<u8>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// How often the token is checked while no input arrives.
    const POLL: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let stdin = io::stdin();
    let mut line = Vec::new();
    let mut part = [0; 1024];
    while line.len() < MAX_LINE && line.last() != Some(&b'\n') {
        if cancelled.is_cancelled() {
            return Err(io::Error::other("nobody waits for the answer any more"));
        }
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut input, Some(&POLL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(&stdin, &mut part) {
            // Ctrl-D in the middle of a line completes it.
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(&part[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(line)
}

#[cfg(not(unix))]
fn read_line(_cancelled: &CancellationToken) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut input = io::Read::take(io::stdin().lock(), MAX_LINE as u64);
    io::BufRead::read_until(&mut input, b'\n', &mut line)?;
    Ok(line)
}

#[cfg(not(unix))]
pub(crate) struct EchoOff;

#[cfg(not(unix))]
impl EchoOff {
    /// Always fails: secrets are not read where they would be shown.
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}
