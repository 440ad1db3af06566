//! Reconciles a session with the desired state: subscriptions, the log level, and the roots.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use pegboard_protocol::method::{self, notification};
use serde_json::{Map, Value};
use tokio::{sync::watch, time::Instant};

use super::{
    applied_state::{AppliedState, Revisions, revisions_of},
    connection::RpcConnection,
    desired_state::{Desired, DesiredLogLevel, DesiredState},
    fault::Fault,
    json_rpc::Params,
    log_level::LogLevel,
    mcp_session::Session,
    patience::Patience,
    peer_info::PeerInfo,
    request::Request,
    root::Root,
};
use crate::session::Era;
use pegboard_base::deadline::Deadline;
use pegboard_config::Limits;
use pegboard_mask::ServerMasker;

/// The backoff before a lost notification stream is reopened.
const MIN_LISTEN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_LISTEN_BACKOFF: Duration = Duration::from_secs(60);
/// How long a server may take to acknowledge a notification stream.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);

impl Session {
    /// Reconciles the session with the desired state, for as long as it is polled.
    pub async fn reconcile(&self) -> Infallible {
        let reconciler = Reconciler {
            connection: &self.connection,
            peer: &self.peer,
            limits: &self.limits,
            desired_state: &self.responder.desired_state,
            applied: &self.applied,
            has_offered_roots: self.has_offered_roots,
            is_for_questions: self.is_for_questions,
        };
        match self.peer.era {
            Era::Legacy => reconciler.reconcile_by_requests().await,
            Era::Modern => reconciler.reconcile_by_listening().await,
        }
    }

    /// Waits until the server has accepted or rejected this or a later revision of a subscription.
    pub async fn until_subscribed(&self, uri: &str, revision: u64) -> Result<(), String> {
        self.applied.until_subscribed(uri, revision).await
    }

    /// Waits until the server has accepted or rejected this or a later revision of the log level.
    pub async fn until_level_set(&self, revision: u64) -> Result<(), String> {
        self.applied.until_level_set(revision).await
    }
}

/// Applies the desired state to one connection, and records what the server has accepted.
struct Reconciler<'a> {
    connection: &'a RpcConnection,
    peer: &'a PeerInfo,
    limits: &'a Limits,
    desired_state: &'a DesiredState,
    applied: &'a AppliedState,
    has_offered_roots: bool,
    is_for_questions: bool,
}

impl Reconciler<'_> {
    fn masker(&self) -> &ServerMasker {
        self.connection.dispatcher().masker()
    }

    fn sends_list_changed(&self) -> bool {
        self.applied.may_listen() && self.peer.declares_any_list_changed()
    }

    /// Acts as if the server had sent a list change notification.
    fn assume_list_changed(&self) {
        self.connection.dispatcher().list_changed.notify_one();
    }

    async fn reconcile_by_requests(&self) -> Infallible {
        let mut watch = self.desired_state.watch();
        let mut last_roots = None;
        let mut is_first = true;
        loop {
            let desired = watch.borrow_and_update().clone();
            self.announce_roots(&desired, &mut last_roots).await;
            self.request_log_level(desired.level).await;
            if !self.is_for_questions {
                self.reconcile_subscriptions(&desired, std::mem::take(&mut is_first))
                    .await;
            }
            if watch.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Notifies the server of changed roots. The first list is requested by the server itself.
    async fn announce_roots(&self, desired: &Desired, last: &mut Option<(Arc<[Root]>, u64)>) {
        let now = (desired.roots.clone(), desired.roots_revision);
        let has_changed = last.as_ref().is_some_and(|last| *last != now);
        if has_changed && self.has_offered_roots {
            let sent = self
                .connection
                .notify(notification::ROOTS_LIST_CHANGED, Params::default())
                .await;
            if let Err(fault) = sent {
                tracing::debug!(fault = %fault.into_masked(self.masker()), "the server was not told of its new roots");
            }
        }
        *last = Some(now);
    }

    async fn request_log_level(&self, desired: Option<DesiredLogLevel>) {
        let applied = self.applied.level.borrow().clone();
        let desired = match (desired, &applied) {
            (Some(desired), _) => desired,
            // A level cannot be taken back. With the highest, the server logs least.
            (None, Some((applied, _))) => DesiredLogLevel {
                level: LogLevel::Emergency,
                ..*applied
            },
            (None, None) => return,
        };
        match applied {
            Some((applied, _)) if applied == desired => return,
            Some((applied, Ok(()))) if applied.level == desired.level => {
                self.applied.level.send_replace(Some((desired, Ok(()))));
                return;
            }
            _ => {}
        }
        let params = Params::default().with("level", desired.level.as_str());
        let result = self
            .connection
            .request(
                Request::new(method::LOGGING_SET_LEVEL, params),
                Patience::for_call(self.limits),
            )
            .await;
        let result = result.map(drop).map_err(|fault| fault.to_string());
        self.applied.level.send_replace(Some((desired, result)));
    }

    async fn reconcile_subscriptions(&self, desired: &Desired, is_first: bool) {
        let before = self.applied.subscriptions.borrow().clone();
        for uri in before.keys().filter(|uri| !desired.subscriptions.contains_key(*uri)) {
            let _ = self.resource_request(method::RESOURCES_UNSUBSCRIBE, uri).await;
            self.applied.subscriptions.send_modify(|applied| {
                applied.remove(uri);
            });
        }
        for (uri, revision) in revisions_of(desired) {
            let result = match before.get(&uri) {
                Some((applied, _)) if *applied == revision => continue,
                // The subscription was dropped and renewed before this ran.
                Some((_, Ok(()))) => Ok(()),
                _ => self.resource_request(method::RESOURCES_SUBSCRIBE, &uri).await,
            };
            let result = result.map_err(|fault| fault.to_string());
            let is_accepted = result.is_ok();
            self.applied.subscriptions.send_modify(|applied| {
                applied.insert(uri.clone(), (revision, result));
            });
            if is_first && is_accepted {
                // The resource may have changed while there was no session.
                self.desired_state.publish_resource_updated(&uri, self.masker());
            }
        }
    }

    async fn resource_request(&self, method: &'static str, uri: &str) -> Result<(), Fault> {
        let request = Request::new(method, Params::default().with("uri", uri)).about(uri);
        self.connection
            .request(request, Patience::for_call(self.limits))
            .await
            .map(drop)
    }

    /// Keeps one `subscriptions/listen` request open, which the newest era requires for notifications. It is replaced when the desired
    /// subscriptions change, and retried when it ends. The catalog is then listed again, because notifications may have been missed.
    async fn reconcile_by_listening(&self) -> Infallible {
        let mut watch = self.desired_state.watch();
        let mut backoff = MIN_LISTEN_BACKOFF;
        let mut publishes_all = true;
        loop {
            let desired = watch.borrow_and_update().clone();
            self.apply_log_level(desired.level);
            let revisions = revisions_of(&desired);
            if !self.applied.may_listen() || (revisions.is_empty() && !self.sends_list_changed()) {
                self.applied
                    .reject_all(&revisions, "the server does not send notifications");
                if watch.changed().await.is_err() {
                    return std::future::pending().await;
                }
                continue;
            }
            let opened = Instant::now();
            let ended = tokio::select! {
                ended = self.listen(&revisions, publishes_all) => Some(ended),
                () = self.until_other_subscriptions(&mut watch, &revisions) => None,
            };
            publishes_all = false;
            let Some(ended) = ended else {
                // A notification between the two streams may have been missed.
                if self.sends_list_changed() {
                    self.assume_list_changed();
                }
                continue;
            };
            match ended {
                Some(fault) if fault.is_unknown_method() => {
                    self.applied.set_rejects_listening();
                    continue;
                }
                // The server may accept a retry, but callers that wait get this error.
                Some(fault) if fault.code().is_some() => self.applied.reject_all(&revisions, &fault.to_string()),
                _ => {}
            }
            backoff = if opened.elapsed() > MAX_LISTEN_BACKOFF {
                MIN_LISTEN_BACKOFF
            } else {
                (backoff * 2).min(MAX_LISTEN_BACKOFF)
            };
            // New subscriptions do not wait for the backoff.
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.until_other_subscriptions(&mut watch, &revisions) => {}
            }
            self.assume_list_changed();
            // Resources may have changed while there was no stream.
            publishes_all = true;
        }
    }

    /// Waits until other subscriptions are desired. Applies new log levels meanwhile.
    async fn until_other_subscriptions(&self, watch: &mut watch::Receiver<Desired>, revisions: &Revisions) {
        while watch.changed().await.is_ok() {
            let desired = watch.borrow_and_update().clone();
            self.apply_log_level(desired.level);
            if revisions_of(&desired) != *revisions {
                return;
            }
        }
        std::future::pending().await
    }

    /// Sets the log level in the `_meta` of all further requests.
    fn apply_log_level(&self, desired: Option<DesiredLogLevel>) {
        self.connection.log_level().set(desired.map(|desired| desired.level));
        self.applied
            .level
            .send_replace(desired.map(|desired| (desired, Ok(()))));
    }

    /// Opens a notification stream, and returns when it ends. Returns the fault if it failed.
    async fn listen(&self, revisions: &Revisions, publishes_all: bool) -> Option<Fault> {
        let mut filter = Map::new();
        for (kind, field) in [
            ("tools", "toolsListChanged"),
            ("resources", "resourcesListChanged"),
            ("prompts", "promptsListChanged"),
        ] {
            if self.peer.declares_list_changed(kind) {
                filter.insert(field.to_owned(), Value::Bool(true));
            }
        }
        if !revisions.is_empty() {
            let uris = revisions.keys().map(|uri| Value::from(&**uri)).collect();
            filter.insert("resourceSubscriptions".to_owned(), uris);
        }
        let notifications = self.connection.dispatcher().notifications();
        let params = Params::default().with("notifications", &filter);
        let registered = |id| {
            notifications
                .into_iter()
                .for_each(|notifications| notifications.set_listen_id(id))
        };
        let request = Request::new(method::SUBSCRIPTIONS_LISTEN, params);
        let mut in_flight = match self.connection.send_request(&request, registered) {
            Ok(in_flight) => in_flight,
            Err(fault) => return Some(fault),
        };
        let listening = in_flight.response(Patience::until(Deadline::within(Duration::MAX)));
        tokio::pin!(listening);
        let acknowledging = async {
            let accepted = match notifications {
                Some(notifications) => tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, notifications.until_acknowledged())
                    .await
                    .ok(),
                None => None,
            };
            self.record_accepted(revisions, accepted.as_deref(), publishes_all);
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            ended = &mut listening => ended.err(),
            never = acknowledging => match never {},
        }
    }

    /// Records which subscriptions the server has accepted: all of them, if it does not acknowledge the stream.
    fn record_accepted(&self, revisions: &Revisions, accepted: Option<&[String]>, publishes_all: bool) {
        let before = self.applied.accepted_uris();
        let mut applied = BTreeMap::new();
        for (uri, revision) in revisions {
            let is_accepted = accepted.is_none_or(|accepted| accepted.iter().any(|other| **other == **uri));
            let result = if is_accepted {
                Ok(())
            } else {
                Err("the server does not send notifications of it".to_owned())
            };
            applied.insert(uri.clone(), (*revision, result));
            if is_accepted && (publishes_all || before.contains(uri)) {
                self.desired_state.publish_resource_updated(uri, self.masker());
            }
        }
        self.applied.subscriptions.send_replace(applied);
    }
}
