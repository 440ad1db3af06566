//! The program on a pseudo-terminal, and what is shown there.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use pegboard_base::sync::Mutex;
use rustix::{
    io::ioctl_fionread,
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use super::home::{Home, until};

/// The pseudo-terminal of a running program.
pub(crate) struct Terminal {
    child: Child,
    /// The controlling side: what is written here is typed.
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    /// The program's side, to look at its settings and its input queue.
    side: OwnedFd,
}

impl Terminal {
    /// Starts the program as the leader of a new session, so that Ctrl-C is delivered as at a real terminal.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, &[])
    }

    /// Like [`Self::start`], with more environment variables.
    pub(crate) fn start_with(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_program(home, home.pegboard(&[]).get_program(), args, variables)
    }

    /// Like [`Self::start_with`], with another program.
    pub(crate) fn start_program(
        home: &Home,
        program: impl AsRef<OsStr>,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keys = openpt(flags).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let side = ioctl_tiocgptpeer(&keys, flags).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&side, size).unwrap();
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program).args(args);
        command
            .current_dir(home.path("."))
            .env_clear()
            .env("CI", "1")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path("."))
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("PEGBOARD_PAGER", "")
            .envs(variables.iter().copied());
        let stream = || Stdio::from(side.try_clone().unwrap());
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn();
        let keys = File::from(keys);
        let screen = Arc::<Mutex<Vec<u8>>>::default();
        let (mut reads, shown) = (keys.try_clone().unwrap(), screen.clone());
        thread::spawn(move || {
            let mut part = [0; 4096];
            // Reading a closed pseudo-terminal is an error, not an end of file.
            while let Ok(count @ 1..) = reads.read(&mut part) {
                shown.lock().extend_from_slice(&part[..count]);
            }
        });
        Self {
            child: child.unwrap(),
            keys,
            screen,
            side,
        }
    }

    /// Everything shown so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock()).replace("\r\n", "\n")
    }

    /// Waits until this text was shown so many times.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str, times: usize) {
        let is_shown = || self.shown().matches(text).count() >= times;
        for _ in 0..2000 {
            if is_shown() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{text:?} was not shown {times} times: {}", self.shown());
    }

    /// Waits for a question, and types an answer.
    #[track_caller]
    pub(crate) fn answers(&mut self, question: &str, line: &str) {
        self.shows(question, 1);
        self.types(&format!("{line}\n"));
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The process id of the program.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns `true` if the terminal echoes what is typed.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.side).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// The number of typed bytes that the program has not read.
    pub(crate) fn unread(&self) -> u64 {
        ioctl_fionread(&self.side).unwrap()
    }

    /// Waits for the program to exit. Returns its exit code and everything shown.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut ended: Option<ExitStatus> = None;
        until("the program has ended", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert!(self.echoes(), "the terminal is left as it was found");
        // All output is in the terminal's buffer, but the reading thread may be behind.
        let mut length = 0;
        until("all is read", || {
            thread::sleep(Duration::from_millis(20));
            let before = std::mem::replace(&mut length, self.shown().len());
            before == length
        });
        (ended.and_then(|status| status.code()), self.shown())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stays readable of the text shown: without lines that were erased, such as the spinner's.
pub(crate) fn left_on_screen(shown: &str) -> String {
    const ERASE_LINE: &str = "\r\u{1b}[2K";
    let lines = shown.split_inclusive('\n');
    lines
        .map(|line| line.rsplit(ERASE_LINE).next().unwrap_or(line))
        .collect()
}
