//! Notices changes of a toolset's lists.

use std::time::Duration;

use futures_util::FutureExt;

use crate::{
    event::{Event, Events},
    toolset::{ListedNow, Toolset},
};

/// How long changes are collected before the lists are compared. Servers that start together change them many times within moments.
const COLLECT: Duration = Duration::from_millis(50);

/// The changes of a toolset's lists since it was created.
pub(super) struct ListChanges {
    toolset: Toolset,
    events: Events,
    last: ListedNow,
    /// Whether an event came after the lists were compared.
    is_due: bool,
}

/// Which lists have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

impl ListChanges {
    pub(super) fn new(toolset: &Toolset) -> Self {
        // First the events, so that no change falls between.
        let events = toolset.board_events();
        Self {
            last: toolset.listed_now(),
            toolset: toolset.clone(),
            events,
            is_due: false,
        }
    }

    /// Waits until a list has changed. Returns `None` when the board is gone. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Changed> {
        loop {
            while !self.is_due {
                self.is_due = may_change_lists(&self.events.next().await?);
            }
            tokio::time::sleep(COLLECT).await;
            while let Some(Some(_)) = self.events.next().now_or_never() {}
            self.is_due = false;
            let (now, last) = (self.toolset.listed_now(), self.last);
            if now != last {
                self.last = now;
                return Some(Changed {
                    tools: now.tools != last.tools,
                    resources: now.resources != last.resources,
                    prompts: now.prompts != last.prompts,
                });
            }
        }
    }
}

fn may_change_lists(event: &Event) -> bool {
    matches!(
        event,
        Event::ServerChanged { .. }
            | Event::CatalogChanged { .. }
            | Event::DefinitionsFlagged { .. }
            | Event::Missed { .. }
    )
}
