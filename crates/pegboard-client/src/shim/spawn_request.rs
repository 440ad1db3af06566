//! The spawn request for a guard, serialised into a memory file because arguments and environment do not fit into a packet.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::sandbox::SandboxPlan;
use pegboard_config::{Rlimits, SandboxLevel, SandboxNetwork};

/// The longest serialised request. The kernel passes at most 6 MB of arguments and environment to a program.
const MAX_BYTES: u64 = 8 << 20;

/// A server to spawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpawnRequest {
    /// How long the server may take to exit after SIGTERM.
    pub(crate) grace: Duration,
    /// Whether its descendants stay when it exits, until its handle is dropped.
    pub(crate) keeps_descendants: bool,
    pub(crate) rlimits: Rlimits,
    pub(crate) sandbox: Option<SandboxPlan>,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
}

impl SpawnRequest {
    /// Whether the server starts as a process that restricts itself first.
    pub(crate) fn needs_launcher(&self) -> bool {
        self.sandbox.is_some() || self.rlimits != Rlimits::DEFAULT
    }

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

    pub(super) fn read(mut file: &File) -> io::Result<Self> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        writer.number(u64::from(self.keeps_descendants));
        writer.limits(&self.rlimits);
        writer.sandbox(self.sandbox.as_ref());
        writer.text(self.program.as_os_str());
        writer.optional_path(self.cwd.as_deref());
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
        let mut reader = FieldReader(bytes);
        let grace = Duration::from_millis(reader.number()?);
        let keeps_descendants = reader.number()? != 0;
        let rlimits = reader.limits()?;
        let sandbox = reader.sandbox()?;
        let program = reader.text()?.into();
        let cwd = reader.optional_path()?;
        let args = (0..reader.number()?).map(|_| reader.text()).collect::<Option<_>>()?;
        let env = (0..reader.number()?)
            .map(|_| Some((reader.text()?, reader.text()?)))
            .collect::<Option<_>>()?;
        Some(Self {
            grace,
            keeps_descendants,
            rlimits,
            sandbox,
            program,
            args,
            env,
            cwd,
        })
    }
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

    fn optional_path(&mut self, path: Option<&Path>) {
        self.number(u64::from(path.is_some()));
        if let Some(path) = path {
            self.text(path.as_os_str());
        }
    }

    fn paths(&mut self, paths: &[PathBuf]) {
        self.number(paths.len() as u64);
        paths.iter().for_each(|path| self.text(path.as_os_str()));
    }

    fn limits(&mut self, limits: &Rlimits) {
        let Rlimits {
            open_files,
            memory: data_bytes,
            processes,
            file_size: file_bytes,
        } = *limits;
        for limit in [open_files, data_bytes, processes, file_bytes] {
            self.number(u64::from(limit.is_some()));
            self.number(limit.unwrap_or_default());
        }
    }

    fn sandbox(&mut self, plan: Option<&SandboxPlan>) {
        let Some(plan) = plan else { return self.number(0) };
        self.number(match plan.level {
            SandboxLevel::Off => 0,
            SandboxLevel::Basic => 1,
            SandboxLevel::Strict => 2,
        });
        self.number(u64::from(plan.require));
        match &plan.network {
            SandboxNetwork::Off => self.number(0),
            SandboxNetwork::All => self.number(1),
            SandboxNetwork::Ports(ports) => {
                self.number(2);
                self.number(ports.len() as u64);
                ports.iter().for_each(|port| self.number(u64::from(*port)));
            }
        }
        self.paths(&plan.read);
        self.paths(&plan.write);
        self.optional_path(plan.home.as_deref());
        self.optional_path(plan.scratch.as_deref());
    }
}

/// Reads what [`Writer`] has written.
struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
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

    fn optional_path(&mut self) -> Option<Option<PathBuf>> {
        match self.number()? {
            0 => Some(None),
            _ => Some(Some(self.text()?.into())),
        }
    }

    fn paths(&mut self) -> Option<Vec<PathBuf>> {
        (0..self.number()?).map(|_| self.text().map(PathBuf::from)).collect()
    }

    fn limits(&mut self) -> Option<Rlimits> {
        let mut limit = || {
            let (is_set, limit) = (self.number()?, self.number()?);
            Some((is_set == 1).then_some(limit))
        };
        Some(Rlimits {
            open_files: limit()?,
            memory: limit()?,
            processes: limit()?,
            file_size: limit()?,
        })
    }

    fn sandbox(&mut self) -> Option<Option<SandboxPlan>> {
        let level = match self.number()? {
            0 => return Some(None),
            1 => SandboxLevel::Basic,
            2 => SandboxLevel::Strict,
            _ => return None,
        };
        let require = self.number()? != 0;
        let network = match self.number()? {
            0 => SandboxNetwork::Off,
            1 => SandboxNetwork::All,
            2 => {
                let ports = (0..self.number()?).map(|_| u16::try_from(self.number()?).ok());
                SandboxNetwork::Ports(ports.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Some(SandboxPlan {
            level,
            require,
            network,
            read: self.paths()?,
            write: self.paths()?,
            home: self.optional_path()?,
            scratch: self.optional_path()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SpawnRequest {
        SpawnRequest {
            grace: Duration::from_millis(2500),
            keeps_descendants: true,
            rlimits: Rlimits {
                open_files: Some(64),
                file_size: Some(1 << 40),
                ..Rlimits::default()
            },
            sandbox: None,
            program: "/usr/bin/npx".into(),
            args: ["-y", "", "--", "a b"].map(OsString::from).to_vec(),
            env: vec![("PATH".into(), "/bin".into()), ("EMPTY".into(), OsString::new())],
            cwd: Some("/tmp".into()),
        }
    }

    fn plan(network: SandboxNetwork) -> SandboxPlan {
        SandboxPlan {
            level: SandboxLevel::Strict,
            require: true,
            network,
            read: vec!["/usr".into(), "/a b".into()],
            write: vec!["/w".into()],
            home: Some("/home/me".into()),
            scratch: None,
        }
    }

    #[test]
    fn a_request_survives_serialisation() {
        let with_folder = request();
        let without = SpawnRequest { cwd: None, ..request() };
        let networks = [
            SandboxNetwork::Off,
            SandboxNetwork::All,
            SandboxNetwork::Ports(vec![443, 5432]),
        ];
        let sandboxed = networks.map(|network| SpawnRequest {
            sandbox: Some(plan(network)),
            ..request()
        });
        for request in sandboxed.into_iter().chain([with_folder, without]) {
            assert_eq!(SpawnRequest::read(&request.write().unwrap()).unwrap(), request);
        }
    }

    #[test]
    fn a_truncated_request_is_rejected() {
        let request = SpawnRequest {
            sandbox: Some(plan(SandboxNetwork::Ports(vec![1]))),
            ..request()
        };
        let bytes = request.to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(SpawnRequest::from_bytes(&bytes[..length]), None, "{length}");
        }
        // A length beyond the end of the bytes must not be trusted.
        assert_eq!(FieldReader(&u64::MAX.to_le_bytes()).text(), None);
    }

    #[test]
    fn a_request_that_exec_would_reject_is_not_written() {
        let args = vec!["x".repeat(9 << 20).into()];
        let request = SpawnRequest { args, ..request() };
        assert_eq!(request.write().unwrap_err().kind(), io::ErrorKind::ArgumentListTooLong);
    }
}
