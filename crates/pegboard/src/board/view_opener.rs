//! [`ViewOpener`]: opens a view with its name, its own servers and its own tools.

use std::sync::Arc;

use super::{approval_defaults::ApprovalDefaults, in_process_settings, server_factory::ServerFactory};
use crate::{
    audit::AuditLog,
    call::{CallMemories, Embeddings, Journal, MemoryOwner, UsageByPrincipal, View},
    server::{Registry, Server, ViewIdentity, ViewServers},
    toolset::{SharedSnapshots, Toolset},
};
use pegboard_base::{
    name::{NameStyle, ServerName},
    sync::Mutex,
    telemetry::Telemetry,
};
use pegboard_client::{credential::ViewCredentials, native::NativeTools, transport::Target};
use pegboard_config::{SESSION_ID, Scope, Start};
use pegboard_tools::{
    args::CompiledSchemas,
    catalog::{Catalog, HeaderRule},
};

/// The server name for a view's own tools. It gets a number if a server of the board has this name.
const HOME: &str = "request";

/// What all views of a board share, and the defaults of views that set none. Opens views.
#[derive(Debug)]
pub(super) struct ViewOpener {
    pub(super) approval_defaults: ApprovalDefaults,
    /// Embeds tools for semantic search in views without an embedder.
    pub(super) embeddings: Option<Arc<Embeddings>>,
    pub(super) audit: Option<AuditLog>,
    /// Notes the calls in flight.
    pub(super) journal: Journal,
    /// Receives the spans of calls.
    pub(super) telemetry: Option<Arc<dyn Telemetry>>,
    /// The route tables that toolsets share.
    pub(super) snapshots: Arc<SharedSnapshots>,
    /// The compiled schemas of tools.
    pub(super) compiled_schemas: Arc<CompiledSchemas>,
    /// What the principals use of their limits.
    pub(super) usage: UsageByPrincipal,
    /// What the toolsets of each principal remember of their calls.
    pub(super) memories: CallMemories,
    /// The naming of tools in views that set none.
    pub(super) naming: Mutex<NameStyle>,
}

impl ViewOpener {
    /// Sets the naming of tools in views that are opened from now on and set none.
    pub(super) fn set_naming(&self, naming: NameStyle) {
        *self.naming.lock() = naming;
    }

    /// Opens a view on the servers of a board.
    pub(super) fn open(&self, registry: &Arc<Registry>, factory: &ServerFactory, mut view: View) -> Toolset {
        let approval_defaults = &self.approval_defaults;
        view.rules
            .reset(approval_defaults.approver.as_ref(), &approval_defaults.approvals);
        view.audit.clone_from(&self.audit);
        view.journal.clone_from(&self.journal);
        view.telemetry.clone_from(&self.telemetry);
        view.usage = self.usage.get_or_insert(view.principal.as_ref());
        let tallies = registry.tallies();
        view.principal_counts = view.principal.as_ref().and_then(|name| tallies.principal(name));
        view.label_counts = view.label.as_ref().and_then(|label| tallies.labelled_view(label));
        view.compiled_schemas.clone_from(&self.compiled_schemas);
        view.embeddings = view.embeddings.or_else(|| self.embeddings.clone());
        let brought = view.tools.clone().map(|tools| make_home(registry, factory, tools));
        view.home = brought.as_ref().map(|server| server.name().clone());
        // The toolset does not hold them, so that those of a view that was dropped can end.
        let credentials = view.credentials.take();
        let identity = ViewIdentity {
            principal: view.principal.clone(),
            rights: view.caller_rights,
            credentials_key: credentials.as_ref().map(ViewCredentials::key),
            credentials: credentials.map(|credentials| credentials.provider),
            variables: view.variables.clone(),
            host: view.host.clone(),
            catalog_only: view.is_catalog_only(),
            shown: view.rules.shown_servers(),
        };
        view.memory = view.principal.clone().map(|principal| {
            let mut variables = identity.variables.clone();
            // It tells sessions apart, not what servers do.
            variables.remove(SESSION_ID);
            self.memories.open(MemoryOwner {
                principal,
                rights: identity.rights,
                credentials: identity.credentials_key.clone(),
                variables,
                limits: view.result_options.spill_limits().clone(),
            })
        });
        view.result_options.always_readable |= registry
            .configured_servers()
            .iter()
            .any(|server| may_spill(&view, server));
        let own = ViewServers::open(registry, view.name.clone(), &identity, view.own_roots(), brought);
        let naming = self.naming.lock().clone();
        Toolset::new(own, view.with_default_naming(&naming), self.snapshots.clone())
    }
}

/// Creates the in-process server for a view's own tools. Its catalog is known before it is started.
fn make_home(registry: &Registry, factory: &ServerFactory, tools: NativeTools) -> Server {
    let servers = registry.configured_servers();
    let name = ServerName::choose_free(HOME, |name| is_any(&servers, name));
    let mut settings = in_process_settings::default_settings(&tools);
    settings.start = Start::Lazy;
    settings.policy.scope = Scope::Session;
    // A view's own tools are listed even if the tool budget hides the others.
    settings.policy.always_load = vec!["*".to_owned()];
    let mut catalog = Catalog::default();
    catalog.read_tools(&name, tools.items(), HeaderRule::Ignored);
    let server = factory.make(name, Target::InProcess(Arc::new(tools)), settings, 0);
    server.listing().preset(catalog);
    server
}

/// Whether the settings of a server let a view spill its results, as far as the view shows the server.
fn may_spill(view: &View, server: &Server) -> bool {
    let (rules, name) = (&view.rules, server.name().as_str());
    view.result_options.may_spill(&server.config_snapshot().policy) && rules.shows_server(name)
}

/// Whether a server has this name, ignoring ASCII case.
fn is_any(servers: &[Server], name: &str) -> bool {
    let mut names = servers.iter().map(|server| server.name().as_str());
    names.any(|taken| taken.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{board::Pegboard, call::ToolCall};
    use pegboard_client::native::NativeTool;
    use pegboard_config::{Config, ServerConfig};
    use pegboard_tools::outcome::{Answer, Kind};

    fn board() -> Pegboard {
        let hello = NativeTool::new("hello", "Says hello.", json!({"type": "object"}), |_| async {
            Ok(Answer::from_text("hi"))
        });
        let mut settings = ServerConfig::in_process();
        settings.policy.scope = Scope::Session;
        let name = ServerName::parse("fx").unwrap();
        Pegboard::builder(Config::default())
            .in_process_with(name, NativeTools::new([hello]), settings)
            .open()
    }

    async fn use_once(view: &Toolset) {
        let reply = view.call(ToolCall::new("fx.hello")).await;
        assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    }

    #[tokio::test(start_paused = true)]
    async fn two_thousand_users_that_come_and_go_leave_nothing_behind() {
        let board = board();
        for user in 0..2000 {
            let view = board.toolset_with(View::new().name(format!("user-{user}")));
            use_once(&view).await;
            match user % 2 {
                0 => view.close().await,
                _ => drop(view),
            }
        }
        let registry = &board.0.registry;
        assert_eq!(registry.open_views(), 0);
        board.0.factory.shared.link_context.closing.wait().await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        let rows: Vec<_> = board.status().servers;
        assert_eq!(rows.len(), 1, "the spare: {rows:?}");
        assert_eq!(board.0.factory.shared.link_context.closing.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_who_comes_does_not_make_the_tables_of_others_stale() {
        let board = board();
        let first = board.toolset();
        use_once(&first).await;
        let before = first.revision();
        for _ in 0..10 {
            let view = board.toolset();
            use_once(&view).await;
            view.close().await;
        }
        assert_eq!(first.revision(), before);
    }
}
