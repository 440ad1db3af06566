//! [`AppliedState`]: the part of the desired state that one session has applied, or why its server rejected it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;

use super::desired_state::{Desired, DesiredLogLevel};

/// The part of the desired state that one session has applied.
#[derive(Debug, Default)]
pub(super) struct AppliedState {
    pub(super) subscriptions: watch::Sender<AppliedSubscriptions>,
    pub(super) level: watch::Sender<Option<(DesiredLogLevel, Result<(), String>)>>,
    /// Whether the server does not support `subscriptions/listen`.
    rejects_listening: AtomicBool,
}

/// The revision of each subscription, by URI, and whether the server accepted it.
pub(super) type AppliedSubscriptions = BTreeMap<Arc<str>, (u64, Result<(), String>)>;

/// The revision of each desired subscription, by URI.
pub(super) type Revisions = BTreeMap<Arc<str>, u64>;

/// Returns the revisions of the desired subscriptions.
pub(super) fn revisions_of(desired: &Desired) -> Revisions {
    let subscriptions = desired.subscriptions.iter();
    subscriptions
        .map(|(uri, subscription)| (uri.clone(), subscription.revision))
        .collect()
}

impl AppliedState {
    /// Whether the server has not rejected a request for notifications.
    pub(super) fn may_listen(&self) -> bool {
        !self.rejects_listening.load(Ordering::Relaxed)
    }

    pub(super) fn set_rejects_listening(&self) {
        self.rejects_listening.store(true, Ordering::Relaxed);
    }

    /// Records that the server rejected all subscriptions.
    pub(super) fn reject_all(&self, revisions: &Revisions, why: &str) {
        let rejected = revisions
            .iter()
            .map(|(uri, revision)| (uri.clone(), (*revision, Err(why.to_owned()))));
        self.subscriptions.send_replace(rejected.collect());
    }

    /// Returns the URIs that the server accepted.
    pub(super) fn accepted_uris(&self) -> BTreeSet<Arc<str>> {
        let subscriptions = self.subscriptions.borrow();
        let accepted = subscriptions.iter().filter(|(_, (_, result))| result.is_ok());
        accepted.map(|(uri, _)| uri.clone()).collect()
    }

    /// Waits until the server has accepted or rejected this or a later revision of a subscription.
    pub(super) async fn until_subscribed(&self, uri: &str, revision: u64) -> Result<(), String> {
        let mut subscriptions = self.subscriptions.subscribe();
        let is_applied = |applied: &AppliedSubscriptions| {
            applied
                .get(uri)
                .is_some_and(|(applied_revision, _)| *applied_revision >= revision)
        };
        match subscriptions.wait_for(is_applied).await {
            Ok(applied) => applied.get(uri).map_or(Ok(()), |(_, result)| result.clone()),
            Err(_) => Err("the session has ended".to_owned()),
        }
    }

    /// Waits until the server has accepted or rejected this or a later revision of the log level.
    pub(super) async fn until_level_set(&self, revision: u64) -> Result<(), String> {
        let mut level = self.level.subscribe();
        match level
            .wait_for(|level| level.as_ref().is_some_and(|(level, _)| level.revision >= revision))
            .await
        {
            Ok(level) => level.clone().map_or(Ok(()), |(_, result)| result),
            Err(_) => Err("the session has ended".to_owned()),
        }
    }
}
