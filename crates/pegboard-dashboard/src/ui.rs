//! [`Ui`]: what the pages share.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard::{ServerName, Timestamp, config::DashboardCalls};
use pegboard_base::sync::Mutex;
use pegboard_daemon::LocalApi;
use pegboard_gateway::{BrowserSessions, PrincipalQuota};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::history::{History, INTERVAL};

/// The most pages that are kept up to date at once.
const LIVE_PAGES: usize = 128;
/// How long calls are recorded after the last page was open.
const RECORD_TIME: Duration = Duration::from_secs(60 * 60);

/// Reads the config as the page shows it: [`ConfigDocument`].
pub type ReadConfig = Arc<dyn Fn() -> ConfigDocument + Send + Sync>;

/// The config that is on disk now.
#[derive(Clone, Debug, Default)]
pub struct ConfigDocument {
    /// The files that it was read from.
    pub sources: Vec<String>,
    /// Each setting that is not a default: its name, its value without secrets, and where it was written.
    pub settings: Vec<ConfigLine>,
    /// What is wrong with it: whether that is an error, the place, and the words.
    pub problems: Vec<ConfigProblem>,
}

/// A setting of the config.
#[derive(Clone, Debug, Default)]
pub struct ConfigLine {
    /// The server; `None` for settings of the top.
    pub server: Option<String>,
    /// The setting.
    pub name: String,
    /// Its value as JSON, without secrets.
    pub value: Value,
    /// Where it was written.
    pub origin: String,
}

/// A problem of the config.
#[derive(Clone, Debug, Default)]
pub struct ConfigProblem {
    /// Whether the setting cannot be used.
    pub is_error: bool,
    /// What is wrong, and where.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Reads the newest result of `pegboard torture` for a server.
pub type ReadScore = Arc<dyn Fn(&ServerName) -> Option<TortureScore> + Send + Sync>;

/// How a server stood `pegboard torture`.
#[derive(Clone, Debug)]
pub struct TortureScore {
    /// When it was tried.
    pub at: Timestamp,
    /// `A` to `F`.
    pub grade: char,
    /// The number of cases that it passed.
    pub passed: usize,
    /// The number of cases that it failed.
    pub failed: usize,
    /// The number of cases that do not apply to it.
    pub skipped: usize,
    /// The first failed cases.
    pub failures: Vec<TortureFailure>,
    /// Whether its settings are still those with which it was tried.
    pub is_of_these_settings: bool,
}

/// A failed case.
#[derive(Clone, Debug)]
pub struct TortureFailure {
    /// What is expected of the server.
    pub title: String,
    /// What to change in it.
    pub mend: String,
}

/// What the program reads for the pages.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    pub(crate) config: Option<ReadConfig>,
    pub(crate) score: Option<ReadScore>,
}

/// What the pages share.
pub(crate) struct Ui {
    pub(crate) api: LocalApi,
    pub(crate) sessions: BrowserSessions,
    pub(crate) history: Arc<History>,
    pub(crate) live_pages: Arc<PrincipalQuota>,
    pub(crate) sources: Sources,
    presence: Arc<Presence>,
    _sampler: AbortOnDropHandle<()>,
}

/// Whether the pages are in use.
#[derive(Debug)]
struct Presence {
    open: AtomicUsize,
    /// When a page was last asked for or closed.
    last: Mutex<Instant>,
}

/// A page that is open in a browser.
#[derive(Debug)]
pub(crate) struct OpenPage(Arc<Presence>);

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        *self.0.last.lock() = Instant::now();
    }
}

impl Ui {
    /// The pages of a daemon. Reads the counters of the board every ten seconds from now on, for the charts of the last hour.
    pub(crate) fn new(api: LocalApi, sessions: BrowserSessions, sources: Sources) -> Self {
        record_as_configured(&api, false);
        let history = Arc::<History>::default();
        let presence = Arc::new(Presence {
            open: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        });
        let sampler = sample(api.clone(), history.clone(), presence.clone());
        Self {
            api,
            sessions,
            history,
            live_pages: PrincipalQuota::new(LIVE_PAGES),
            sources,
            presence,
            _sampler: AbortOnDropHandle::new(tokio::spawn(sampler)),
        }
    }

    /// When the config has calls recorded.
    pub(crate) fn recording(&self) -> DashboardCalls {
        self.api.board().gateway_settings().serve.dashboard_calls
    }

    /// Notes that a person looks at a page. Calls are recorded from now on, unless the config forbids it.
    pub(crate) fn note_visit(&self) {
        *self.presence.last.lock() = Instant::now();
        record_as_configured(&self.api, true);
    }

    /// How many pages are open.
    pub(crate) fn open_pages(&self) -> usize {
        self.presence.open.load(Ordering::Relaxed).max(1)
    }

    /// Notes that a page is open until what is returned is dropped.
    pub(crate) fn open_page(&self) -> OpenPage {
        self.note_visit();
        self.presence.open.fetch_add(1, Ordering::Relaxed);
        OpenPage(self.presence.clone())
    }
}

/// Begins or ends the recording of calls.
fn record_as_configured(api: &LocalApi, is_watched: bool) {
    let recent = api.board().recent_calls();
    let is_wanted = match api.board().gateway_settings().serve.dashboard_calls {
        DashboardCalls::Always => true,
        DashboardCalls::Off => false,
        DashboardCalls::Open => is_watched,
    };
    if is_wanted != recent.is_on() {
        recent.record(is_wanted);
    }
}

async fn sample(api: LocalApi, history: Arc<History>, presence: Arc<Presence>) {
    loop {
        history.add(&api.board().metrics());
        tokio::time::sleep(INTERVAL).await;
        let last = *presence.last.lock();
        let is_watched = presence.open.load(Ordering::Relaxed) > 0 || last.elapsed() < RECORD_TIME;
        // Only a visit begins a recording that depends on one.
        let goes_on = is_watched && api.board().recent_calls().is_on();
        record_as_configured(&api, goes_on);
    }
}

impl fmt::Debug for Ui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ui").field("api", &self.api).finish_non_exhaustive()
    }
}
