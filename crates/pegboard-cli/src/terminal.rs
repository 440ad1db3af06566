//! Lines that somebody types at the terminal: the wait for them can be given up, and what is secret is not shown.

use std::io;

use tokio_util::sync::CancellationToken;

/// The longest line that is read. A terminal gives whole lines, and nobody types this much.
const MAX_LINE: usize = 64 << 10;

/// Where answers come from, line by line.
pub(crate) trait Lines {
    /// The next line; nothing at the end of the input.
    fn next(&mut self) -> io::Result<Option<String>>;

    /// The same for what nobody should see who looks at the screen.
    fn next_hidden(&mut self) -> io::Result<Option<String>>;
}

/// The terminal that stdin is, until nobody waits for its lines any more.
#[derive(Debug)]
pub(crate) struct Keyboard(CancellationToken);

impl Keyboard {
    pub(crate) fn until(given_up: CancellationToken) -> Self {
        Self(given_up)
    }
}

impl Lines for Keyboard {
    fn next(&mut self) -> io::Result<Option<String>> {
        let line = read_line(&self.0)?;
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
    }

    fn next_hidden(&mut self) -> io::Result<Option<String>> {
        let _dark = Dark::fall()?;
        self.next()
    }
}

/// One line with its end; nothing at the end of the input. Read past any buffer, so that whoever reads next misses nothing.
#[cfg(unix)]
fn read_line(given_up: &CancellationToken) -> io::Result<Vec<u8>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// How often it is looked whether somebody still waits.
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let stdin = io::stdin();
    let mut line = Vec::new();
    let mut part = [0; 1024];
    while line.len() < MAX_LINE && line.last() != Some(&b'\n') {
        if given_up.is_cancelled() {
            return Err(io::Error::other("nobody waits for the answer any more"));
        }
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut input, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(&stdin, &mut part) {
            // Whoever ends the input in the middle of a line has typed a line.
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(&part[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(line)
}

#[cfg(not(unix))]
fn read_line(_given_up: &CancellationToken) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut input = io::Read::take(io::stdin().lock(), MAX_LINE as u64);
    io::BufRead::read_until(&mut input, b'\n', &mut line)?;
    Ok(line)
}

/// While it is kept, the terminal does not show what is typed.
#[cfg(unix)]
struct Dark(rustix::termios::Termios);

#[cfg(unix)]
impl Dark {
    fn fall() -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

        let before = tcgetattr(io::stdin())?;
        let mut dark = before.clone();
        dark.local_modes.remove(LocalModes::ECHO);
        // The end of the line is seen, so that what is printed next stands in a new one.
        dark.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &dark)?;
        Ok(Self(before))
    }
}

#[cfg(unix)]
impl Drop for Dark {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing anyway.
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}

#[cfg(not(unix))]
struct Dark;

#[cfg(not(unix))]
impl Dark {
    /// What is secret is not asked for where it would be seen.
    fn fall() -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}
