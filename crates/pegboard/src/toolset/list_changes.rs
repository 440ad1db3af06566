//! [`ListChanges`]: notices changes of what a view lists.

use std::time::Duration;

use tokio::sync::watch;

use super::{listed_now::ListedNow, toolset_handle::Toolset};

/// How long changes are collected before the lists are compared. Servers that start together change them many times within moments.
const COLLECT: Duration = Duration::from_millis(50);

/// The changes of a view's lists since [`Toolset::list_changes`] was called.
#[derive(Debug)]
pub struct ListChanges {
    toolset: Toolset,
    changes: watch::Receiver<()>,
    last: ListedNow,
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

impl Toolset {
    /// Notices changes of the view's tools, resources and prompts from now on, without starting a server. Unlike
    /// [`Pegboard::events`](crate::Pegboard::events) it costs calls nothing.
    pub fn list_changes(&self) -> ListChanges {
        // First the receiver, so that no change falls between.
        let changes = self.server_changes();
        ListChanges {
            last: self.listed_now(),
            toolset: self.clone(),
            changes,
            is_due: false,
        }
    }
}

impl ListChanges {
    /// Waits until a list has changed. Returns `None` when the board is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<ChangedLists> {
        loop {
            if !self.is_due {
                self.changes.changed().await.ok()?;
                self.is_due = true;
            }
            tokio::time::sleep(COLLECT).await;
            self.changes.mark_unchanged();
            self.is_due = false;
            let (now, last) = (self.toolset.listed_now(), self.last);
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
