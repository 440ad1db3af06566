//! [`Sink`]: where the records of a log go.

use std::io;

use super::{
    chain::{ChainedLines, End},
    entry::AuditEntry,
    log_file,
    stdout::Stdout,
    syslog::Syslog,
};
use pegboard_config::{AuditConfig, AuditTarget};

/// Where the records of a log go.
pub(super) enum Sink {
    File,
    /// What cannot be read again: the chain is that of this process.
    Stream(Box<StreamSink>),
}

/// A place to which records are only sent.
pub(super) struct StreamSink {
    out: StreamOut,
    /// The key of the argument hashes; `None` before the first record. It is nowhere else, so hashes are comparable within one run.
    key: Option<[u8; 32]>,
    end: End,
}

enum StreamOut {
    Stdout(Stdout),
    /// The program uses its stdout for something else.
    NoStdout,
    Syslog(Syslog),
}

impl Sink {
    /// The place that a config names. `has_stdout` says whether the program leaves its stdout to the log.
    pub(super) fn new(config: &AuditConfig, has_stdout: bool) -> Self {
        let out = match &config.to {
            AuditTarget::Stdout if has_stdout => StreamOut::Stdout(Stdout::default()),
            AuditTarget::Stdout => StreamOut::NoStdout,
            AuditTarget::Syslog(address) => StreamOut::Syslog(Syslog::new(address.clone())),
            _ => return Self::File,
        };
        Self::Stream(Box::new(StreamSink {
            out,
            key: None,
            end: End::START,
        }))
    }

    /// Writes records. An error says that some may be missing.
    pub(super) fn append(&mut self, config: &AuditConfig, entries: &mut [AuditEntry]) -> io::Result<()> {
        match self {
            Self::File => log_file::append(config, entries),
            Self::Stream(stream) => stream.append(entries),
        }
    }
}

impl StreamSink {
    fn append(&mut self, entries: &mut [AuditEntry]) -> io::Result<()> {
        let key = match self.key {
            Some(key) => key,
            None => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
                *self.key.insert(key)
            }
        };
        if self.end == End::START {
            let mut lines = ChainedLines::after(self.end);
            lines.header()?;
            self.send(&lines)?;
        }
        // One by one: the chain goes on after the last one that was sent.
        for entry in entries.iter_mut() {
            entry.sign(&key);
            let mut lines = ChainedLines::after(self.end);
            lines.entry(entry)?;
            self.send(&lines)?;
        }
        Ok(())
    }

    fn send(&mut self, lines: &ChainedLines) -> io::Result<()> {
        match &mut self.out {
            StreamOut::Stdout(stdout) => stdout.write(&lines.bytes)?,
            StreamOut::NoStdout => {
                let why = "stdout is for the output of this program; only `pegboard serve` writes an audit log there";
                return Err(io::Error::other(why));
            }
            StreamOut::Syslog(syslog) => syslog.send(lines.bytes.split(|byte| *byte == b'\n'))?,
        }
        self.end = lines.end;
        Ok(())
    }
}
