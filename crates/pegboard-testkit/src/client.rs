//! What a server remembers about one legacy client.

use std::{collections::HashSet, sync::Mutex};

use crate::{script::LogLine, server::lock};

/// The log level and the subscriptions of one client, over all its streams.
#[derive(Debug, Default)]
pub(crate) struct Client {
    level: Mutex<Option<String>>,
    subscribed: Mutex<HashSet<String>>,
}

impl Client {
    pub(crate) fn set_level(&self, level: String) {
        *lock(&self.level) = Some(level);
    }

    /// Returns `true` if the client wants this message. Before it sets a level, it wants all.
    pub(crate) fn wants(&self, line: &LogLine) -> bool {
        lock(&self.level).as_deref().is_none_or(|level| line.reaches(level))
    }

    pub(crate) fn subscribe(&self, uri: String, on: bool) {
        let mut subscribed = lock(&self.subscribed);
        if on {
            subscribed.insert(uri);
        } else {
            subscribed.remove(&uri);
        }
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        lock(&self.subscribed).contains(uri)
    }
}
