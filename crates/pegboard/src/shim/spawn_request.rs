//! What a guard is told to start, as bytes in a file: variables and arguments do not fit into a message.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::PathBuf,
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::config::Rlimits;

/// The longest order. The system passes no more than 6 MB of arguments and variables to a program.
const LONGEST: u64 = 8 << 20;

/// A server to start, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpawnRequest {
    /// How long the server is waited for after it was asked to end.
    pub(crate) grace: Duration,
    pub(crate) rlimits: Rlimits,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
}

impl SpawnRequest {
    /// The order as a file that only those have who are given it.
    pub(super) fn write(&self) -> io::Result<File> {
        let bytes = self.to_bytes();
        if bytes.len() as u64 > LONGEST {
            // As the system would say.
            return Err(rustix::io::Errno::TOOBIG.into());
        }
        let mut file = File::from(memfd_create(c"pegboard-order", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        Ok(file)
    }

    pub(super) fn read(mut file: File) -> io::Result<Self> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        parts.number(u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        parts.text(OsStr::new(&write_limits(&self.rlimits)));
        parts.text(self.program.as_os_str());
        parts.number(u64::from(self.cwd.is_some()));
        if let Some(cwd) = &self.cwd {
            parts.text(cwd.as_os_str());
        }
        parts.number(self.args.len() as u64);
        self.args.iter().for_each(|arg| parts.text(arg));
        parts.number(self.env.len() as u64);
        for (name, value) in &self.env {
            parts.text(name);
            parts.text(value);
        }
        parts.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let grace = Duration::from_millis(rest.number()?);
        let rlimits = read_limits(&rest.text()?)?;
        let program = rest.text()?.into();
        let cwd = if rest.number()? == 1 {
            Some(rest.text()?.into())
        } else {
            None
        };
        let args = (0..rest.number()?).map(|_| rest.text()).collect::<Option<_>>()?;
        let env = (0..rest.number()?)
            .map(|_| Some((rest.text()?, rest.text()?)))
            .collect::<Option<_>>()?;
        Some(Self {
            grace,
            rlimits,
            program,
            args,
            env,
            cwd,
        })
    }
}

/// The limits as one word of a command line.
pub(super) fn write_limits(limits: &Rlimits) -> String {
    let Rlimits {
        open_files,
        data_bytes,
        processes,
        file_bytes,
    } = *limits;
    let limits = [open_files, data_bytes, processes, file_bytes];
    let limits = limits.map(|limit| limit.map_or("-".to_owned(), |limit| limit.to_string()));
    limits.join(",")
}

pub(super) fn read_limits(word: &OsStr) -> Option<Rlimits> {
    let limit = |word: &str| match word {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let limits = word.to_str()?.split(',').map(limit).collect::<Option<Vec<_>>>()?;
    let [open_files, data_bytes, processes, file_bytes] = limits.try_into().ok()?;
    Some(Rlimits {
        open_files,
        data_bytes,
        processes,
        file_bytes,
    })
}

/// Numbers, and texts with their lengths before them.
#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &OsStr) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> Option<OsString> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(text.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> SpawnRequest {
        SpawnRequest {
            grace: Duration::from_millis(2500),
            rlimits: Rlimits {
                open_files: Some(64),
                file_bytes: Some(1 << 40),
                ..Rlimits::default()
            },
            program: "/usr/bin/npx".into(),
            args: ["-y", "", "--", "a b"].map(OsString::from).to_vec(),
            env: vec![("PATH".into(), "/bin".into()), ("EMPTY".into(), OsString::new())],
            cwd: Some("/tmp".into()),
        }
    }

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let with_folder = order();
        let without = SpawnRequest { cwd: None, ..order() };
        for order in [with_folder, without] {
            assert_eq!(SpawnRequest::read(order.write().unwrap()).unwrap(), order);
        }
    }

    #[test]
    fn an_order_that_is_cut_is_no_order() {
        let bytes = order().to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(SpawnRequest::from_bytes(&bytes[..length]), None, "{length}");
        }
        // A count that the rest of the bytes cannot hold must not be believed.
        assert_eq!(Rest(&u64::MAX.to_le_bytes()).text(), None);
    }

    #[test]
    fn an_order_that_no_system_could_carry_out_is_not_written() {
        let args = vec!["x".repeat(9 << 20).into()];
        let order = SpawnRequest { args, ..order() };
        assert_eq!(order.write().unwrap_err().kind(), io::ErrorKind::ArgumentListTooLong);
    }
}
