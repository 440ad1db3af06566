//! The file beside a log: its lock, the key of the argument hashes, and the end of the chain.
//!
//! The end of the chain reveals that records were removed from the end of the log. The key is here and not in the log, so that a reader
//! of a copied log cannot guess arguments by their hashes.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    chain::End,
    digest::{Digest, hex},
};
use pegboard_base::private_file;

/// How long a writer waits for the others.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to lock.
const LOCK_POLL: Duration = Duration::from_millis(10);
/// The line with the key, and that with the end of the chain. Both are padded, so that the second is overwritten in place.
const KEY_LINE: usize = 128;
const HEAD_LINE: usize = 256;

/// What is known about the chain besides the log itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of the oldest record that is kept.
    pub(super) first: u64,
    pub(super) end: End,
}

/// The locked file. Dropping it releases the lock.
pub(super) struct StateFile {
    file: File,
    pub(super) key: [u8; 32],
    /// `None` before the first record, or if the line is damaged.
    pub(super) head: Option<Head>,
}

#[derive(Serialize, Deserialize)]
struct KeyLine {
    key: String,
}

#[derive(Serialize, Deserialize)]
struct HeadLine {
    first: u64,
    seq: u64,
    hash: String,
}

/// The path of the file for a log.
pub(super) fn path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".state");
    path.into()
}

/// Reads the head for a verification. The lock, if it was released in time, is held until the returned file is dropped. `Ok(None)` if there is
/// no state file, or no head in it yet.
pub(super) fn read_head(log: &Path) -> io::Result<Option<(Head, File)>> {
    let mut file = match private_file::open(&path(log)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let _ = wait_for_lock(&file);
    let content = read_lines(&mut file)?;
    match parse(&content) {
        Some((_, Some(head))) => Ok(Some((head, file))),
        // Its writer was killed between the first records and the first end of the chain.
        Some((_, None)) if content.len() == KEY_LINE => Ok(None),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged")),
    }
}

impl StateFile {
    /// Opens and locks the file; creates it with a new key if there is none.
    pub(super) fn lock(log: &Path) -> io::Result<Self> {
        let mut file = private_file::edit(&path(log))?;
        wait_for_lock(&file)?;
        if let Some((key, head)) = parse(&read_lines(&mut file)?) {
            return Ok(Self { file, key, head });
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        file.set_len(0)?;
        write_line(&mut file, 0, &KeyLine { key: digits }, KEY_LINE)?;
        Ok(Self { file, key, head: None })
    }

    /// Stores the end of the chain.
    pub(super) fn set_head(&mut self, head: Head) -> io::Result<()> {
        let line = HeadLine {
            first: head.first,
            seq: head.end.seq,
            hash: head.end.hash.to_string(),
        };
        write_line(&mut self.file, KEY_LINE as u64, &line, HEAD_LINE)?;
        self.head = Some(head);
        Ok(())
    }
}

/// Locks the file, or fails after [`LOCK_TIMEOUT`]. The system releases the lock of a process that is killed.
fn wait_for_lock(file: &File) -> io::Result<()> {
    let (started, mut pause) = (Instant::now(), Duration::from_micros(50));
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if started.elapsed() >= LOCK_TIMEOUT => {
                let message = "another process has held its lock for too long";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::WouldBlock) => {
                thread::sleep(pause);
                pause = (pause * 2).min(LOCK_POLL);
            }
        }
    }
}

fn read_lines(file: &mut File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take((KEY_LINE + HEAD_LINE) as u64).read_to_end(&mut content)?;
    Ok(content)
}

fn write_line(file: &mut File, at: u64, line: &impl Serialize, length: usize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.resize(length - 1, b' ');
    text.push(b'\n');
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&text)
}

/// The key, and the head if its line is complete.
fn parse(content: &[u8]) -> Option<([u8; 32], Option<Head>)> {
    let (key_line, head_line) = content.split_at_checked(KEY_LINE)?;
    let digits = serde_json::from_slice::<KeyLine>(key_line).ok()?.key;
    let mut key = [0; 32];
    if !hex(&digits, &mut key) {
        return None;
    }
    let head = |line: HeadLine| {
        let hash = Digest::parse(&line.hash)?;
        let end = End { seq: line.seq, hash };
        Some(Head { first: line.first, end })
    };
    let head = serde_json::from_slice::<HeadLine>(head_line).ok().and_then(head);
    Some((key, head))
}
