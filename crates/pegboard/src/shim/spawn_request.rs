//! The spawn request for a guard, serialised into a memory file because arguments and environment do not fit into a packet.

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

/// The longest serialised request. The kernel passes at most 6 MB of arguments and environment to a program.
const MAX_BYTES: u64 = 8 << 20;

/// A server to spawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpawnRequest {
    /// How long the server may take to exit after SIGTERM.
    pub(crate) grace: Duration,
    pub(crate) rlimits: Rlimits,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
}

impl SpawnRequest {
    /// Writes the request to an anonymous file.
    pub(super) fn write(&self) -> io::Result<File> {
        let bytes = self.to_bytes();
        if bytes.len() as u64 > MAX_BYTES {
            // The error that `exec` would return.
            return Err(rustix::io::Errno::TOOBIG.into());
        }
        let mut file = File::from(memfd_create(c"pegboard-order", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        Ok(file)
    }

    pub(super) fn read(mut file: File) -> io::Result<Self> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        writer.text(OsStr::new(&write_limits(&self.rlimits)));
        writer.text(self.program.as_os_str());
        writer.number(u64::from(self.cwd.is_some()));
        if let Some(cwd) = &self.cwd {
            writer.text(cwd.as_os_str());
        }
        writer.number(self.args.len() as u64);
        self.args.iter().for_each(|arg| writer.text(arg));
        writer.number(self.env.len() as u64);
        for (name, value) in &self.env {
            writer.text(name);
            writer.text(value);
        }
        writer.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let grace = Duration::from_millis(reader.number()?);
        let rlimits = read_limits(&reader.text()?)?;
        let program = reader.text()?.into();
        let cwd = if reader.number()? == 1 {
            Some(reader.text()?.into())
        } else {
            None
        };
        let args = (0..reader.number()?).map(|_| reader.text()).collect::<Option<_>>()?;
        let env = (0..reader.number()?)
            .map(|_| Some((reader.text()?, reader.text()?)))
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

/// Formats the limits as one command-line argument.
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

/// Parses the output of [`write_limits`].
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

/// Writes numbers and length-prefixed texts.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &OsStr) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }
}

/// Reads what [`Writer`] has written.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
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

    fn request() -> SpawnRequest {
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
    fn a_request_survives_serialisation() {
        let with_folder = request();
        let without = SpawnRequest { cwd: None, ..request() };
        for request in [with_folder, without] {
            assert_eq!(SpawnRequest::read(request.write().unwrap()).unwrap(), request);
        }
    }

    #[test]
    fn a_truncated_request_is_rejected() {
        let bytes = request().to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(SpawnRequest::from_bytes(&bytes[..length]), None, "{length}");
        }
        // A length beyond the end of the bytes must not be trusted.
        assert_eq!(Reader(&u64::MAX.to_le_bytes()).text(), None);
    }

    #[test]
    fn a_request_that_exec_would_reject_is_not_written() {
        let args = vec!["x".repeat(9 << 20).into()];
        let request = SpawnRequest { args, ..request() };
        assert_eq!(request.write().unwrap_err().kind(), io::ErrorKind::ArgumentListTooLong);
    }
}
