//! Notes calls while their servers have them, so that a program can tell after a crash which ones may have run.

use std::{fmt, sync::Arc};

use pegboard_base::timestamp::Timestamp;

use pegboard_base::{caller::Principal, name::ServerName, sync::catch_now};

/// Notes the calls in flight. See [`Builder::journal`](crate::Builder::journal).
///
/// Both functions run within the call: they must be fast, and must not block.
pub trait CallJournal: Send + Sync + 'static {
    /// Notes a call that is sent now. Returns what [`CallJournal::end`] gets.
    fn begin(&self, call: &JournalEntry<'_>) -> u64;

    /// Removes a call that was answered, refused or cancelled.
    fn end(&self, ticket: u64);

    /// Why calls cannot be noted now; `None` if they can. It is among the warnings of [`Pegboard::status`](crate::Pegboard::status).
    fn problem(&self) -> Option<JournalProblem> {
        None
    }
}

impl<T: CallJournal + ?Sized> CallJournal for Arc<T> {
    fn begin(&self, call: &JournalEntry<'_>) -> u64 {
        (**self).begin(call)
    }

    fn end(&self, ticket: u64) {
        (**self).end(ticket);
    }

    fn problem(&self) -> Option<JournalProblem> {
        (**self).problem()
    }
}

/// Why calls in flight cannot be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalProblem {
    /// What is wrong, and what to do.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

impl JournalProblem {
    /// Creates a problem.
    pub fn new(message: impl Into<String>, since: Timestamp) -> Self {
        Self {
            message: message.into(),
            since,
        }
    }
}

/// A call in flight. Calls of tools that only read are not noted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct JournalEntry<'a> {
    /// The id of the call.
    pub id: &'a str,
    /// The server that it is sent to.
    pub server: &'a ServerName,
    /// The tool, by the server's name for it.
    pub tool: &'a str,
    /// The principal whose call it is.
    pub principal: Option<&'a Principal>,
}

/// The journal of a board, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Journal(Option<Arc<dyn CallJournal>>);

impl Journal {
    pub(crate) fn new(journal: impl CallJournal) -> Self {
        Self(Some(Arc::new(journal)))
    }

    /// Why calls cannot be noted now.
    pub(crate) fn problem(&self) -> Option<JournalProblem> {
        let journal = self.0.as_deref()?;
        catch_now(|| journal.problem()).ok()?
    }

    /// Notes a call until the returned value is dropped.
    pub(super) fn note<'a>(
        &self,
        is_read_only: impl FnOnce() -> bool,
        entry: impl FnOnce() -> JournalEntry<'a>,
    ) -> Option<Noted<'_>> {
        let journal = self.0.as_deref()?;
        if is_read_only() {
            return None;
        }
        // A panic in the program's code must not end the call.
        let ticket = catch_now(|| journal.begin(&entry())).ok()?;
        Some(Noted { journal, ticket })
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Journal").field(&self.0.is_some()).finish()
    }
}

/// A call that is in the journal.
pub(super) struct Noted<'a> {
    journal: &'a dyn CallJournal,
    ticket: u64,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let _ = catch_now(|| self.journal.end(self.ticket));
    }
}
