//! Live pages: the parts of a page that change, sent again when they are different.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use axum::response::{
    IntoResponse as _, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode};
use maud::Markup;
use pegboard_gateway::QuotaPermit;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    layout,
    ui::{OpenPage, Ui},
    visitor::Visitor,
};

/// The least time between two updates of a page: four in a second.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// The most time between two updates of a page that costs much, or is one of many.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The time between two updates of numbers that change without an event.
const TICK: Duration = Duration::from_secs(2);
/// All pages together may take this share of a core: the pause after an update is so many times as long as the update took, for each page that
/// is open.
const SHARE: u32 = 50;
/// The interval of the comments that keep proxies from closing an idle stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A part of a page: the id of its element, and the element.
pub(crate) type Fragment = (&'static str, Markup);

/// What makes a page look again, besides the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Servers,
    Calls,
}

/// Writes the parts of a page anew.
type Render = Box<dyn Fn(&Ui, &Visitor) -> Vec<Fragment> + Send>;

struct Live {
    ui: Arc<Ui>,
    visitor: Visitor,
    render: Render,
    servers: watch::Receiver<()>,
    calls: Option<watch::Receiver<u64>>,
    /// The digests of the parts as the browser has them.
    sent: HashMap<&'static str, u64>,
    waiting: VecDeque<Fragment>,
    /// When the next update may be.
    next: Instant,
    _open: OpenPage,
    _place: QuotaPermit,
}

/// The stream of a page. It ends when the token of the visitor is revoked, and when the daemon stops.
pub(crate) fn stream(
    ui: Arc<Ui>,
    visitor: Visitor,
    wake: Wake,
    render: impl Fn(&Ui, &Visitor) -> Vec<Fragment> + Send + 'static,
) -> Response {
    if !visitor.comes_from_own_page {
        let words = "The stream of a page is for that page.";
        return layout::problem(StatusCode::FORBIDDEN, "Not for this page", words, None);
    }
    let Some(place) = ui.live_pages.try_acquire(visitor.caller.principal()) else {
        let words = "Too many pages are open. This one shows what was known when it was loaded.";
        return layout::problem(StatusCode::SERVICE_UNAVAILABLE, "Too many pages", words, None);
    };
    let board = ui.api.board();
    let servers = board.server_changes();
    let calls = (wake == Wake::Calls).then(|| board.recent_calls().newest());
    let live = Live {
        servers,
        calls,
        render: Box::new(render),
        sent: HashMap::new(),
        waiting: VecDeque::new(),
        next: Instant::now(),
        _open: ui.open_page(),
        _place: place,
        ui,
        visitor,
    };
    let events = stream::unfold(live, async |mut live| {
        let event = live.next().await?;
        Some((Ok::<_, Infallible>(event), live))
    });
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(HEARTBEAT))
        .into_response();
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}

impl Live {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((id, markup)) = self.waiting.pop_front() {
                let event = Event::default().event("fragment");
                return event.json_data(json!({"id": id, "html": markup.0})).ok();
            }
            self.wait().await?;
            let began = Instant::now();
            let fragments = (self.render)(&self.ui, &self.visitor);
            let pages = u32::try_from(self.ui.open_pages()).unwrap_or(u32::MAX);
            let pause = began.elapsed().saturating_mul(SHARE.saturating_mul(pages));
            let pause = pause.clamp(MIN_PAUSE, MAX_PAUSE);
            self.next = Instant::now() + pause;
            for (id, markup) in fragments {
                let digest = digest(&markup.0);
                if self.sent.insert(id, digest) != Some(digest) {
                    self.waiting.push_back((id, markup));
                }
            }
        }
    }

    /// Waits until something may have changed and the page may be updated. `None` when the stream ends.
    async fn wait(&mut self) -> Option<()> {
        let (ui, caller) = (self.ui.clone(), self.visitor.caller.clone());
        let Self {
            servers, calls, next, ..
        } = self;
        let calls = async {
            match calls {
                Some(calls) => calls.changed().await,
                None => std::future::pending().await,
            }
        };
        let changed = async {
            tokio::select! {
                _ = servers.changed() => {}
                _ = calls => {}
                () = sleep(TICK) => {}
            }
            sleep_until(*next).await;
        };
        tokio::select! {
            biased;
            () = ui.api.stopped() => None,
            () = caller.revoked() => None,
            () = changed => Some(()),
        }
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
