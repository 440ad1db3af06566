//! [`CallsInFlight`]: a file that lists the calls which the servers of a daemon have now. A daemon that is killed leaves it behind, so that the
//! next one and `pegboard status` can tell which calls may have run.
//!
//! The file has a slot for each call: one line of JSON, padded with spaces, or a zero byte at its start if the slot is free. A call costs one
//! write when it begins and one when it ends. It has no arguments and no results.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use pegboard::journal::{CallJournal, JournalEntry};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::{
    folder::{self, user},
    identity::Identity,
    place::journal_path,
};
use crate::{cli::Global, settings::Settings};

/// The length of a slot.
const SLOT: usize = 256;

/// The number of slots. A gateway has no more requests in flight; a call without a slot is not noted.
const SLOTS: usize = 4096;

/// The longest text of each field, in bytes, so that a line fits its slot even if every character must be escaped once.
const MAX_TEXT: usize = 24;

/// The most calls of an earlier daemon that are told.
const MAX_TOLD: usize = 100;

/// The ticket of a call without a slot.
const NOT_NOTED: u64 = u64::MAX;

/// The calls in flight of this daemon.
#[derive(Debug)]
pub(crate) struct CallsInFlight {
    file: File,
    /// One bit for each slot that is taken.
    taken: Vec<AtomicU64>,
    /// Where the last free slot was found.
    last: AtomicUsize,
}

/// A call that a daemon did not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unfinished {
    /// The id of the call; empty if its slot cannot be read.
    id: String,
    server: String,
    tool: String,
    principal: Option<String>,
    /// When it was sent, in milliseconds since 1970.
    started_unix_ms: u64,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, tool, .. } = self;
        if self.id.is_empty() {
            return f.write_str(
                "a call was in flight when the daemon was killed, and its note is damaged: it may have run",
            );
        }
        write!(f, "the call of {server}.{tool}")?;
        if let Some(principal) = &self.principal {
            write!(f, " by {principal}")?;
        }
        let started = i64::try_from(self.started_unix_ms).ok();
        if let Some(started) = started.and_then(|at| jiff::Timestamp::from_millisecond(at).ok()) {
            write!(f, ", sent at {started},")?;
        }
        f.write_str(" was in flight when the daemon was killed: it may have run")
    }
}

/// One slot as it is written.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    server: &'a str,
    tool: &'a str,
    principal: Option<&'a str>,
    started_unix_ms: u64,
}

impl CallsInFlight {
    /// Opens the journal, and returns the calls that the daemon before did not finish. They are removed from it.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Unfinished>)> {
        let mut file = open(path, OpenOptions::new().read(true).write(true).create(true))?;
        let unfinished = read(&mut file)?;
        file.set_len(0)?;
        let taken = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        let journal = Self {
            file,
            taken,
            last: AtomicUsize::new(0),
        };
        Ok((journal, unfinished))
    }

    /// Takes a free slot.
    fn take(&self) -> Option<usize> {
        let first = self.last.load(Ordering::Relaxed);
        for step in 0..self.taken.len() {
            let word = (first + step) % self.taken.len();
            let mut bits = self.taken[word].load(Ordering::Relaxed);
            while bits != u64::MAX {
                let free = bits.trailing_ones();
                let before = self.taken[word].fetch_or(1 << free, Ordering::Acquire);
                if before & (1 << free) == 0 {
                    self.last.store(word, Ordering::Relaxed);
                    return Some(word * 64 + free as usize);
                }
                bits = before;
            }
        }
        None
    }
}

impl CallJournal for CallsInFlight {
    fn begin(&self, call: &JournalEntry<'_>) -> u64 {
        let Some(slot) = self.take() else { return NOT_NOTED };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            id: cut(call.id),
            server: cut(call.server.as_str()),
            tool: cut(call.tool),
            principal: call.principal.map(|principal| cut(principal.as_str())),
            started_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        };
        let mut bytes = [b' '; SLOT];
        bytes[SLOT - 1] = b'\n';
        // What does not fit is cut off, and told as damaged.
        let _ = serde_json::to_writer(&mut bytes[..SLOT - 1], &line);
        let written = self.file.write_all_at(&bytes, (slot * SLOT) as u64);
        if let Err(error) = written {
            tracing::debug!(%error, "a call cannot be noted");
        }
        slot as u64
    }

    fn end(&self, ticket: u64) {
        let Some(slot) = usize::try_from(ticket).ok().filter(|slot| *slot < SLOTS) else {
            return;
        };
        if let Err(error) = self.file.write_all_at(&[0], (slot * SLOT) as u64) {
            tracing::debug!(%error, "the end of a call cannot be noted");
        }
        self.taken[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Release);
    }
}

/// The calls that a daemon did not finish, if none runs now: the next one would tell them too.
pub(crate) fn unfinished_without_daemon(global: &Global, settings: &Settings) -> Vec<Unfinished> {
    let read = || -> io::Result<Vec<Unfinished>> {
        let folder = folder::open(false).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        let identity = Identity::of_command(global, settings);
        let mut lock = open(&folder.join(format!("{identity}.lock")), OpenOptions::new().read(true))?;
        // A daemon that runs holds the lock. It is freed again when the file is closed.
        flock(&mut lock, FlockOperation::NonBlockingLockShared)?;
        read(&mut open(
            &journal_path(&folder, &identity),
            OpenOptions::new().read(true),
        )?)
    };
    read().unwrap_or_default()
}

/// Opens a file without following a link. Fails unless it is a regular file of the user that nobody else may write.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = options.mode(0o600).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    match found.is_file() && found.uid() == user() && found.mode() & 0o022 == 0 {
        true => Ok(file),
        false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
    }
}

fn read(file: &mut File) -> io::Result<Vec<Unfinished>> {
    let mut content = Vec::new();
    file.take((SLOT * SLOTS) as u64).read_to_end(&mut content)?;
    let slots = content
        .chunks(SLOT)
        .filter(|slot| slot.first().is_some_and(|first| *first != 0));
    let one = |slot: &[u8]| {
        serde_json::from_slice(slot).unwrap_or_else(|_| Unfinished {
            id: String::new(),
            server: String::new(),
            tool: String::new(),
            principal: None,
            started_unix_ms: 0,
        })
    };
    Ok(slots.take(MAX_TOLD).map(one).collect())
}

/// The start of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

#[cfg(test)]
mod tests {
    use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard, ServerName, ToolCall};
    use serde_json::json;

    use super::*;

    fn told(path: &Path) -> Vec<String> {
        let (_, unfinished) = CallsInFlight::open(path).unwrap();
        unfinished.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn only_calls_in_flight_are_in_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (journal, before) = CallsInFlight::open(&path).unwrap();
        assert_eq!(before, []);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let during = folder.path().join("during");
        let (from, to) = (path.clone(), during.clone());
        let write = NativeTool::new("write", "Writes.", json!({"type": "object"}), move |_| {
            std::fs::copy(&from, &to).unwrap();
            async { Ok(Answer::from_text("done")) }
        });
        let board = Pegboard::builder(Config::default())
            .in_process(ServerName::parse("fx").unwrap(), NativeTools::new([write]))
            .journal(journal)
            .open();
        let reply = board
            .toolset()
            .call(ToolCall::new("fx.write").arguments(json!({"a": "secret"})))
            .await;
        assert_eq!(reply.text(), "done");
        assert_eq!(told(&path), [""; 0]);
        let content = std::fs::read_to_string(&during).unwrap();
        assert!(!content.contains("secret"), "{content}");
        let told = told(&during);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("the call of fx.write, sent at 2"), "{told:?}");
        assert!(told[0].ends_with("it may have run"), "{told:?}");
    }

    #[test]
    fn a_broken_journal_is_told_as_damaged_and_never_stops_a_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        std::fs::write(&path, "{\"id\": \"half").unwrap();
        assert!(told(&path)[0].contains("its note is damaged"));
        assert_eq!(told(&path), [""; 0], "it is told once");
        std::fs::write(&path, vec![b'x'; 3 * SLOT * SLOTS]).unwrap();
        assert_eq!(told(&path).len(), MAX_TOLD);
    }

    #[test]
    fn slots_are_used_again_and_never_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = CallsInFlight::open(&folder.path().join("x.journal")).unwrap();
        let mut slots: Vec<usize> = std::iter::from_fn(|| journal.take()).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>());
        journal.end(NOT_NOTED);
        journal.end(77);
        assert_eq!(journal.take(), Some(77));
        assert_eq!(journal.take(), None);
    }
}
