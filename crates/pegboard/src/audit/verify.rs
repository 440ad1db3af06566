//! Verifies the chain of a log over all its files.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    chain::{End, Link, MAX_LINE},
    digest::Digest,
    log_file::parts,
    state_file,
};
use pegboard_base::private_file;

/// What a verification has found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditCheck {
    /// The files, the oldest first.
    pub files: Vec<PathBuf>,
    /// How many whole records there are, up to the first break.
    pub records: u64,
    /// The number of the oldest record. Older ones were removed with their files, as `max_files` says.
    pub first: u64,
    /// The number of the last verified record.
    pub last: u64,
    /// The hash of the last verified record. Kept elsewhere, it proves later that the log up to here was not rewritten.
    pub head: String,
    /// How many records a crash has cut. The chain continues after them.
    pub torn: u64,
    /// How many records could not be written, as the log itself says.
    pub lost: u64,
    /// Whether the last line is not complete: it is being written, or its writer was killed.
    pub is_last_torn: bool,
    /// Whether the file beside the log, with the end of the chain, was there. Without it, records that were removed from the end are not found.
    pub has_state: bool,
    /// The first break of the chain.
    pub broken: Option<AuditBreak>,
}

/// The first record at which a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditBreak {
    /// The file.
    pub file: PathBuf,
    /// The line in it; zero for the file as a whole.
    pub line: u64,
    /// What is wrong.
    pub kind: AuditBreakKind,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AuditBreakKind {
    /// The line is not a record.
    Unreadable,
    /// The content of the record before was changed.
    Changed,
    /// Records before this one are missing.
    Missing,
    /// The record was moved or copied here.
    Moved,
    /// Records at the end are missing, or the last one was changed.
    EndMissing,
    /// A file at the beginning is missing.
    StartMissing,
    /// The record with the given hash is not in the log.
    HeadMissing,
    /// The state file cannot be used.
    BadState,
}

impl AuditBreakKind {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Moved => "moved",
            Self::EndMissing => "end_missing",
            Self::StartMissing => "start_missing",
            Self::HeadMissing => "head_missing",
            Self::BadState => "bad_state",
        }
    }
}

impl std::fmt::Display for AuditBreakKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "the line is not a record",
            Self::Changed => "the record before this one was changed",
            Self::Missing => "records before this one are missing",
            Self::Moved => "the record is not at its place",
            Self::EndMissing => "records at the end are missing, or the last one was changed",
            Self::StartMissing => "the oldest records are missing",
            Self::HeadMissing => "no record has the given hash: the log was rewritten or cut",
            Self::BadState => "the state file beside the log cannot be used",
        })
    }
}

/// Verifies an audit log and all its older files. `known_head` is the [`AuditCheck::head`] of an earlier verification, which must still be
/// in the log. Fails if the log cannot be read.
///
/// Blocks for as long as it takes to read the files.
pub fn verify(log: &Path, known_head: Option<&str>) -> io::Result<AuditCheck> {
    // While the lock is held no file is renamed. Records that are written after that are ahead of the head.
    let (state, is_state_bad) = match state_file::read_head(log) {
        Ok(state) => (state, false),
        Err(_) => (None, true),
    };
    let (head, lock) = state.unzip();
    let older: Vec<_> = parts(log)?
        .into_iter()
        .filter(|(first, _)| head.is_none_or(|head| *first >= head.first))
        .map(|(_, path)| path)
        .collect();
    let current = match private_file::open(log) {
        // A crash between two files: the next writer creates it.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !older.is_empty() => None,
        opened => Some(opened?),
    };
    drop(lock);
    let mut verifier = Verifier {
        check: AuditCheck {
            files: older,
            records: 0,
            first: 0,
            last: 0,
            head: Digest::ZERO.to_string(),
            torn: 0,
            lost: 0,
            is_last_torn: false,
            has_state: head.is_some(),
            broken: None,
        },
        end: None,
        stored: head.map(|head| head.end),
        known: known_head.and_then(Digest::parse),
        is_known_found: known_head.is_none(),
    };
    for path in verifier.check.files.clone() {
        if verifier.check.broken.is_none() {
            let file = private_file::open(&path)?;
            verifier.file(file, &path, false)?;
        }
    }
    if let Some(current) = current {
        verifier.check.files.push(log.to_owned());
        if verifier.check.broken.is_none() {
            verifier.file(current, log, true)?;
        }
    }
    if is_state_bad {
        verifier.fail(&state_file::path(log), 0, AuditBreakKind::BadState);
    }
    if head.is_some_and(|head| verifier.check.first != head.first) {
        verifier.fail(log, 0, AuditBreakKind::StartMissing);
    }
    if verifier.stored.is_some() {
        verifier.fail(log, 0, AuditBreakKind::EndMissing);
    }
    if !verifier.is_known_found {
        verifier.fail(log, 0, AuditBreakKind::HeadMissing);
    }
    Ok(verifier.check)
}

struct Verifier {
    check: AuditCheck,
    end: Option<End>,
    /// The end of the chain in the state file, until the record is found.
    stored: Option<End>,
    known: Option<Digest>,
    is_known_found: bool,
}

/// A line, its number and whether it is complete.
struct LogLine {
    bytes: Vec<u8>,
    number: u64,
    is_whole: bool,
}

impl Verifier {
    fn fail(&mut self, file: &Path, line: u64, kind: AuditBreakKind) {
        self.check.broken.get_or_insert_with(|| AuditBreak {
            file: file.to_owned(),
            line,
            kind,
        });
    }

    fn file(&mut self, file: File, path: &Path, is_last: bool) -> io::Result<()> {
        let mut lines = LogLines {
            file: BufReader::new(file),
            number: 0,
        };
        let mut next = lines.next()?;
        while let Some(line) = next.take() {
            next = lines.next()?;
            if !line.is_whole && is_last {
                self.check.is_last_torn = true;
                return Ok(());
            }
            let hash = Digest::compute(&line.bytes);
            let follows = next.as_ref().and_then(|next| Link::parse(&next.bytes));
            let is_torn = follows.is_some_and(|link| {
                link.event == "recovered" && link.torn.as_deref().and_then(Digest::parse) == Some(hash)
            });
            if is_torn {
                self.check.torn += 1;
                continue;
            }
            match Link::parse(&line.bytes).filter(|_| line.is_whole) {
                None => self.fail(path, line.number, AuditBreakKind::Unreadable),
                Some(link) => self.link(path, &line, &link, hash),
            }
            if self.check.broken.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Verifies that a record follows the one before.
    fn link(&mut self, path: &Path, line: &LogLine, link: &Link, hash: Digest) {
        if let Some(end) = self.end {
            let kind = match link.seq {
                seq if seq <= end.seq => Some(AuditBreakKind::Moved),
                seq if seq > end.seq.saturating_add(1) => Some(AuditBreakKind::Missing),
                _ if link.prev != end.hash.to_string() => Some(AuditBreakKind::Changed),
                _ => None,
            };
            if let Some(kind) = kind {
                return self.fail(path, line.number, kind);
            }
        } else {
            self.check.first = link.seq;
            if link.seq == 1 && link.prev != Digest::ZERO.to_string() {
                return self.fail(path, line.number, AuditBreakKind::Changed);
            }
        }
        let end = End { seq: link.seq, hash };
        if let Some(stored) = self.stored.filter(|stored| stored.seq == end.seq) {
            if stored.hash != hash {
                return self.fail(path, line.number, AuditBreakKind::EndMissing);
            }
            self.stored = None;
        }
        self.is_known_found |= self.known == Some(hash);
        if link.event == "lost" {
            self.check.lost += read_lost_count(&line.bytes);
        }
        self.end = Some(end);
        self.check.records += 1;
        self.check.last = link.seq;
        self.check.head = hash.to_string();
    }
}

/// How many records a line says are lost.
fn read_lost_count(line: &[u8]) -> u64 {
    let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    value.and_then(|value| value.get("records")?.as_u64()).unwrap_or(0)
}

/// The lines of a file. A line longer than any record ends the reading of it.
struct LogLines {
    file: BufReader<File>,
    number: u64,
}

impl LogLines {
    fn next(&mut self) -> io::Result<Option<LogLine>> {
        let mut bytes = Vec::new();
        let mut limited = Read::by_ref(&mut self.file).take(MAX_LINE as u64 + 1);
        limited.read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let is_whole = bytes.pop_if(|byte| *byte == b'\n').is_some();
        Ok(Some(LogLine {
            bytes,
            number: self.number,
            is_whole,
        }))
    }
}
