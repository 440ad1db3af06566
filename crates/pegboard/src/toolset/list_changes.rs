//! [`ListChanges`]: notices changes of what a view lists.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

use super::{listed_now::ListedNow, lister::Lister, open_view::OpenView};

/// How long changes are collected before the lists are compared. Servers that start together change them many times within moments.
const COLLECT: Duration = Duration::from_millis(50);

/// The changes of a view's lists since [`Toolset::list_changes`](crate::Toolset::list_changes) was called.
#[derive(Debug)]
pub struct ListChanges {
    open: OpenView,
    changes: watch::Receiver<()>,
    last: ListedNow,
    /// When a server that is down is not listed any more.
    next_removal: Option<Instant>,
    /// Whether a server has changed since the lists were compared.
    is_due: bool,
}

/// Which lists of a view have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedLists {
    /// The tools.
    pub tools: bool,
    /// The resources and resource templates.
    pub resources: bool,
    /// The prompts.
    pub prompts: bool,
}

impl ListChanges {
    pub(super) fn new(open: &OpenView) -> Self {
        // First the receiver, so that no change falls between.
        let changes = open.servers.registry().events().server_changes();
        Self {
            last: ListedNow::read(open),
            next_removal: Lister::new(open).next_removal(),
            open: open.clone(),
            changes,
            is_due: false,
        }
    }

    /// Waits until a list has changed. Returns `None` when the board is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<ChangedLists> {
        loop {
            if !self.is_due {
                tokio::select! {
                    changed = self.changes.changed() => changed.ok()?,
                    () = at(self.next_removal) => {}
                }
                self.is_due = true;
            }
            tokio::time::sleep(COLLECT).await;
            self.changes.mark_unchanged();
            self.is_due = false;
            let (now, last) = (ListedNow::read(&self.open), self.last);
            self.next_removal = Lister::new(&self.open).next_removal();
            if now != last {
                self.last = now;
                return Some(ChangedLists {
                    tools: now.tools != last.tools,
                    resources: now.resources != last.resources,
                    prompts: now.prompts != last.prompts,
                });
            }
        }
    }
}

/// Waits until `time`; forever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
