//! Keeps a session to what is wanted of it: subscriptions, the level of its log, and the roots it was told.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{sync::watch, time::Instant};

use super::{
    Fault, Patience, Request, Session,
    desired_state::{Desired, DesiredLogLevel, DesiredState, Root},
    json_rpc::Params,
};
use crate::{deadline::Deadline, status::Era};

/// The waits before a lost notice stream is opened again.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);
const MAX_LISTEN_PAUSE: Duration = Duration::from_secs(60);
/// How long a server may take to say what it agrees to.
const ACKNOWLEDGE: Duration = Duration::from_secs(10);

/// What of the wishes is fulfilled, or why it is not.
#[derive(Debug, Default)]
pub(super) struct Reconciled {
    subscribed: watch::Sender<Subscribed>,
    level: watch::Sender<Option<(DesiredLogLevel, Result<(), String>)>>,
    /// Whether the server, asked for news, said that it has none to give.
    is_mute: AtomicBool,
}

/// By address: the wish for it, and what became of that.
type Subscribed = BTreeMap<Arc<str>, (u64, Result<(), String>)>;

impl Reconciled {
    pub(super) fn is_mute(&self) -> bool {
        self.is_mute.load(Ordering::Relaxed)
    }

    /// Nobody will hear of these addresses.
    fn refuse(&self, uris: &Uris, why: &str) {
        let refused = uris
            .iter()
            .map(|(uri, wish)| (uri.clone(), (*wish, Err(why.to_owned()))));
        self.subscribed.send_replace(refused.collect());
    }

    /// The addresses that the server has agreed to.
    fn agreed(&self) -> BTreeSet<Arc<str>> {
        let subscribed = self.subscribed.borrow();
        let agreed = subscribed.iter().filter(|(_, (_, done))| done.is_ok());
        agreed.map(|(uri, _)| uri.clone()).collect()
    }
}

/// The addresses that are wanted, each with its wish.
type Uris = BTreeMap<Arc<str>, u64>;

fn uris_of(wanted: &Desired) -> Uris {
    let desired = wanted.subscriptions.iter();
    desired.map(|(uri, wanted)| (uri.clone(), wanted.wish)).collect()
}

impl Session {
    fn desired_state(&self) -> &Arc<DesiredState> {
        &self.host.desired_state
    }

    /// Keeps the session to what is wanted for as long as it is polled.
    pub(crate) async fn keep(&self) -> Infallible {
        match self.facts.era {
            Era::Legacy => self.keep_by_requests().await,
            Era::Modern => self.keep_by_listening().await,
        }
    }

    async fn keep_by_requests(&self) -> Infallible {
        let mut desired = self.desired_state().desired();
        let mut told_roots: Option<Arc<[Root]>> = None;
        let mut is_first = true;
        loop {
            let wanted = desired.borrow_and_update().clone();
            self.tell_roots(&wanted, &mut told_roots).await;
            self.log_from(wanted.level).await;
            self.subscribe_to(&wanted, std::mem::take(&mut is_first)).await;
            if desired.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The first list is asked for by the server itself.
    async fn tell_roots(&self, wanted: &Desired, told: &mut Option<Arc<[Root]>>) {
        let is_news = told.as_ref().is_some_and(|told| *told != wanted.roots);
        if is_news && self.has_offered_roots {
            let sent = self
                .connection
                .notify("notifications/roots/list_changed", Params::default())
                .await;
            if let Err(fault) = sent {
                tracing::debug!(fault = %fault.hidden(self.masker()), "the server was not told of its new roots");
            }
        }
        *told = Some(wanted.roots.clone());
    }

    async fn log_from(&self, wanted: Option<DesiredLogLevel>) {
        let Some(wanted) = wanted else { return };
        let kept = self.kept.level.borrow().clone();
        match kept {
            Some((kept, _)) if kept.wish == wanted.wish => return,
            Some((kept, Ok(()))) if kept.level == wanted.level => {
                self.kept.level.send_replace(Some((wanted, Ok(()))));
                return;
            }
            _ => {}
        }
        let params = Params::default().with("level", wanted.level.as_str());
        let done = self
            .connection
            .request(Request::new("logging/setLevel", params), self.patience())
            .await;
        let done = done.map(drop).map_err(|fault| fault.to_string());
        self.kept.level.send_replace(Some((wanted, done)));
    }

    async fn subscribe_to(&self, wanted: &Desired, is_first: bool) {
        let had = self.kept.subscribed.borrow().clone();
        for uri in had.keys().filter(|uri| !wanted.subscriptions.contains_key(*uri)) {
            let _ = self.about_resource("resources/unsubscribe", uri).await;
            self.kept.subscribed.send_modify(|kept| {
                kept.remove(uri);
            });
        }
        for (uri, wish) in uris_of(wanted) {
            let done = match had.get(&uri) {
                Some((before, _)) if *before == wish => continue,
                // It was let go and wanted again before the server was told.
                Some((_, Ok(()))) => Ok(()),
                _ => self.about_resource("resources/subscribe", &uri).await,
            };
            let done = done.map_err(|fault| fault.to_string());
            let is_kept = done.is_ok();
            self.kept.subscribed.send_modify(|kept| {
                kept.insert(uri.clone(), (wish, done));
            });
            if is_first && is_kept {
                // It may have changed while there was no session.
                self.desired_state().tell_updated(&uri, self.masker());
            }
        }
    }

    async fn about_resource(&self, method: &'static str, uri: &str) -> Result<(), Fault> {
        let request = Request::new(method, Params::default().with("uri", uri)).about(uri);
        self.connection.request(request, self.patience()).await.map(drop)
    }

    /// In the era without sessions, notices must be asked for, all in one request. When the wishes change it is made anew; when it breaks,
    /// too, and everything is listed once, because notices may have been missed.
    async fn keep_by_listening(&self) -> Infallible {
        let mut desired = self.desired_state().desired();
        let mut pause = LISTEN_PAUSE;
        let mut is_first = true;
        loop {
            let wanted = desired.borrow_and_update().clone();
            self.set_log_level(wanted.level);
            let uris = uris_of(&wanted);
            if self.kept.is_mute() || (uris.is_empty() && !self.announces_changes()) {
                self.kept.refuse(&uris, "the server does not send notifications");
                if desired.changed().await.is_err() {
                    return std::future::pending().await;
                }
                continue;
            }
            let opened = Instant::now();
            let ended = tokio::select! {
                ended = self.listen(&uris, is_first) => Some(ended),
                () = self.until_other(&mut desired, &uris) => None,
            };
            is_first = false;
            let Some(ended) = ended else {
                // Between the two streams a notice may have been lost.
                if self.announces_changes() {
                    self.suspect_change();
                }
                continue;
            };
            match ended {
                Some(fault) if fault.is_unknown_method() => {
                    self.kept.is_mute.store(true, Ordering::Relaxed);
                    continue;
                }
                // It may agree later, but whoever waits for its word has it now.
                Some(fault) if fault.code().is_some() => self.kept.refuse(&uris, &fault.to_string()),
                _ => {}
            }
            pause = if opened.elapsed() > MAX_LISTEN_PAUSE {
                LISTEN_PAUSE
            } else {
                (pause * 2).min(MAX_LISTEN_PAUSE)
            };
            // Whoever wants something else is not kept waiting.
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.until_other(&mut desired, &uris) => {}
            }
            self.suspect_change();
            // Whatever happened to the resources meanwhile was not told.
            is_first = true;
        }
    }

    /// Waits until other addresses are wanted. A new level is set on the way.
    async fn until_other(&self, desired: &mut watch::Receiver<Desired>, uris: &Uris) {
        while desired.changed().await.is_ok() {
            let wanted = desired.borrow_and_update().clone();
            self.set_log_level(wanted.level);
            if uris_of(&wanted) != *uris {
                return;
            }
        }
        std::future::pending().await
    }

    fn set_log_level(&self, wanted: Option<DesiredLogLevel>) {
        self.connection.log_level().set(wanted.map(|wanted| wanted.level));
        self.kept.level.send_replace(wanted.map(|wanted| (wanted, Ok(()))));
    }

    /// ServerRequests for notices and stays for as long as the server gives them. Returns why it ended, when it did not end well.
    async fn listen(&self, uris: &Uris, tells_all: bool) -> Option<Fault> {
        let mut wanted = Map::new();
        for (kind, notice) in [
            ("tools", "toolsListChanged"),
            ("resources", "resourcesListChanged"),
            ("prompts", "promptsListChanged"),
        ] {
            if self.announces_changes_of(kind) {
                wanted.insert(notice.to_owned(), Value::Bool(true));
            }
        }
        if !uris.is_empty() {
            let uris = uris.keys().map(|uri| Value::from(&**uri)).collect();
            wanted.insert("resourceSubscriptions".to_owned(), uris);
        }
        let notifications = self.connection.pending().notifications();
        let params = Params::default().with("notifications", &wanted);
        let for_long = Patience::until(Deadline::within(Duration::MAX));
        let placed = |id| {
            notifications
                .into_iter()
                .for_each(|notifications| notifications.listen_under(id))
        };
        let request = Request::new("subscriptions/listen", params);
        let mut asking = match self.connection.ask(&request, placed) {
            Ok(asking) => asking,
            Err(fault) => return Some(fault),
        };
        let listening = asking.answer(for_long);
        tokio::pin!(listening);
        let agreeing = async {
            let agreed = match notifications {
                Some(notifications) => tokio::time::timeout(ACKNOWLEDGE, notifications.until_acknowledged())
                    .await
                    .ok(),
                None => None,
            };
            self.note_agreed(uris, agreed.as_deref(), tells_all);
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            ended = &mut listening => ended.err(),
            never = agreeing => match never {},
        }
    }

    /// Writes down which of the addresses the server has agreed to. A server that says nothing is believed to have agreed to all.
    fn note_agreed(&self, uris: &Uris, agreed: Option<&[String]>, tells_all: bool) {
        let had = self.kept.agreed();
        let mut kept = BTreeMap::new();
        for (uri, wish) in uris {
            let is_agreed = agreed.is_none_or(|agreed| agreed.iter().any(|other| **other == **uri));
            let done = if is_agreed {
                Ok(())
            } else {
                Err("the server does not send notifications of it".to_owned())
            };
            kept.insert(uri.clone(), (*wish, done));
            if is_agreed && (tells_all || had.contains(uri)) {
                self.desired_state().tell_updated(uri, self.masker());
            }
        }
        self.kept.subscribed.send_replace(kept);
    }

    /// Waits until the server has agreed to send news of this address, as this wish has it, or says why it does not.
    pub(crate) async fn until_subscribed(&self, uri: &str, wish: u64) -> Result<(), String> {
        let mut subscribed = self.kept.subscribed.subscribe();
        let is_told = |kept: &Subscribed| kept.get(uri).is_some_and(|(kept, _)| *kept >= wish);
        match subscribed.wait_for(is_told).await {
            Ok(kept) => kept.get(uri).map_or(Ok(()), |(_, done)| done.clone()),
            Err(_) => Err("the session has ended".to_owned()),
        }
    }

    /// Waits until this wish for a level, or a later one, is fulfilled, or the server says why it is not.
    pub(crate) async fn until_logging(&self, wish: u64) -> Result<(), String> {
        let mut kept = self.kept.level.subscribe();
        match kept
            .wait_for(|kept| kept.as_ref().is_some_and(|(kept, _)| kept.wish >= wish))
            .await
        {
            Ok(kept) => kept.clone().map_or(Ok(()), |(_, done)| done),
            Err(_) => Err("the session has ended".to_owned()),
        }
    }
}
