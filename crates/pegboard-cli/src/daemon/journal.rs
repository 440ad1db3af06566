//! [`CallsInFlight`]: a file that lists the calls which the servers of a daemon have now. A daemon that is killed leaves it behind, so that the
//! next one and `pegboard status` can tell which calls may have run.
//!
//! The file has a slot for each call: one line of JSON, padded with spaces, or a zero byte at its start if the slot is free. A call costs one
//! write when it begins and one when it ends. It has no arguments and no results. The calls that a killed daemon left behind keep their slots
//! until a command has shown them, whatever becomes of the daemons in between.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use pegboard::journal::{CallJournal, JournalEntry};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::{
    folder::{self, user},
    identity::Identity,
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

/// The calls that earlier daemons did not finish and no command has shown.
#[derive(Debug)]
pub(crate) struct Untold {
    file: File,
    slots: Vec<usize>,
    calls: Vec<Unfinished>,
    was_shown: AtomicBool,
}

impl Untold {
    pub(crate) fn calls(&self) -> &[Unfinished] {
        &self.calls
    }

    /// Notes that a command shows them: the next daemon has nothing to tell.
    pub(crate) fn shown(&self) {
        if self.was_shown.swap(true, Ordering::Relaxed) {
            return;
        }
        for slot in &self.slots {
            free(&self.file, *slot);
        }
    }

    /// Prepares the journal for the end of this daemon, whose own callers were told everything. Returns whether it must be kept.
    pub(super) fn must_stay(&self) -> bool {
        let must_stay = !self.slots.is_empty() && !self.was_shown.load(Ordering::Relaxed);
        if must_stay && let Err(error) = free_others(&self.file, &self.slots) {
            tracing::debug!(%error, "the journal cannot be read");
        }
        must_stay
    }
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
    /// Opens the journal, and returns the calls that earlier daemons did not finish.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Untold)> {
        let mut options = OpenOptions::new();
        let file = open(path, options.read(true).write(true).create(true).truncate(false))?;
        if file.metadata()?.len() > (SLOT * SLOTS) as u64 {
            file.set_len((SLOT * SLOTS) as u64)?;
        }
        let (slots, calls): (Vec<usize>, Vec<Unfinished>) = read(&file)?.into_iter().unzip();
        free_others(&file, &slots)?;
        let taken: Vec<AtomicU64> = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        for slot in &slots {
            taken[slot / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
        }
        let untold = Untold {
            file: file.try_clone()?,
            slots,
            calls,
            was_shown: AtomicBool::new(false),
        };
        let journal = Self {
            file,
            taken,
            last: AtomicUsize::new(0),
        };
        Ok((journal, untold))
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

    /// Writes a call into a slot.
    fn note(&self, line: &Line<'_>) -> u64 {
        let Some(slot) = self.take() else { return NOT_NOTED };
        let mut bytes = [b' '; SLOT];
        bytes[SLOT - 1] = b'\n';
        // What does not fit is cut off, and told as damaged.
        let _ = serde_json::to_writer(&mut bytes[..SLOT - 1], line);
        let written = self.file.write_all_at(&bytes, (slot * SLOT) as u64);
        if let Err(error) = written {
            tracing::debug!(%error, "a call cannot be noted");
        }
        slot as u64
    }
}

impl CallJournal for CallsInFlight {
    fn begin(&self, call: &JournalEntry<'_>) -> u64 {
        self.note(&Line {
            id: cut(call.id),
            server: cut(call.server.as_str()),
            tool: cut(call.tool),
            principal: call.principal.map(|principal| cut(principal.as_str())),
            started_unix_ms: now(),
        })
    }

    fn end(&self, ticket: u64) {
        let Some(slot) = usize::try_from(ticket).ok().filter(|slot| *slot < SLOTS) else {
            return;
        };
        free(&self.file, slot);
        self.taken[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Release);
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The path of the journal of a daemon.
pub(super) fn journal_path(folder: &Path, identity: &Identity) -> PathBuf {
    folder.join(format!("{identity}.journal"))
}

/// The calls that a daemon did not finish, if none runs now: one that runs tells them itself.
pub(crate) fn unfinished_without_daemon(global: &Global, settings: &Settings) -> Vec<Unfinished> {
    without_daemon(global, settings, |path| {
        let calls = read(&open(path, OpenOptions::new().read(true))?)?;
        Ok(calls.into_iter().map(|(_, call)| call).collect())
    })
    .unwrap_or_default()
}

/// Removes the calls that a command has shown, unless a daemon has been there meanwhile.
pub(crate) fn forget_without_daemon(global: &Global, settings: &Settings, shown: &[Unfinished]) {
    if shown.is_empty() {
        return;
    }
    let forgotten = without_daemon(global, settings, |path| {
        let calls = read(&open(path, OpenOptions::new().read(true))?)?;
        match calls.iter().map(|(_, call)| call).eq(shown) {
            true => fs::remove_file(path),
            false => Ok(()),
        }
    });
    if let Err(error) = forgotten {
        tracing::debug!(%error, "the calls of an earlier daemon will be shown again");
    }
}

/// Works with the journal of a command's daemon while none runs.
fn without_daemon<T>(global: &Global, settings: &Settings, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = folder::open(false).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let identity = Identity::of_command(global, settings);
    let mut lock = open(&folder.join(format!("{identity}.lock")), OpenOptions::new().read(true))?;
    // A daemon that runs holds the lock. It is freed again when the file is closed.
    flock(&mut lock, FlockOperation::NonBlockingLockShared)?;
    work(&journal_path(&folder, &identity))
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

/// The calls in a journal, with their slots.
fn read(file: &File) -> io::Result<Vec<(usize, Unfinished)>> {
    let content = content(file)?;
    let slots = content.chunks(SLOT).enumerate().filter(|(_, slot)| is_taken(slot));
    let one = |(index, slot): (usize, &[u8])| {
        let call = serde_json::from_slice(slot).unwrap_or_else(|_| Unfinished {
            id: String::new(),
            server: String::new(),
            tool: String::new(),
            principal: None,
            started_unix_ms: 0,
        });
        (index, call)
    };
    Ok(slots.take(MAX_TOLD).map(one).collect())
}

fn content(mut file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.take((SLOT * SLOTS) as u64).read_to_end(&mut content)?;
    Ok(content)
}

fn is_taken(slot: &[u8]) -> bool {
    slot.first().is_some_and(|first| *first != 0)
}

/// Frees all slots but these.
fn free_others(file: &File, kept: &[usize]) -> io::Result<()> {
    let content = content(file)?;
    let slots = content.chunks(SLOT).enumerate();
    for (index, _) in slots.filter(|(index, slot)| is_taken(slot) && !kept.contains(index)) {
        free(file, index);
    }
    Ok(())
}

fn free(file: &File, slot: usize) {
    if let Err(error) = file.write_all_at(&[0], (slot * SLOT) as u64) {
        tracing::debug!(%error, "the end of a call cannot be noted");
    }
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
        let (_, untold) = CallsInFlight::open(path).unwrap();
        untold.calls().iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn only_calls_in_flight_are_in_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (journal, before) = CallsInFlight::open(&path).unwrap();
        assert_eq!(before.calls(), []);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let during = folder.path().join("during");
        let (from, to) = (path.clone(), during.clone());
        let write = NativeTool::new("write", "Writes.", json!({"type": "object"}), move |_| {
            fs::copy(&from, &to).unwrap();
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
        let content = fs::read_to_string(&during).unwrap();
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
        fs::write(&path, "{\"id\": \"half").unwrap();
        assert!(told(&path)[0].contains("its note is damaged"));
        CallsInFlight::open(&path).unwrap().1.shown();
        assert_eq!(told(&path), [""; 0], "it is told once");
        fs::write(&path, vec![b'x'; 3 * SLOT * SLOTS]).unwrap();
        assert_eq!(told(&path).len(), MAX_TOLD);
    }

    #[test]
    fn calls_are_told_by_every_daemon_until_a_command_has_shown_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let call = |tool| Line {
            id: "call-1",
            server: "fx",
            tool,
            principal: None,
            started_unix_ms: now(),
        };
        let (killed, _) = CallsInFlight::open(&path).unwrap();
        killed.note(&call("first"));
        let (also_killed, untold) = CallsInFlight::open(&path).unwrap();
        assert_eq!(untold.calls().len(), 1);
        also_killed.note(&call("second"));
        let (stopped, untold) = CallsInFlight::open(&path).unwrap();
        stopped.note(&call("cancelled, and its caller was told"));
        assert!(untold.must_stay());
        let told = told(&path);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("fx.first") && told[1].contains("fx.second"),
            "{told:?}"
        );
        let (_, untold) = CallsInFlight::open(&path).unwrap();
        untold.shown();
        assert!(!untold.must_stay());
        assert_eq!(CallsInFlight::open(&path).unwrap().1.calls(), []);
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
