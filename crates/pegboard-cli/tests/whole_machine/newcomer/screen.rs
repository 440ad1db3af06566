//! A terminal of one size, and the snapshots of what it shows.

use std::{
    fs::File,
    io::Read as _,
    process::{Command, Stdio},
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::home::Home;

/// A size, and whether colours are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    columns: u16,
    colour: bool,
}

impl Screen {
    pub(crate) const fn new(columns: u16, colour: bool) -> Self {
        Self { columns, colour }
    }

    /// Runs the command at this terminal and compares what is left on it with the snapshot of this step.
    #[track_caller]
    pub(crate) fn shows(self, step: &str, home: &Home, args: &[&str], code: i32) {
        let (ended, shown) = self.run(home.pegboard(args));
        let shown = home.without_accidents(&left_on_screen(&shown));
        assert_eq!(ended, Some(code), "{step}: {shown}");
        let colour = if self.colour { "colour" } else { "plain" };
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(format!("pegboard {}", args.join(" ")));
        settings.bind(|| insta::assert_snapshot!(format!("{step} {} {colour}", self.columns).replace(' ', "_"), shown));
    }

    /// Runs a command to its end. Returns its exit code and everything it wrote.
    fn run(self, mut command: Command) -> (Option<i32>, String) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keys = openpt(flags).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let side = ioctl_tiocgptpeer(&keys, flags).unwrap();
        let size = Winsize {
            ws_row: 200,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&side, size).unwrap();
        command.env("TERM", "xterm-256color");
        if !self.colour {
            command.env("NO_COLOR", "1");
        }
        let stream = || Stdio::from(side.try_clone().unwrap());
        command.stdin(Stdio::null()).stdout(stream()).stderr(stream());
        let mut child = command.spawn().unwrap();
        let mut screen = File::from(keys);
        let reader = thread::spawn(move || {
            let (mut shown, mut part) = (Vec::new(), [0; 4096]);
            // Reading a pseudo-terminal that nobody has open is an error, not an end of file.
            while let Ok(count @ 1..) = screen.read(&mut part) {
                shown.extend_from_slice(&part[..count]);
            }
            shown
        });
        let ended = child.wait().unwrap();
        // The command and this function hold the terminal's other side: without both, the reader ends.
        drop((command, side));
        let shown = reader.join().unwrap();
        (ended.code(), String::from_utf8_lossy(&shown).replace("\r\n", "\n"))
    }
}

/// A text without the move of the cursor to the first of the lines that were erased.
fn after_move_up(text: &str) -> &str {
    let moved = text.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('A'));
    let moved = moved.filter(|(lines, _)| lines.bytes().all(|digit| digit.is_ascii_digit()));
    moved.map_or(text, |(_, rest)| rest)
}

/// What stays readable: without lines that were erased, such as those of progress.
fn left_on_screen(shown: &str) -> String {
    const ERASE_LINE: &str = "\r\u{1b}[2K";
    let lines = shown.split_inclusive('\n');
    let kept = lines.map(|line| match line.rsplit_once(ERASE_LINE) {
        Some((_, left)) => after_move_up(left),
        None => line,
    });
    kept.collect::<String>().replace('\u{1b}', "␛")
}
