//! What a shim is told on its command line.

use std::{
    ffi::{OsStr, OsString},
    time::Duration,
};

use crate::config::Rlimits;

/// This program. The link leads to the running file even after an update has replaced it.
pub(super) const PROGRAM: &str = "/proc/self/exe";

/// The first argument of a shim. Not a variable, because the server's processes would inherit that.
const MARK: &str = "__pegboard-run";

/// The server to run, for whom, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The process that wants the server. Its end is the server's end.
    pub(crate) parent: u32,
    /// How long the server is waited for after it was asked to end.
    pub(crate) grace: Duration,
    pub(crate) rlimits: Rlimits,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

impl Order {
    /// The command that carries it out.
    pub(crate) fn command(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(PROGRAM);
        // Lists of processes show the program under its own name.
        if let Some(name) = std::env::args_os().next() {
            command.arg0(name);
        }
        command.args(self.write());
        command
    }

    fn write(&self) -> Vec<OsString> {
        let Rlimits {
            open_files,
            data_bytes,
            processes,
            file_bytes,
        } = self.rlimits;
        let limits = [open_files, data_bytes, processes, file_bytes];
        let limits = limits.map(|limit| limit.map_or("-".to_owned(), |limit| limit.to_string()));
        let mut words: Vec<OsString> = vec![
            MARK.into(),
            self.parent.to_string().into(),
            self.grace.as_millis().to_string().into(),
            limits.join(",").into(),
            self.program.clone(),
        ];
        words.extend_from_slice(&self.args);
        words
    }

    /// The order in the arguments of this process; none when it was not started as a shim.
    pub(super) fn read(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut args = args.skip(1);
        if args.next()? != MARK {
            return None;
        }
        let parent = number(&args.next()?)?;
        let grace = Duration::from_millis(number(&args.next()?)?);
        let limits = args.next()?;
        let mut limits = limits.to_str()?.split(',').map(|limit| limit.parse().ok());
        let mut limit = || limits.next().flatten();
        Some(Self {
            parent: u32::try_from(parent).ok()?,
            grace,
            rlimits: Rlimits {
                open_files: limit(),
                data_bytes: limit(),
                processes: limit(),
                file_bytes: limit(),
            },
            program: args.next()?,
            args: args.collect(),
        })
    }
}

fn number(word: &OsStr) -> Option<u64> {
    word.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = Order {
            parent: 4711,
            grace: Duration::from_millis(2500),
            rlimits: Rlimits {
                open_files: Some(64),
                file_bytes: Some(1 << 40),
                ..Rlimits::default()
            },
            program: "/usr/bin/npx".into(),
            args: ["-y", "", "--", "a b"].map(OsString::from).to_vec(),
        };
        let words = [OsString::from("agent")].into_iter().chain(order.write());
        assert_eq!(Order::read(words), Some(order));
    }

    #[test]
    fn any_other_command_line_is_no_order() {
        for line in [
            "agent",
            "agent run",
            "agent __pegboard-run",
            "agent __pegboard-run x 1 - sh",
        ] {
            assert_eq!(Order::read(line.split(' ').map(OsString::from)), None, "{line}");
        }
    }
}
