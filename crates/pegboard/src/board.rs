//! The board: all servers of one config, their views, and changes at run time.

#[cfg(feature = "oauth")]
mod account_servers;
mod approval_defaults;
mod board_report;
mod builder;
mod config_change;
mod gateway_settings;
mod health;
mod in_process_servers;
mod in_process_settings;
mod reconcile;
mod runtime_changes;
mod selection_check;
mod server_factory;
mod server_replacement;
#[cfg(feature = "oauth")]
mod sign_in;
#[cfg(feature = "oauth")]
mod sign_in_changes;
#[cfg(feature = "oauth")]
mod sign_in_list;
#[cfg(feature = "oauth")]
mod sign_in_provider;
#[cfg(feature = "oauth")]
mod sign_in_records;
#[cfg(feature = "oauth")]
mod token_protection;
mod view_opener;

pub use crate::server::BadSchedule;
pub use builder::{Builder, OpenError};
pub use config_change::Applied;
pub use gateway_settings::GatewaySettings;
pub use server_replacement::NotConnected;
#[cfg(feature = "oauth")]
pub use sign_in::{SignIn, SignInError, SignInErrorKind, SignInOptions, SignedIn, SignedOut};
#[cfg(feature = "oauth")]
pub use sign_in_list::{EndedSignIn, StoredSignIn};
#[cfg(feature = "oauth")]
pub use token_protection::TokenProtection;

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, watch};

use crate::status::BoardStatus;
use crate::{
    audit::AuditLog,
    audit::{AdminChange, AuditEntry},
    call::View,
    event::{Event, Events},
    metrics::Metrics,
    pin::{PinChange, PinError},
    recent::{RecentCalls, WaitingApprovals},
    server::{CatalogChange, Registry, Server},
    toolset::Toolset,
};
use board_report::BoardReport;
use gateway_settings::PublishedSettings;
use pegboard_base::{deadline::Deadline, name::ServerName, secret::Secret, telemetry::Telemetry};
use pegboard_client::{credential::CallerTokens, session::Root};
use pegboard_tools::outcome::Failure;
use server_factory::ServerFactory;
use server_replacement::ServerChanges;
use view_opener::ViewOpener;

/// How often a drain polls for calls in flight.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// All servers of one config. Dropping the last clone ends them; [`Pegboard::shutdown`] also waits for their end.
#[derive(Debug, Clone)]
pub struct Pegboard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Arc<Registry>,
    factory: ServerFactory,
    /// Opens views, and holds what they share.
    views: ViewOpener,
    /// The named views and the settings of the gateway.
    gateway: PublishedSettings,
    /// One permit: changes of the config run one after the other.
    changes: Semaphore,
}

impl Pegboard {
    /// Opens a view of all servers for one agent. A session-scoped server is started for each view and ends with it.
    pub fn toolset(&self) -> Toolset {
        self.toolset_with(View::new())
    }

    /// Opens a view for one agent with custom settings.
    ///
    /// A view per request is fine: views with equal names, provider, filters and grants share their route table and definitions, unless they
    /// have servers or tools of their own.
    pub fn toolset_with(&self, view: View) -> Toolset {
        self.0.views.open(&self.0.registry, &self.0.factory, view)
    }

    /// Returns `true` if the board has an approver for views without their own.
    pub fn has_approver(&self) -> bool {
        self.0.views.approval_defaults.approver.is_some()
    }

    /// Starts all enabled servers, except those that start only when the program connects them, and waits until each is ready or has failed,
    /// at most for `patience`. For a session-scoped server this covers the instances of all open views, or without views one that the next
    /// view takes over.
    pub async fn settle(&self, patience: Duration) {
        self.0.registry.settle(Deadline::within(patience)).await;
    }

    /// Waits until each server that starts with the board is ready or has failed, at most for `patience`. Unlike [`Pegboard::settle`], it starts
    /// no lazy server: one that only users sign in to is left alone.
    pub async fn settle_started(&self, patience: Duration) {
        self.0.registry.settle_started(Deadline::within(patience)).await;
    }

    /// Returns the current status: one row for each live server, with the view that owns it, if any.
    pub fn status(&self) -> BoardStatus {
        self.report().read_status()
    }

    /// Whether every required server besides these is ready.
    pub fn is_ready_without(&self, servers: &[ServerName]) -> bool {
        self.report().is_ready_without(servers)
    }

    /// The servers that wait for a sign-in, for views without a principal. One that only refuses requests is none of them.
    pub fn awaiting_sign_in(&self) -> Vec<ServerName> {
        let configured = self.0.registry.configured_servers();
        let waiting = configured
            .iter()
            .filter(|server| server.reported_phase().awaits_sign_in());
        waiting.map(|server| server.name().clone()).collect()
    }

    /// Sets the roots of a server, in place of those of its config, until the server is disabled. A server with a handshake is notified of the
    /// change; if it had no roots when it was started, it gets them at its next start. This applies to every view, even one with its own
    /// roots. Returns `false` if there is no enabled server of that name.
    pub fn set_roots(&self, name: impl AsRef<str>, roots: &[Root]) -> bool {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return false;
        };
        let name = &name;
        let instances = self.0.registry.instances(name);
        let set = instances
            .iter()
            .filter(|server| server.connections().set_roots(roots))
            .count();
        set > 0
    }

    /// The names of the servers that accept calls or could. One that was removed is gone from here at once, while
    /// [`Pegboard::status`] shows it until its last call has ended.
    pub fn server_names(&self) -> Vec<ServerName> {
        self.0
            .registry
            .configured_servers()
            .iter()
            .map(|server| server.name().clone())
            .collect()
    }

    /// Returns `true` if [`Pegboard::server_names`] has this name. Much cheaper than a [status](Pegboard::status).
    pub fn has_server(&self, name: &str) -> bool {
        let servers = self.0.registry.configured_servers();
        servers.iter().any(|server| server.name().as_str() == name)
    }

    /// What receives the spans of calls, as [`Builder::telemetry`] set it.
    #[doc(hidden)]
    pub fn telemetry(&self) -> Option<&Arc<dyn Telemetry>> {
        self.0.views.telemetry.as_ref()
    }

    /// The views and the settings of the gateway in the config that was opened or applied last. Reading them takes no lock, and the snapshot
    /// does not change: [`Pegboard::apply`] publishes another one.
    #[doc(hidden)]
    pub fn gateway_settings(&self) -> Arc<GatewaySettings> {
        self.0.gateway.load()
    }

    /// Waits until the settings of the gateway are other ones than `known`, and returns them. Cancel-safe.
    #[doc(hidden)]
    pub async fn gateway_settings_after(&self, known: &Arc<GatewaySettings>) -> Arc<GatewaySettings> {
        self.0.gateway.wait_for_other(known).await
    }

    /// The view that the config has under this name, to open it with [`Pegboard::toolset_with`]; `None` if there is none. Toolsets that are
    /// open when the config changes keep the rules that they were opened with.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// use pegboard::{Config, Env, Format, Pegboard};
    ///
    /// let text = "[views.reading]\ntools = ['get_*', 'list_*']\n";
    /// let config = Config::from_text(text, Format::Toml, &Env::process()).config;
    /// let board = Pegboard::open(config);
    /// let tools = board.toolset_with(board.configured_view("reading").unwrap().principal("alice"));
    /// assert!(board.configured_view("writing").is_none());
    /// # }
    /// ```
    pub fn configured_view(&self, name: &str) -> Option<View> {
        self.0.gateway.find_view(name)
    }

    /// Adds secrets to mask in all messages of servers from now on. The secrets of the config are always masked.
    pub fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.0.factory.secrets.learn(secrets);
    }

    /// The tokens of callers for servers whose config exchanges them (RFC 8693). A gateway fills it.
    #[doc(hidden)]
    pub fn caller_tokens(&self) -> CallerTokens {
        self.0.factory.caller_tokens.clone()
    }

    /// Subscribes to the events of the board: every call of every view, and every change of a server's state. Without subscribers nothing is
    /// recorded.
    pub fn events(&self) -> Events {
        self.0.registry.events().subscribe()
    }

    /// The counters and histograms of the board since it was opened. Reading them blocks no call.
    pub fn metrics(&self) -> Metrics {
        let registry = &self.0.registry;
        let buffered = u64::try_from(self.0.factory.budget.used_bytes()).unwrap_or(u64::MAX);
        let mut metrics = registry.tallies().read(registry.events().lost_count(), buffered);
        metrics.load = self.0.factory.load(&registry.all_servers());
        metrics.audit = self.0.views.audit.as_ref().map(AuditLog::counts);
        metrics
    }

    /// The last calls of every view with their arguments and results, for a page that shows them. Nothing is kept until it is told to record.
    #[doc(hidden)]
    pub fn recent_calls(&self) -> RecentCalls {
        self.0.registry.tallies().recent_calls.clone()
    }

    /// The calls that wait for a person, whom the approver asks. One who watches the board may answer first.
    #[doc(hidden)]
    pub fn waiting_approvals(&self) -> WaitingApprovals {
        self.0.registry.tallies().waiting_approvals.clone()
    }

    /// The last changes of servers, the newest last: their states, catalogues and flagged definitions.
    #[doc(hidden)]
    pub fn recent_changes(&self) -> Vec<Event> {
        self.0.registry.events().recent_server_changes()
    }

    /// Notices changes of servers from now on. Unlike [`Pegboard::events`] it costs calls nothing.
    #[doc(hidden)]
    pub fn server_changes(&self) -> watch::Receiver<()> {
        self.0.registry.events().server_changes()
    }

    /// Whether a large message of a server waits for room among the messages that are buffered (`max_buffered`), so that nothing is read from
    /// that server, or results that were [handed over](Self::hand_over) have taken all of their room. Whoever keeps results for clients that do
    /// not read them should drop those then.
    #[doc(hidden)]
    pub fn is_short_of_buffers(&self) -> bool {
        let budget = &self.0.factory.budget;
        budget.is_short() || budget.is_full_of_results()
    }

    /// Notes that a client takes over a [forwarded result](crate::forward::ForwardedResult::into_bytes), however long it takes to read it: the
    /// result no longer takes the room that its server has for messages. Such results may have half of `max_buffered` together; one more keeps
    /// the room of its server.
    #[doc(hidden)]
    pub fn hand_over(&self, result: &[u8]) {
        self.0.factory.budget.hand_over(result);
    }

    /// The changes of a server's catalog since the board was opened, the newest last. For a session-scoped server, the changes that each
    /// open view has seen.
    pub fn changes(&self, name: impl AsRef<str>) -> Vec<CatalogChange> {
        let Ok(name) = ServerName::parse(name.as_ref()) else {
            return Vec::new();
        };
        let name = &name;
        let instances = self.0.registry.instances(name);
        let mut changes: Vec<_> = instances.iter().flat_map(|server| server.listing().changes()).collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// The definitions of all servers that are not as they were pinned, or look like attacks. It covers the servers that were listed so far;
    /// call [`Pegboard::settle`] first to list all.
    pub fn pin_changes(&self) -> Vec<PinChange> {
        let servers = self.0.registry.all_servers();
        let mut changes: Vec<PinChange> = servers
            .iter()
            .flat_map(|server| server.listing().pin_changes())
            .collect();
        // Instances of several views may list the same definition.
        changes.sort_by(|a, b| (&a.server, &a.tool, a.hash).cmp(&(&b.server, &b.tool, b.hash)));
        changes.dedup_by(|a, b| (&a.server, &a.tool, a.hash) == (&b.server, &b.tool, b.hash));
        changes
    }

    /// Pins definitions of [`Pegboard::pin_changes`] as they were returned, so that they are no longer held or reported. A definition that has
    /// changed once more since is not accepted by that. Returns how many were pinned.
    pub fn accept_pins(&self, changes: &[PinChange]) -> Result<usize, PinError> {
        let servers = self.0.registry.all_servers();
        for server in &servers {
            let of_server: Vec<&PinChange> = changes
                .iter()
                .filter(|change| change.server == *server.name())
                .collect();
            if !of_server.is_empty() {
                server.listing().accept_pins(&of_server)?;
            }
        }
        let is_known = |change: &&PinChange| servers.iter().any(|server| change.server == *server.name());
        Ok(changes.iter().filter(is_known).count())
    }

    /// Accepts no more calls and waits until all calls in flight on any server of any view have completed, at most for `patience`. Returns
    /// whether all have.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.0.registry.close();
        let deadline = Deadline::within(patience);
        loop {
            let requests: usize = self.0.registry.all_servers().iter().map(Server::count_calls).sum();
            // `busy` does not count calls that wait for approval, because they use no server yet.
            let is_idle = requests == 0 && self.0.registry.tallies().in_flight() == 0;
            if is_idle || deadline.has_passed() {
                return is_idle;
            }
            tokio::time::sleep(DRAIN_POLL.min(deadline.remaining())).await;
        }
    }

    /// Records that a change begins if the audit log is `required`, and fails if the log cannot be written: then the change should not be made.
    /// Does nothing without a required log.
    #[doc(hidden)]
    pub async fn begin_change(&self, change: &AdminChange) -> Result<(), Failure> {
        match &self.0.views.audit {
            Some(log) => log.begin(|| AuditEntry::change(change.clone())).await,
            None => Ok(()),
        }
    }

    /// Records a change that a person or a program has asked for in the audit log, if the board has one. It does not wait for the disk.
    #[doc(hidden)]
    pub fn record_change(&self, change: AdminChange) {
        if let Some(log) = &self.0.views.audit {
            log.record(AuditEntry::change(change));
        }
    }

    /// Ends all servers, including those of views, and waits until their processes have exited. Calls in flight fail as lost; call
    /// [`Pegboard::drain`] first to let them complete. The servers' limits bound every wait.
    pub async fn shutdown(&self) {
        self.0.registry.close();
        self.0.registry.close_servers().await;
        self.0.views.memories.clear();
        self.0.factory.shared.link_context.closing.wait().await;
        #[cfg(feature = "oauth")]
        self.0.factory.sign_ins.close().await;
        if let Some(log) = &self.0.views.audit {
            log.flush().await;
        }
    }

    fn report(&self) -> BoardReport<'_> {
        BoardReport::new(&self.0.registry, &self.0.factory, &self.0.views)
    }

    fn changes_of_servers(&self) -> ServerChanges<'_> {
        ServerChanges::new(&self.0.registry, &self.0.factory)
    }
}

#[cfg(test)]
mod ended_runtime_tests;
#[cfg(test)]
mod panicking_callback_tests;
#[cfg(test)]
mod principal_tests;
#[cfg(test)]
mod restart_tests;
