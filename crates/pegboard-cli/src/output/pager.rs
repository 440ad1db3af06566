//! Shows a text that is longer than the terminal in the user's pager.

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _, Write as _},
    process::{Command, Stdio},
};

/// Returns `true` if a text is to be shown in a pager: stdin and stdout are a terminal, and the text does not fit.
pub(super) fn is_needed(text: &str) -> bool {
    if !io::stdout().is_terminal()
        || !io::stdin().is_terminal()
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
    {
        return false;
    }
    let Some((_, height)) = terminal_size::terminal_size_of(io::stdout()) else {
        return false;
    };
    text.lines().count() >= usize::from(height.0) && command(|name| std::env::var_os(name)).is_some()
}

/// Shows the text and waits until the user leaves the pager. An error means that nothing was shown.
pub(super) fn show(text: &str) -> io::Result<()> {
    let words = command(|name| std::env::var_os(name)).ok_or(io::ErrorKind::NotFound)?;
    let (program, args) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quit if it fits, keep colours, leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let mut pager = command.spawn()?;
    if let Some(mut input) = pager.stdin.take() {
        // A pager that is left early closes its input.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = pager.wait();
    Ok(())
}

/// The pager's command: `PEGBOARD_PAGER`, `PAGER` or `less`; `None` if it is switched off by an empty text or `cat`.
fn command(variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<String>> {
    let set = variable("PEGBOARD_PAGER").or_else(|| variable("PAGER"));
    let set = match set {
        Some(set) => set.into_string().ok()?,
        None if cfg!(unix) => "less".to_owned(),
        None => return None,
    };
    let words: Vec<String> = set.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty() && words != ["cat"]).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_this_program_counts_more_and_an_empty_one_means_none() {
        let pager = |pegboard: Option<&str>, general: Option<&str>| {
            command(|name| match name {
                "PEGBOARD_PAGER" => pegboard.map(OsString::from),
                _ => general.map(OsString::from),
            })
        };
        let words = |text: &str| Some(text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(pager(Some("bat -p"), Some("more")), words("bat -p"));
        assert_eq!(pager(None, Some("more")), words("more"));
        assert_eq!(pager(Some(""), Some("more")), None);
        assert_eq!(pager(None, Some("cat")), None);
        #[cfg(unix)]
        assert_eq!(pager(None, None), words("less"));
    }
}
