//! Stores outputs that are too large for a model in temporary files of one toolset, or of those of a principal.
//!
//! A handle is a random number that cannot be guessed. The folder is removed with the last toolset, or with the memory of the principal. Outputs are masked before
//! they are stored. Files hold the output unchanged; it is pretty-printed when it is read. When a limit is reached, the oldest output is
//! evicted and its file is overwritten with the newest, which costs half as much as removing one file and creating another.

mod folder;
mod jsonpath;
mod output;
mod page;
mod pretty_print;

pub(crate) use output::{Output, OutputFormat};
pub(crate) use page::{Query, select};

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use folder::Folder;

/// The longest time that an output is kept. A folder that was not modified for longer is stale.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// Limits on the outputs that one toolset stores in files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SpillLimits {
    /// How long an output is kept; at most a day.
    pub ttl: Duration,
    /// The most bytes of all outputs together. The oldest outputs are evicted for new ones.
    pub bytes: usize,
    /// The most outputs.
    pub files: usize,
    /// The folder in which the toolset creates its own; by default the system's folder for temporary files.
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

/// The stored outputs of one toolset. Clones share them; they are removed with the last clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spill(Arc<Store>);

#[derive(Debug, Default)]
struct Store {
    limits: SpillLimits,
    state: Mutex<SpillState>,
    /// Whether anything was ever stored.
    used: AtomicBool,
}

#[derive(Debug, Default)]
struct SpillState {
    closed: bool,
    folder: Option<Arc<Folder>>,
    /// Ordered by age, the oldest first.
    entries: VecDeque<StoredOutput>,
    /// The bytes of all entries, and of outputs that are being written.
    bytes: usize,
    /// How many outputs are being written.
    writing: usize,
}

/// A stored output.
#[derive(Debug, Clone)]
struct StoredOutput {
    handle: String,
    form: OutputFormat,
    bytes: usize,
    created: Instant,
    folder: Arc<Folder>,
}

/// Reserved space for an output.
struct Reservation {
    folder: Arc<Folder>,
    /// The file of an evicted output, to be overwritten.
    evicted: Option<String>,
}

/// Why an output could not be stored or read.
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

    /// Whether anything was ever stored.
    pub(crate) fn is_used(&self) -> bool {
        self.0.used.load(Ordering::Acquire)
    }

    /// Stores an output and returns its handle.
    pub(crate) async fn keep(&self, output: Output) -> Result<String, SpillError> {
        let store = self.0.clone();
        run_blocking(move || store.keep(output)).await
    }

    /// Reads a whole output, unchanged.
    pub(crate) async fn fetch(&self, handle: &str) -> Result<Output, SpillError> {
        let (store, handle) = (self.0.clone(), handle.to_owned());
        run_blocking(move || store.read(&store.find(&handle)?)).await
    }

    /// Reads a part of an output, pretty-printed, in at most `limit` bytes.
    pub(crate) async fn page(&self, handle: &str, query: Query, limit: usize) -> Result<String, SpillError> {
        let (store, handle) = (self.0.clone(), handle.to_owned());
        run_blocking(move || {
            let output = store.read(&store.find(&handle)?)?;
            page::page(&handle, &output, &query, limit).map_err(SpillError::Query)
        })
        .await
    }

    /// Removes all outputs and refuses new ones.
    pub(crate) async fn close(&self) {
        let folder = {
            let mut state = self.0.state.lock();
            state.closed = true;
            state.entries.clear();
            state.folder.take()
        };
        // Outputs that are still being written are dropped when their writer sees that the store is closed.
        let _ = run_blocking(move || {
            drop(folder);
            Ok(())
        })
        .await;
    }
}

impl Store {
    fn find(&self, handle: &str) -> Result<StoredOutput, SpillError> {
        let mut state = self.state.lock();
        state.expire(self.limits.ttl);
        let found = state.entries.iter().find(|entry| entry.handle == handle).cloned();
        found.ok_or_else(|| SpillError::Unknown(handle.chars().take(80).collect()))
    }

    fn keep(&self, output: Output) -> Result<String, SpillError> {
        let handle = new_handle()?;
        let Reservation { folder, evicted } = self.reserve(output.text.len())?;
        let entry = StoredOutput {
            handle: handle.clone(),
            form: output.format,
            bytes: output.text.len(),
            created: Instant::now(),
            folder,
        };
        let content = output.text.as_bytes();
        let written = match evicted {
            Some(evicted) => entry.folder.overwrite(&evicted, &handle, content),
            None => entry.folder.write(&handle, content),
        };
        let mut state = self.state.lock();
        state.writing -= 1;
        if let Err(error) = written {
            state.bytes -= entry.bytes;
            // A cleanup job may have removed the folder; the next output creates a new one.
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

    /// Reserves space for an output. Evicts the oldest outputs if necessary.
    fn reserve(&self, bytes: usize) -> Result<Reservation, SpillError> {
        let limits = &self.limits;
        if bytes > limits.bytes || limits.files == 0 {
            return Err(SpillError::TooLarge {
                bytes,
                limit: limits.bytes,
            });
        }
        let mut state = self.state.lock();
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
        let mut evicted: Option<StoredOutput> = None;
        while state.bytes + bytes > limits.bytes || state.entries.len() + state.writing >= limits.files {
            if let Some(evicted) = evicted.take() {
                evicted.remove();
            }
            evicted = state.take_oldest();
            if evicted.is_none() {
                // Outputs that are being written right now have reserved all the space.
                return Err(SpillError::TooLarge {
                    bytes,
                    limit: limits.bytes - state.bytes.min(limits.bytes),
                });
            }
        }
        let evicted = evicted.and_then(|evicted| {
            if Arc::ptr_eq(&evicted.folder, &folder) {
                return Some(evicted.handle);
            }
            evicted.remove();
            None
        });
        state.bytes += bytes;
        state.writing += 1;
        Ok(Reservation { folder, evicted })
    }

    fn read(&self, entry: &StoredOutput) -> Result<Output, SpillError> {
        let read = entry.folder.read(&entry.handle, entry.bytes);
        // It may have been evicted, and its file overwritten, while it was read.
        self.find(&entry.handle)?;
        match read {
            Ok(text) => Ok(Output {
                format: entry.form.clone(),
                text: Arc::new(text),
            }),
            // A cleanup job has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SpillError::Unknown(entry.handle.clone())),
            Err(error) => Err(error.into()),
        }
    }
}

impl SpillState {
    fn expire(&mut self, ttl: Duration) {
        while self
            .entries
            .front()
            .is_some_and(|oldest| oldest.created.elapsed() > ttl)
            && let Some(oldest) = self.take_oldest()
        {
            oldest.remove();
        }
    }

    /// Removes the oldest entry, but not its file.
    fn take_oldest(&mut self) -> Option<StoredOutput> {
        let oldest = self.entries.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

impl StoredOutput {
    fn remove(&self) {
        self.folder.remove(&self.handle);
    }
}

/// `out_` and 128 random bits.
fn new_handle() -> Result<String, SpillError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("out_{:032x}", u128::from_le_bytes(bytes)))
}

/// Runs file system work on a blocking thread. It runs to completion even if the future is dropped.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpillError> + Send + 'static,
) -> Result<T, SpillError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(SpillError::Io(io::Error::other(error))),
    }
}

#[cfg(test)]
mod tests;
