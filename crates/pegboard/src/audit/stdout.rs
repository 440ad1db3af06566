//! [`Stdout`]: records on stdout, whose reader may stall. The lock of the standard library is not taken: it would be held as long.

use std::io;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use tokio::time::Instant;

/// How long a line may wait for its reader.
#[cfg(unix)]
const LIMIT: Duration = Duration::from_secs(2);
/// A pipe that is ready takes so many bytes at once on every system.
#[cfg(unix)]
const READY: usize = 512;

/// Writes lines to stdout.
#[derive(Debug, Default)]
pub(super) struct Stdout {
    /// Whether the last line was not written whole.
    is_torn: bool,
}

impl Stdout {
    /// Writes lines. Fails if the reader does not make room for them in time.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut out = Limited::new();
        if self.is_torn {
            // What follows is a line of its own again.
            out.write_some(b"\n")?;
            self.is_torn = false;
        }
        let mut rest = lines;
        while !rest.is_empty() {
            match out.write_some(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) => {
                    self.is_torn = rest.len() < lines.len();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
struct Limited {
    until: Instant,
}

#[cfg(unix)]
impl Limited {
    fn new() -> Self {
        Self {
            until: Instant::now() + LIMIT,
        }
    }

    /// Writes at least one byte.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdout = rustix::stdio::stdout();
        let left = self.until.saturating_duration_since(Instant::now());
        let time = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut waiting = [PollFd::new(&stdout, PollFlags::OUT)];
        if rustix::io::retry_on_intr(|| poll(&mut waiting, Some(&time)))? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the reader of stdout does not read",
            ));
        }
        match rustix::io::retry_on_intr(|| rustix::io::write(stdout, &bytes[..bytes.len().min(READY)]))? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        }
    }
}

#[cfg(not(unix))]
struct Limited;

#[cfg(not(unix))]
impl Limited {
    fn new() -> Self {
        Self
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        use std::io::Write as _;
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(bytes.len())
    }
}
