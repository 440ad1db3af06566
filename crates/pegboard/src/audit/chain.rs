//! The lines of a log and how they are chained: each has the number of its record and the hash of the line before.

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use super::{digest::Digest, entry::AuditEntry};

/// The first bytes of every file: the format's version, in the header.
pub(super) const MAGIC: &[u8] = b"{\"audit\":1,";
/// Longer than any line that is written.
pub(super) const MAX_LINE: usize = 64 << 10;

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The number of the last record. Zero before the first one.
    pub(super) seq: u64,
    /// The hash of its line.
    pub(super) hash: Digest,
}

impl End {
    /// The end of an empty log.
    pub(super) const START: Self = Self {
        seq: 0,
        hash: Digest::ZERO,
    };
}

/// The header of a file. Its `prev` is the end of the file before.
#[derive(Serialize)]
struct Header {
    audit: u32,
    #[serde(flatten)]
    link: WrittenLink,
    event: &'static str,
}

#[derive(Serialize)]
struct ChainRecord<'a> {
    #[serde(flatten)]
    link: WrittenLink,
    pid: u32,
    #[serde(flatten)]
    entry: &'a AuditEntry,
}

#[derive(Serialize)]
struct WrittenLink {
    seq: u64,
    at: Timestamp,
    prev: String,
}

/// The part of a line that chains it.
#[derive(Debug, Deserialize)]
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) event: String,
    /// The hash of the line before, if a crash has cut that one.
    pub(super) torn: Option<String>,
}

impl Link {
    /// Parses a line. `None` if it is not a record.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_LINE {
            return None;
        }
        serde_json::from_slice(line).ok()
    }
}

/// Lines that continue a chain, before they are written.
pub(super) struct ChainedLines {
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
}

impl ChainedLines {
    pub(super) fn after(end: End) -> Self {
        Self { bytes: Vec::new(), end }
    }

    /// Adds the header of a file.
    pub(super) fn header(&mut self) -> Result<(), serde_json::Error> {
        let header = Header {
            audit: 1,
            link: self.link(),
            event: "header",
        };
        self.add(&header)
    }

    pub(super) fn entry(&mut self, entry: &AuditEntry) -> Result<(), serde_json::Error> {
        let record = ChainRecord {
            link: self.link(),
            pid: std::process::id(),
            entry,
        };
        self.add(&record)
    }

    fn link(&self) -> WrittenLink {
        WrittenLink {
            seq: self.end.seq.saturating_add(1),
            at: Timestamp::now(),
            prev: self.end.hash.to_string(),
        }
    }

    fn add(&mut self, line: &impl Serialize) -> Result<(), serde_json::Error> {
        let start = self.bytes.len();
        serde_json::to_writer(&mut self.bytes, line)?;
        self.end = End {
            seq: self.end.seq.saturating_add(1),
            hash: Digest::compute(&self.bytes[start..]),
        };
        self.bytes.push(b'\n');
        Ok(())
    }
}
