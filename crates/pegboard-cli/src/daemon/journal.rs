//! The journal of a daemon: a file that lists the calls which its servers have now. A daemon that is killed leaves it behind, so that the
//! next one and `pegboard status` can tell which calls may have run.
//!
//! The calls that a killed daemon left behind keep their slots until a command has shown them, whatever becomes of the daemons in between.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use super::{
    call_slots::{CallsInFlight, SLOT, SLOTS, Slots, free},
    folder::{self, user},
    identity::Identity,
};
use crate::{cli::Global, settings::Settings};

/// The calls that earlier daemons did not finish and no command has shown.
#[derive(Debug)]
pub(crate) struct Untold {
    file: File,
    /// Those of the calls, in order.
    slots: Vec<usize>,
    /// The slots of this daemon's journal, which is the same file.
    of_daemon: Arc<Slots>,
    calls: Vec<Unfinished>,
    was_shown: AtomicBool,
}

impl Untold {
    pub(crate) fn calls(&self) -> &[Unfinished] {
        &self.calls
    }

    /// Notes that a command shows them: the next daemon has nothing to tell.
    pub(crate) fn mark_shown(&self) {
        if self.was_shown.swap(true, Ordering::Relaxed) {
            return;
        }
        for slot in &self.slots {
            free(&self.file, *slot);
            self.of_daemon.release(*slot);
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
        if let Some(started) = started.and_then(pegboard::Timestamp::from_millisecond) {
            write!(f, ", sent at {started},")?;
        }
        f.write_str(" was in flight when the daemon was killed: it may have run")
    }
}

/// Opens the journal, and returns the calls that earlier daemons did not finish.
pub(super) fn open_journal(path: &Path) -> io::Result<(CallsInFlight, Untold)> {
    let mut options = OpenOptions::new();
    let file = open(path, options.read(true).write(true).create(true).truncate(false))?;
    if file.metadata()?.len() > (SLOT * SLOTS) as u64 {
        file.set_len((SLOT * SLOTS) as u64)?;
    }
    let (slots, calls): (Vec<usize>, Vec<Unfinished>) = read(&file)?.into_iter().unzip();
    free_others(&file, &slots)?;
    let journal = CallsInFlight::new(file.try_clone()?, &slots);
    let untold = Untold {
        file,
        slots,
        of_daemon: journal.slots().clone(),
        calls,
        was_shown: AtomicBool::new(false),
    };
    Ok((journal, untold))
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
    let identity = Identity::for_command(global, settings);
    let mut lock = open(&folder.join(format!("{identity}.lock")), OpenOptions::new().read(true))?;
    // A daemon that runs holds the lock. It is freed again when the file is closed.
    flock(&mut lock, FlockOperation::NonBlockingLockShared)?;
    work(&journal_path(&folder, &identity))
}

/// Opens a file without following a link. Fails unless it is a regular file of the user that no other user may write.
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
    Ok(slots.map(one).collect())
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

/// Frees all slots but these, which are in order.
fn free_others(file: &File, kept: &[usize]) -> io::Result<()> {
    let content = content(file)?;
    let slots = content.chunks(SLOT).enumerate();
    for (index, _) in slots.filter(|(index, slot)| is_taken(slot) && kept.binary_search(index).is_err()) {
        free(file, index);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pegboard::{
        Answer, Config, NativeTool, NativeTools, Pegboard, ServerName, ToolCall, journal::CallJournal as _,
    };
    use serde_json::json;

    use super::{
        super::call_slots::{NOT_NOTED, SlotLine, now},
        *,
    };

    fn told(path: &Path) -> Vec<String> {
        let (_, untold) = open_journal(path).unwrap();
        untold.calls().iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn only_calls_in_flight_are_in_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (journal, before) = open_journal(&path).unwrap();
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
        open_journal(&path).unwrap().1.mark_shown();
        assert_eq!(told(&path), [""; 0], "it is told once");
        fs::write(&path, vec![b'x'; 3 * SLOT * SLOTS]).unwrap();
        assert_eq!(told(&path).len(), SLOTS);
    }

    #[test]
    fn calls_are_told_by_every_daemon_until_a_command_has_shown_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let call = |tool| SlotLine {
            id: "call-1",
            server: "fx",
            tool,
            principal: None,
            started_unix_ms: now(),
        };
        let (killed, _) = open_journal(&path).unwrap();
        killed.note(&call("first"));
        let (also_killed, untold) = open_journal(&path).unwrap();
        assert_eq!(untold.calls().len(), 1);
        also_killed.note(&call("second"));
        let (stopped, untold) = open_journal(&path).unwrap();
        stopped.note(&call("cancelled, and its caller was told"));
        assert!(untold.must_stay());
        let told = told(&path);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("fx.first") && told[1].contains("fx.second"),
            "{told:?}"
        );
        let (_, untold) = open_journal(&path).unwrap();
        untold.mark_shown();
        assert!(!untold.must_stay());
        assert_eq!(open_journal(&path).unwrap().1.calls(), []);
    }

    #[test]
    fn slots_are_used_again_and_never_twice() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("x.journal")).unwrap();
        let journal = CallsInFlight::new(file, &[]);
        let mut slots: Vec<usize> = std::iter::from_fn(|| journal.slots().take()).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>());
        journal.end(NOT_NOTED);
        journal.end(77);
        assert_eq!(journal.slots().take(), Some(77));
        assert_eq!(journal.slots().take(), None);
    }

    fn line(id: &str) -> SlotLine<'_> {
        SlotLine {
            id,
            server: "fx",
            tool: "write",
            principal: None,
            started_unix_ms: now(),
        }
    }

    #[test]
    fn every_call_that_was_in_flight_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (killed, _) = open_journal(&path).unwrap();
        for call in 0..SLOTS {
            killed.note(&line(&format!("call-{call}")));
        }
        assert_eq!(killed.problem(), None);
        drop(killed);
        // The next daemon is killed before anyone has looked.
        for _ in 0..2 {
            let (_, untold) = open_journal(&path).unwrap();
            let ids: BTreeSet<&str> = untold.calls().iter().map(|call| call.id.as_str()).collect();
            assert_eq!(ids.len(), SLOTS);
        }
    }

    #[test]
    fn a_journal_without_room_says_so_until_a_call_is_noted_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let (killed, _) = open_journal(&path).unwrap();
        for _ in 0..SLOTS {
            killed.note(&line("call"));
        }
        let (journal, untold) = open_journal(&path).unwrap();
        assert_eq!(journal.note(&line("more")), NOT_NOTED);
        let problem = journal.problem().unwrap();
        assert!(problem.message.contains("4096 slots are taken"), "{problem:?}");
        untold.mark_shown();
        assert_ne!(
            journal.note(&line("more")),
            NOT_NOTED,
            "what was shown has freed its slots"
        );
        assert_eq!(journal.problem(), None);
        assert_eq!(told(&path).len(), 1);
    }

    /// Every write to this device fails as on a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_journal_on_a_full_disk_says_so() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let journal = CallsInFlight::new(full, &[]);
        assert_eq!(journal.problem(), None);
        journal.note(&line("call"));
        let problem = journal.problem().unwrap();
        assert!(problem.message.contains("cannot be written"), "{problem:?}");
    }
}
