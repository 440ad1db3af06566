//! Outputs that are too large for a model, put aside in files of which only one toolset knows.
//!
//! A handle is a number that nobody can guess, the folder belongs to one toolset and goes with it, and what is written there has been
//! masked before. Files are written as the output came; they are laid out for reading when they are read. When there are too many, the
//! file of the oldest output is written over for the newest: that costs half of removing one and making another.

mod folder;
mod jsonpath;
mod layout;
mod page;

pub(crate) use page::{Query, select};

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use folder::Folder;

/// The longest time that an output is kept. Folders that nobody has written to for longer are known to be of no use to anyone.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// How much one toolset may put aside, where, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillLimits {
    /// How long an output is kept; at most a day.
    pub ttl: Duration,
    /// The most bytes of all outputs together. The oldest make room for new ones.
    pub bytes: usize,
    /// The most outputs.
    pub files: usize,
    /// The folder in which the toolset makes its own; the system's folder for temporary files when not set.
    pub folder: Option<PathBuf>,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
            bytes: 64 << 20,
            files: 256,
            folder: None,
        }
    }
}

/// What an output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text as a tool wrote it.
    Text,
    /// The structured form of an answer, as JSON.
    Json,
    /// Bytes of some media type, in base64.
    Bytes { mime_type: String },
}

/// An output that was put aside, or is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) form: Form,
    pub(crate) text: Arc<String>,
}

/// The outputs of one toolset. Clones share them; they are removed with the last one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spill(Arc<Store>);

#[derive(Debug, Default)]
struct Store {
    limits: SpillLimits,
    state: Mutex<State>,
    /// Whether anything was ever put aside.
    used: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    folder: Option<Arc<Folder>>,
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// Of all entries, and of those that are being written.
    bytes: usize,
    writing: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    handle: String,
    form: Form,
    bytes: usize,
    born: Instant,
    folder: Arc<Folder>,
}

/// Room for an output.
struct Place {
    folder: Arc<Folder>,
    /// A file in the folder that nobody needs any more.
    old: Option<String>,
}

/// Why an output could not be put aside or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    #[error("it has {bytes} bytes, and {limit} are kept altogether")]
    TooLarge { bytes: usize, limit: usize },
    #[error("no more outputs are kept, because the toolset was closed")]
    Closed,
    #[error("there is no output `{0}`; it is kept for a while only, and only for the agent whose call it came from")]
    Unknown(String),
    #[error("{0}")]
    Query(String),
    #[error("outputs cannot be kept on disk: {0}")]
    Io(#[from] io::Error),
}

impl Spill {
    pub(crate) fn new(limits: SpillLimits) -> Self {
        Self(Arc::new(Store {
            limits: SpillLimits {
                ttl: limits.ttl.min(MAX_TTL),
                ..limits
            },
            ..Store::default()
        }))
    }

    /// Whether anything was ever put aside.
    pub(crate) fn is_used(&self) -> bool {
        self.0.used.load(Ordering::Acquire)
    }

    /// Puts an output aside and gives its handle.
    pub(crate) async fn keep(&self, output: Output) -> Result<String, SpillError> {
        let store = self.0.clone();
        blocking(move || store.keep(output)).await
    }

    /// An output as it was put aside.
    pub(crate) async fn fetch(&self, handle: &str) -> Result<Output, SpillError> {
        let (store, handle) = (self.0.clone(), handle.to_owned());
        blocking(move || store.read(&store.find(&handle)?)).await
    }

    /// A part of an output, laid out for reading, in at most `limit` bytes.
    pub(crate) async fn page(&self, handle: &str, query: Query, limit: usize) -> Result<String, SpillError> {
        let (store, handle) = (self.0.clone(), handle.to_owned());
        blocking(move || {
            let output = store.read(&store.find(&handle)?)?;
            page::page(&handle, &output, &query, limit).map_err(SpillError::Query)
        })
        .await
    }

    /// Removes everything and keeps nothing more.
    pub(crate) async fn close(&self) {
        let folder = {
            let mut state = self.0.state();
            state.closed = true;
            state.entries.clear();
            state.folder.take()
        };
        // What is still being written goes when its writer sees that the store is closed.
        let _ = blocking(move || {
            drop(folder);
            Ok(())
        })
        .await;
    }
}

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, handle: &str) -> Result<Entry, SpillError> {
        let mut state = self.state();
        state.expire(self.limits.ttl);
        let found = state.entries.iter().find(|entry| entry.handle == handle).cloned();
        found.ok_or_else(|| SpillError::Unknown(handle.chars().take(80).collect()))
    }

    fn keep(&self, output: Output) -> Result<String, SpillError> {
        let handle = new_handle()?;
        let Place { folder, old } = self.make_room(output.text.len())?;
        let entry = Entry {
            handle: handle.clone(),
            form: output.form,
            bytes: output.text.len(),
            born: Instant::now(),
            folder,
        };
        let content = output.text.as_bytes();
        let written = match old {
            Some(old) => entry.folder.write_over(&old, &handle, content),
            None => entry.folder.write(&handle, content),
        };
        let mut state = self.state();
        state.writing -= 1;
        if let Err(error) = written {
            state.bytes -= entry.bytes;
            // Somebody may have cleaned up the folder; the next output gets a new one.
            state.folder = None;
            return Err(error.into());
        }
        if state.closed {
            return Err(SpillError::Closed);
        }
        state.entries.push_back(entry);
        self.used.store(true, Ordering::Release);
        Ok(handle)
    }

    /// Reserves space for an output, at the cost of the oldest ones.
    fn make_room(&self, bytes: usize) -> Result<Place, SpillError> {
        let limits = &self.limits;
        if bytes > limits.bytes || limits.files == 0 {
            return Err(SpillError::TooLarge {
                bytes,
                limit: limits.bytes,
            });
        }
        let mut state = self.state();
        if state.closed {
            return Err(SpillError::Closed);
        }
        state.expire(limits.ttl);
        let folder = match &state.folder {
            Some(folder) => folder.clone(),
            None => {
                let folder = Arc::new(Folder::create(limits.folder.as_deref(), MAX_TTL)?);
                state.folder = Some(folder.clone());
                folder
            }
        };
        let mut old: Option<Entry> = None;
        while state.bytes + bytes > limits.bytes || state.entries.len() + state.writing >= limits.files {
            if let Some(older) = old.take() {
                older.remove();
            }
            old = state.take_oldest();
            if old.is_none() {
                // All the space is reserved by outputs that are being written at this moment.
                return Err(SpillError::TooLarge {
                    bytes,
                    limit: limits.bytes - state.bytes.min(limits.bytes),
                });
            }
        }
        let old = old.and_then(|old| {
            if Arc::ptr_eq(&old.folder, &folder) {
                return Some(old.handle);
            }
            old.remove();
            None
        });
        state.bytes += bytes;
        state.writing += 1;
        Ok(Place { folder, old })
    }

    fn read(&self, entry: &Entry) -> Result<Output, SpillError> {
        let read = entry.folder.read(&entry.handle, entry.bytes);
        // While it was read it may have made room for another one, and its file may have been written over.
        self.find(&entry.handle)?;
        match read {
            Ok(text) => Ok(Output {
                form: entry.form.clone(),
                text: Arc::new(text),
            }),
            // Somebody has cleaned up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpillError::Unknown(entry.handle.clone())),
            Err(error) => Err(error.into()),
        }
    }
}

impl State {
    fn expire(&mut self, ttl: Duration) {
        while self.entries.front().is_some_and(|oldest| oldest.born.elapsed() > ttl)
            && let Some(oldest) = self.take_oldest()
        {
            oldest.remove();
        }
    }

    /// The oldest output, of which nobody knows any more. Its file is left.
    fn take_oldest(&mut self) -> Option<Entry> {
        let oldest = self.entries.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

impl Entry {
    fn remove(&self) {
        self.folder.remove(&self.handle);
    }
}

/// `out_` and 128 bits that nobody can guess.
fn new_handle() -> Result<String, SpillError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("out_{:032x}", u128::from_le_bytes(bytes)))
}

/// Does work that touches the disk where it holds up nobody. It is finished also when nobody waits for it any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpillError> + Send + 'static,
) -> Result<T, SpillError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(SpillError::Io(io::Error::other(error))),
    }
}

#[cfg(test)]
mod tests;
