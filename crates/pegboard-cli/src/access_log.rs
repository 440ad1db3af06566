//! [`AccessLogWriter`]: writes a line for each request of HTTP, on a thread of its own. A request never waits for it.

mod line;

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use pegboard::config::AccessLogTarget;
use pegboard_base::{log_event, private_file};
use pegboard_gateway::{AccessLog, AccessRecord};
use tokio::time::Instant;

use crate::{logging::LogLines, output::Output, signals::Hangups};

/// The most lines that wait for the disk. Further ones are lost, and counted.
const QUEUE: usize = 4096;
/// The most lines that are written at once.
const BATCH: usize = 256;
/// How soon after SIGHUP the file is opened again, if there is no line.
const LOOK: Duration = Duration::from_secs(1);
/// How often a lasting failure is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How long the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The access log of a gateway. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct AccessLogWriter {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    lost: AtomicU64,
    /// Whether the file is to be opened again.
    reopen: AtomicBool,
}

#[derive(Debug)]
enum Message {
    Record(Box<AccessRecord>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl AccessLogWriter {
    /// Starts to write. `None` if there is no access log. Fails if the file cannot be opened.
    pub(crate) fn start(target: &AccessLogTarget, output: &Output) -> io::Result<Option<Self>> {
        let place = match target {
            AccessLogTarget::Off => return Ok(None),
            AccessLogTarget::Stderr => Place::Stderr(output.clone()),
            AccessLogTarget::File(path) => Place::File {
                file: Some(private_file::append(path)?),
                path: path.clone(),
            },
        };
        let form = match (&place, output.log_lines()) {
            // Nothing else adds the time to a file.
            (Place::File { .. }, LogLines::Sentences) => LogLines::Dated,
            (_, form) => form,
        };
        let (queue, records) = sync_channel(QUEUE);
        let shared = Arc::<Shared>::default();
        let writer = Writer {
            place,
            form,
            records,
            shared: shared.clone(),
            failing: None,
        };
        thread::Builder::new()
            .name("pegboard-access".to_owned())
            .spawn(move || writer.run())?;
        Ok(Some(Self { queue, shared }))
    }

    /// Opens the file again whenever SIGHUP comes, because it was renamed. Never completes.
    pub(crate) async fn follow(&self, mut hangups: Hangups) {
        loop {
            hangups.heard().await;
            self.shared.reopen.store(true, Ordering::Release);
        }
    }

    /// Waits until everything is written, for a few seconds at most.
    pub(crate) async fn flush(&self) {
        let queue = self.queue.clone();
        let flushing = tokio::task::spawn_blocking(move || {
            let (flushed, is_flushed) = sync_channel(1);
            if queue.try_send(Message::Flush(flushed)).is_ok() {
                let _ = is_flushed.recv_timeout(LAST_LINES);
            }
        });
        let _ = flushing.await;
    }
}

impl AccessLog for AccessLogWriter {
    fn record(&self, record: AccessRecord) {
        if self.queue.try_send(Message::Record(Box::new(record))).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

/// Where the lines go.
enum Place {
    Stderr(Output),
    File {
        path: PathBuf,
        /// `None` after it could not be opened.
        file: Option<File>,
    },
}

/// The state of the thread.
struct Writer {
    place: Place,
    form: LogLines,
    records: Receiver<Message>,
    shared: Arc<Shared>,
    failing: Option<Failing>,
}

/// A failure that goes on.
struct Failing {
    reported: Instant,
    lost: u64,
}

impl Writer {
    fn run(mut self) {
        loop {
            let first = match self.records.recv_timeout(LOOK) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if self.shared.reopen.swap(false, Ordering::AcqRel) {
                self.reopen();
            }
            let Some(first) = first else { continue };
            let (mut text, mut count, mut flushed) = (String::new(), 0, Vec::new());
            let rest = std::iter::from_fn(|| self.records.try_recv().ok());
            for message in std::iter::once(first).chain(rest).take(BATCH) {
                match message {
                    Message::Record(record) => {
                        line::write(&mut text, &record, self.form);
                        count += 1;
                    }
                    Message::Flush(done) => flushed.push(done),
                }
            }
            self.write(&text, count);
            for done in flushed {
                // It may have given up.
                let _ = done.try_send(());
            }
        }
    }

    fn write(&mut self, text: &str, lines: u64) {
        if lines == 0 {
            return;
        }
        let written = match &mut self.place {
            Place::Stderr(output) => {
                output.write_log(text);
                Ok(())
            }
            Place::File { path, file } => append(path, file, text),
        };
        match written {
            Ok(()) => self.recover(),
            Err(error) => self.fail(&error, lines),
        }
    }

    /// Opens the file by its name again.
    fn reopen(&mut self) {
        if let Place::File { file, .. } = &mut self.place {
            *file = None;
        }
        let opened = match &mut self.place {
            Place::Stderr(_) => return,
            Place::File { path, file } => append(path, file, ""),
        };
        if let Err(error) = opened {
            self.fail(&error, 0);
        }
    }

    fn fail(&mut self, error: &io::Error, lines: u64) {
        self.shared.lost.fetch_add(lines, Ordering::Relaxed);
        let is_due = |failing: &Failing| failing.reported.elapsed() >= REPORT_EVERY;
        let is_told = self.failing.as_ref().is_some_and(|failing| !is_due(failing));
        let failing = self.failing.get_or_insert_with(|| Failing {
            reported: Instant::now(),
            lost: 0,
        });
        failing.lost += lines;
        if is_told {
            return;
        }
        failing.reported = Instant::now();
        if let Place::File { path, .. } = &self.place {
            tracing::warn!(name: log_event::ACCESS_LOG_FAILED, file = %path.display(), %error, "the access log cannot be written");
        }
    }

    fn recover(&mut self) {
        if let (Some(failing), Place::File { path, .. }) = (self.failing.take(), &self.place) {
            tracing::info!(name: log_event::ACCESS_LOG_RECOVERED, file = %path.display(), lost = failing.lost, "the access log is written again");
        }
    }
}

/// Appends a text to a file, which is opened if it is not.
fn append(path: &Path, open: &mut Option<File>, text: &str) -> io::Result<()> {
    let file = match open {
        Some(file) => file,
        None => open.insert(private_file::append(path)?),
    };
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        // It may work by its name.
        *open = None;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_never_waits_for_the_disk_and_is_counted_if_it_is_lost() {
        // Nothing takes what waits.
        let (queue, _stuck) = sync_channel(2);
        let log = AccessLogWriter {
            queue,
            shared: Arc::default(),
        };
        for _ in 0..5 {
            log.record(AccessRecord::default());
        }
        assert_eq!(log.lost(), 3);
    }
}
