//! The thread that writes the audit log, and the handle by which calls pass records to it.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use pegboard_base::{log_event, timestamp::Timestamp};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{entry::AuditEntry, log_file::NotALog, sink::Sink};
use crate::event::{Event, EventSender};
use crate::metrics::AuditMetrics;
use pegboard_base::deadline::Deadline;
use pegboard_base::sync::Mutex;
use pegboard_config::AuditConfig;
use pegboard_tools::outcome::{Advice, Failure, Kind};

/// The most records that wait for the writer. Further ones are lost, unless the log is required.
const QUEUE: usize = 4096;
/// The most records that are written at once.
const BATCH: usize = 256;
/// How often a lasting failure is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How long [`AuditLog::flush`] waits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The audit log of a board. The thread ends with the last clone, after it has written what is queued.
#[derive(Debug, Clone)]
pub(crate) struct AuditLog {
    records: mpsc::Sender<Message>,
    is_required: bool,
    /// How many records were lost since the log said so.
    lost: Arc<AtomicU64>,
    totals: Arc<Totals>,
    failure: Arc<CurrentFailure>,
}

/// How many records there were since the board was opened.
#[derive(Debug, Default)]
struct Totals {
    written: AtomicU64,
    lost: AtomicU64,
}

/// Why the newest records could not be written; `None` once one was.
type CurrentFailure = Mutex<Option<AuditFailure>>;

/// Why the audit log cannot be written.
#[derive(Debug, Clone)]
pub(crate) struct AuditFailure {
    /// The file, and what is wrong with it.
    pub(crate) reason: String,
    /// What an operator can do about it.
    pub(crate) hint: &'static str,
    /// Whether calls are refused meanwhile.
    pub(crate) is_required: bool,
    pub(crate) since: Timestamp,
}

#[derive(Debug)]
enum Message {
    Record(Box<AuditEntry>),
    /// Written before the call is made.
    Awaited(Box<AuditEntry>, oneshot::Sender<Result<(), Unwritten>>),
    Flush(oneshot::Sender<()>),
    /// Finds out whether the log can be written again.
    Retry,
}

impl AuditLog {
    /// Starts the writer. `has_stdout` says whether the program leaves its stdout to the log. A log that cannot be written is reported with the first record.
    pub(crate) fn open(config: AuditConfig, events: EventSender, has_stdout: bool) -> Self {
        let (records, queue) = mpsc::channel(QUEUE);
        let lost = Arc::default();
        let failure = Arc::default();
        let totals: Arc<Totals> = Arc::default();
        let log = Self {
            records,
            is_required: config.required,
            lost: Arc::clone(&lost),
            totals: totals.clone(),
            failure: Arc::clone(&failure),
        };
        let writer = Writer {
            sink: Sink::new(&config, has_stdout),
            config,
            events,
            lost,
            totals,
            failure,
            queue,
            reported: None,
            refused: 0,
        };
        let started = thread::Builder::new()
            .name("pegboard-audit".to_owned())
            .spawn(move || writer.run());
        if let Err(error) = started {
            // Without its receiver the channel is closed, and a required log refuses all calls.
            tracing::error!(%error, "the thread of the audit log cannot be started");
            note_failure(&log.failure, log.is_required, &Unwritten::new(ENDED), error.to_string());
        }
        log
    }

    /// Why the log cannot be written. Lets the writer try again if so, because there may be no call that would: a failure that is over is
    /// returned once more at most.
    pub(crate) fn failure(&self) -> Option<AuditFailure> {
        let failure = self.failure.lock().clone();
        if failure.is_some() {
            // A full queue has records to write.
            let _ = self.records.try_send(Message::Retry);
        }
        failure
    }

    /// How many records there were.
    pub(crate) fn counts(&self) -> AuditMetrics {
        AuditMetrics {
            written: self.totals.written.load(Ordering::Relaxed),
            lost: self.totals.lost.load(Ordering::Relaxed),
            is_required: self.is_required,
        }
    }

    /// Passes a record to the writer. If too many wait, the record is lost, and the log will say so.
    pub(crate) fn record(&self, entry: AuditEntry) {
        if self.records.try_send(Message::Record(Box::new(entry))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            self.totals.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a decision. If the log is required, waits until it is written, and fails if it cannot be.
    pub(crate) async fn decide(&self, entry: AuditEntry, deadline: Deadline) -> Result<(), Failure> {
        if !self.is_required {
            self.record(entry);
            return Ok(());
        }
        // Boxed, because it is rare and every call would pay for the space.
        Box::pin(self.write_and_wait(entry, deadline)).await.map_err(|why| {
            let message = format!("the call was not made, because the audit log cannot be written: {why}");
            Failure::new(Kind::NotPermitted, message)
                .advice(Advice::LeaveTools)
                .hint(why.hint())
        })
    }

    /// Records that a change begins, if the log is required, and fails if it cannot be written.
    pub(crate) async fn begin(&self, entry: impl FnOnce() -> AuditEntry) -> Result<(), Failure> {
        if !self.is_required {
            return Ok(());
        }
        let written = self.write_and_wait(entry(), Deadline::within(FLUSH_TIMEOUT)).await;
        written.map_err(|why| {
            let message = format!("nothing was changed, because the audit log cannot be written: {why}");
            Failure::new(Kind::NotPermitted, message).hint(why.hint())
        })
    }

    /// Waits until a record is written, or fails with the reason.
    async fn write_and_wait(&self, entry: AuditEntry, deadline: Deadline) -> Result<(), Unwritten> {
        let (written, is_written) = oneshot::channel();
        let writing = async {
            let message = Message::Awaited(Box::new(entry), written);
            self.records.send(message).await.map_err(|_| Unwritten::new(ENDED))?;
            is_written.await.unwrap_or_else(|_| Err(Unwritten::new(ENDED)))
        };
        let result = tokio::time::timeout(deadline.remaining(), writing).await;
        result.unwrap_or_else(|_| Err(Unwritten::new("its writer did not answer in time")))
    }

    /// Waits until everything recorded so far is written.
    pub(crate) async fn flush(&self) {
        let flushing = async {
            let (flushed, is_flushed) = oneshot::channel();
            if self.records.send(Message::Flush(flushed)).await.is_ok() {
                let _ = is_flushed.await;
            }
        };
        if tokio::time::timeout(FLUSH_TIMEOUT, flushing).await.is_err() {
            tracing::warn!("the audit log was not written in time");
        }
    }
}

/// Why a record is not written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
struct Unwritten {
    text: String,
    /// Whether the file is another one than an audit log.
    is_other_file: bool,
}

impl Unwritten {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_other_file: false,
        }
    }

    /// What an operator can do about it.
    fn hint(&self) -> &'static str {
        match self.is_other_file {
            true => "`audit` is `required`: name another file in `audit`, or move this one away",
            false => "`audit` is `required`: free the disk, fix the permissions of the file, or let the syslog run",
        }
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self {
            text: error.to_string(),
            is_other_file: error.get_ref().is_some_and(|inner| inner.is::<NotALog>()),
        }
    }
}

/// Notes a failure, since when the log cannot be written. A later one only changes the reason.
fn note_failure(current: &CurrentFailure, is_required: bool, why: &Unwritten, reason: String) {
    let mut current = current.lock();
    let since = current.as_ref().map_or_else(Timestamp::now, |failure| failure.since);
    *current = Some(AuditFailure {
        reason,
        hint: why.hint(),
        is_required,
        since,
    });
}

const ENDED: &str = "its writer has ended";

/// The state of the writer's thread.
struct Writer {
    sink: Sink,
    config: AuditConfig,
    events: EventSender,
    lost: Arc<AtomicU64>,
    totals: Arc<Totals>,
    failure: Arc<CurrentFailure>,
    queue: mpsc::Receiver<Message>,
    /// When the current failure was last reported.
    reported: Option<Instant>,
    /// How many calls were refused since the log cannot be written.
    refused: u64,
}

impl Writer {
    fn run(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Ok(next) = self.queue.try_recv()
            {
                batch.push(next);
            }
            self.write(batch);
        }
        self.write(Vec::new());
    }

    fn write(&mut self, batch: Vec<Message>) {
        let (mut entries, mut written, mut flushed) = (Vec::with_capacity(batch.len() + 1), Vec::new(), Vec::new());
        let mut retries = false;
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            entries.push(AuditEntry::lost(lost));
        }
        for message in batch {
            match message {
                Message::Record(entry) => entries.push(*entry),
                Message::Awaited(entry, done) => {
                    entries.push(*entry);
                    written.push(done);
                }
                Message::Flush(done) => flushed.push(done),
                Message::Retry => retries = true,
            }
        }
        let records = entries.len() as u64 - u64::from(lost > 0);
        let result = match entries.is_empty() {
            true => Ok(()),
            false => self.sink.append(&self.config, &mut entries).map_err(Unwritten::from),
        };
        match &result {
            Ok(()) if entries.is_empty() => {
                if retries {
                    self.retry();
                }
            }
            Ok(()) => {
                self.totals.written.fetch_add(records, Ordering::Relaxed);
                self.clear_failure();
            }
            Err(why) => {
                // Calls that wait for their record are refused, so theirs are not missing.
                let missing = records - written.len() as u64;
                self.refused += written.len() as u64;
                self.lost.fetch_add(lost + missing, Ordering::Relaxed);
                self.totals.lost.fetch_add(missing, Ordering::Relaxed);
                self.report(why);
            }
        }
        for done in written {
            let _ = done.send(result.clone());
        }
        for done in flushed {
            let _ = done.send(());
        }
    }

    /// Writes that there was a gap, if the log could not be written and no record has shown yet that it can.
    fn retry(&mut self) {
        if self.failure.lock().is_none() {
            return;
        }
        match self.sink.append(&self.config, &mut [AuditEntry::lost(self.refused)]) {
            Ok(()) => self.clear_failure(),
            Err(error) => self.report(&error.into()),
        }
    }

    fn clear_failure(&mut self) {
        (self.reported, self.refused) = (None, 0);
        let before = self.failure.lock().take();
        if before.is_some() {
            tracing::info!(name: log_event::AUDIT_RECOVERED, file = self.config.place(), "the audit log is written again");
        }
    }

    fn report(&mut self, why: &Unwritten) {
        let reason = format!("{}: {why}", self.config.place());
        note_failure(&self.failure, self.config.required, why, reason);
        if self.reported.is_some_and(|at| at.elapsed() < REPORT_EVERY) {
            return;
        }
        self.reported = Some(Instant::now());
        let file = self.config.place();
        tracing::warn!(name: log_event::AUDIT_FAILED, file, %why, "the audit log cannot be written");
        self.events.send(|| Event::AuditFailed {
            reason: format!("{file}: {why}"),
            at: Timestamp::now(),
        });
    }
}
