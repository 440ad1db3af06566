//! Appends records to a log, and begins a new file when one is full.
//!
//! Every batch opens the files again: another process may have written, rotated or removed them meanwhile.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{
    chain::{ChainedLines, End, Link, MAGIC, MAX_LINE},
    digest::Digest,
    entry::AuditEntry,
    state_file::{Head, StateFile},
};
use pegboard_base::private_file;
use pegboard_config::AuditConfig;

/// The most files in the log's folder that are inspected for older parts of it.
const MAX_INSPECTED: usize = 100_000;
/// How much of a file's end is read at first.
const SHORT_TAIL: u64 = 4096;

/// Why a file that is something else is left alone.
#[derive(Debug, thiserror::Error)]
#[error("it is no audit log")]
pub(super) struct NotALog;

/// The end of a file: its last whole record, and what a crash has left after it.
struct Tail {
    last: Option<End>,
    torn: Option<Digest>,
    /// Whether there is no whole line: a crash has cut the header.
    is_blank: bool,
}

/// Appends records under the log's lock.
pub(crate) fn append(config: &AuditConfig, entries: &mut [AuditEntry]) -> io::Result<()> {
    let mut state = StateFile::lock(&config.file)?;
    for entry in entries.iter_mut() {
        entry.sign(&state.key);
    }
    let mut file = private_file::append(&config.file)?;
    let mut length = file.metadata()?.len();
    let tail = read_tail(&mut file, length)?;
    if length > 0 && tail.is_blank {
        file.set_len(0)?;
        length = 0;
    }
    // The later of both: the log is ahead after a crash, and behind if records were removed from its end. In that case the gap stays visible.
    let stored = state.head.map(|head| head.end);
    let last = match (stored, tail.last) {
        (Some(stored), Some(last)) if last.seq > stored.seq => last,
        (Some(stored), _) => stored,
        (None, last) => last.unwrap_or(End::START),
    };
    let mut first = match state.head {
        Some(head) => head.first,
        None => find_first_number(&config.file, &mut file, length)?,
    };
    // A torn line is noted in the file that has it.
    if length > 0 && is_full(config, length) && tail.torn.is_none() {
        first = rotate(config, &mut file, first, &mut |first| {
            state.set_head(Head { first, end: last })
        })?;
        file = private_file::append(&config.file)?;
        length = 0;
    }
    let mut lines = ChainedLines::after(last);
    if length == 0 {
        lines.header()?;
    } else if let Some(torn) = tail.torn {
        lines.bytes.push(b'\n');
        lines.entry(&AuditEntry::recovered(torn))?;
    }
    for entry in entries.iter() {
        lines.entry(entry)?;
    }
    file.write_all(&lines.bytes)?;
    state.set_head(Head { first, end: lines.end })
}

fn is_full(config: &AuditConfig, length: u64) -> bool {
    length >= u64::try_from(config.max_size).unwrap_or(u64::MAX)
}

/// Reads the end of a file. Fails if it is not an audit log.
fn read_tail(file: &mut File, length: u64) -> io::Result<Tail> {
    if length == 0 {
        return Ok(Tail {
            last: None,
            torn: None,
            is_blank: true,
        });
    }
    let mut magic = vec![0; MAGIC.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut magic)?;
    if !MAGIC.starts_with(&magic) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, NotALog));
    }
    // Most lines are short, and every batch reads the last one.
    let mut bytes = read_end(file, length, SHORT_TAIL)?;
    if bytes.iter().filter(|byte| **byte == b'\n').count() < 2 {
        bytes = read_end(file, length, 2 * MAX_LINE as u64)?;
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, rest) = bytes.split_at(whole);
    let last = lines.strip_suffix(b"\n").and_then(|lines| {
        let start = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = &lines[start..];
        let seq = Link::parse(line)?.seq;
        let hash = Digest::compute(line);
        Some(End { seq, hash })
    });
    Ok(Tail {
        last,
        torn: (!rest.is_empty()).then(|| Digest::compute(rest)),
        is_blank: whole == 0 && length < MAX_LINE as u64,
    })
}

/// Reads the last bytes of a file.
fn read_end(file: &mut File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    let window = length.min(most);
    file.seek(SeekFrom::Start(length - window))?;
    let mut bytes = Vec::new();
    Read::by_ref(file).take(window).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Renames a full file after its first record, and removes the oldest files. Returns the number of the oldest record that is kept. It is passed
/// to `keep_from` before files are removed, so that a crash in between does not look as if they were removed by others.
fn rotate(
    config: &AuditConfig,
    file: &mut File,
    kept: u64,
    keep_from: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<u64> {
    let first = first_record(file)?;
    file.sync_data()?;
    std::fs::rename(&config.file, part(&config.file, first))?;
    let mut parts = parts(&config.file)?;
    let surplus = (parts.len() + 1).saturating_sub(config.max_files.max(2));
    let removed: Vec<_> = parts.drain(..surplus).collect();
    if removed.is_empty() {
        return Ok(kept);
    }
    let first = parts.first().map_or(first, |(first, _)| *first);
    keep_from(first)?;
    for (_, path) in removed {
        std::fs::remove_file(path)?;
    }
    Ok(first)
}

/// The number of the oldest record of a log whose state file is missing.
fn find_first_number(log: &Path, file: &mut File, length: u64) -> io::Result<u64> {
    match parts(log)?.first() {
        Some((first, _)) => Ok(*first),
        None if length > 0 => first_record(file),
        None => Ok(1),
    }
}

/// The number of a file's first record.
fn first_record(file: &mut File) -> io::Result<u64> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(MAX_LINE as u64).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let link = Link::parse(line);
    link.map(|link| link.seq)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its first line is damaged"))
}

/// The path of an older file of the log: its name and the number of its first record.
fn part(log: &Path, first: u64) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(format!(".{first:012}"));
    path.into()
}

/// The files of a log, the oldest first. The last one is the one that is written.
pub fn files(log: &Path) -> io::Result<Vec<PathBuf>> {
    let older = parts(log)?.into_iter().map(|(_, path)| path);
    Ok(older.chain([log.to_owned()]).collect())
}

/// The older files of a log with the numbers of their first records, the oldest first.
pub(super) fn parts(log: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(name) = log.file_name().and_then(OsStr::to_str) else {
        return Ok(Vec::new());
    };
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))?.take(MAX_INSPECTED) {
        let entry = entry?;
        let file = entry.file_name();
        let number = file
            .to_str()
            .and_then(|file| file.strip_prefix(name)?.strip_prefix('.'));
        let is_number = |digits: &&str| digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(first) = number.filter(is_number).and_then(|digits| digits.parse().ok()) {
            parts.push((first, entry.path()));
        }
    }
    parts.sort_unstable();
    Ok(parts)
}
