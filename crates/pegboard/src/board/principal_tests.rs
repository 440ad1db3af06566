//! Views with principals: what they share, how long their servers live, and what is left of them.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
};

use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::json;

use super::*;
use crate::status::State;
use crate::{
    call::{ToolCall, View},
    toolset::Toolset,
};
use pegboard_base::{caller::Principal, secret::SafeUrl};
use pegboard_client::{
    credential::{Credential, CredentialError, CredentialRequest, Credentials},
    transport::{ByteSink, ByteSource, Dialer},
};
use pegboard_config::{Command, Config, Endpoint, Scope, ServerConfig, Transport};
use pegboard_tools::outcome::Kind;

/// Longer than the servers of a principal are kept.
const LATER: Duration = Duration::from_secs(120);

fn remote() -> ServerConfig {
    let url = SafeUrl::parse("http://127.0.0.1:9/mcp").unwrap();
    ServerConfig::new(Transport::http(Endpoint::from(url)))
}

fn process() -> ServerConfig {
    ServerConfig::new(Transport::Stdio(Command::new("server")))
}

fn config(server: ServerConfig) -> Config {
    let mut config = Config::default();
    config.servers.insert(fx(), server);
    config
}

fn fx() -> ServerName {
    ServerName::parse("fx").unwrap()
}

/// A board with one server, `fx`, in memory. Each connection to it counts as a start.
fn board(mut server: ServerConfig) -> (Pegboard, MemoryHandle) {
    server.start = pegboard_config::Start::Lazy;
    let (_unused, handle) = FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .connect();
    let dialled = handle.clone();
    let board = Pegboard::builder(config(server))
        .stand_ins(move |_, _| dialer(&dialled))
        .without_jitter()
        .open();
    (board, handle)
}

fn dialer(handle: &MemoryHandle) -> Arc<dyn Dialer> {
    let handle = handle.clone();
    Arc::new(move || {
        let (read, write) = tokio::io::split(handle.connect());
        (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
    })
}

/// How many connections the board has opened. The fixture opens one.
fn connections(handle: &MemoryHandle) -> u32 {
    handle.starts() - 1
}

async fn hello(tools: &Toolset) {
    let reply = tools.call(ToolCall::new("fx.hello")).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
}

fn view_of(principal: &str) -> View {
    View::new().principal(principal)
}

/// A provider that covers everything, if it is told to cover processes.
#[derive(Clone, Default)]
struct Tokens {
    covers_processes: Arc<AtomicBool>,
}

impl Tokens {
    fn for_processes() -> Self {
        let tokens = Self::default();
        tokens.covers_processes.store(true, Ordering::Relaxed);
        tokens
    }
}

impl Credentials for Tokens {
    fn covers(&self, _: &ServerName, is_process: bool) -> bool {
        !is_process || self.covers_processes.load(Ordering::Relaxed)
    }

    fn identity(&self) -> Option<String> {
        Some("all that a principal may do".to_owned())
    }

    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async { Ok(Credential::none()) })
    }
}

#[tokio::test(start_paused = true)]
async fn only_views_of_the_same_principal_share_a_connection() {
    let (board, handle) = board(remote());
    let (anonymous, other) = (board.toolset(), board.toolset());
    hello(&anonymous).await;
    hello(&other).await;
    assert_eq!(connections(&handle), 1);
    let views = ["alice", "alice", "bob"].map(|name| board.toolset_with(view_of(name)));
    for view in &views {
        hello(view).await;
    }
    assert_eq!(connections(&handle), 3);
    board.shutdown().await;
}

/// A provider that does not say what its credentials allow.
struct Unnamed;

impl Credentials for Unnamed {
    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async { Ok(Credential::none()) })
    }
}

/// A provider whose name for its credentials cannot be found out.
struct Panicking;

impl Credentials for Panicking {
    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async { Ok(Credential::none()) })
    }

    fn identity(&self) -> Option<String> {
        panic!("no name")
    }
}

#[tokio::test(start_paused = true)]
async fn views_of_a_principal_share_connections_only_if_their_credentials_are_the_same() {
    let (board, handle) = board(remote());
    let (unnamed, one) = (view_of("alice").credentials(Unnamed), Arc::new(Unnamed));
    let views = [
        (view_of("alice"), 1),
        (view_of("alice"), 1),
        (unnamed.clone(), 2),
        (unnamed.clone(), 2),
        (view_of("alice").credentials(Unnamed), 3),
        (view_of("alice").credentials(one.clone()), 4),
        (view_of("alice").credentials(one.clone()), 4),
        (view_of("alice").credentials(Arc::new(Unnamed)), 5),
        (view_of("alice").credentials(Tokens::default()), 6),
        (view_of("alice").credentials(Tokens::default()), 6),
        (view_of("alice").credentials(Arc::new(Tokens::default())), 6),
        (view_of("alice").credentials(Panicking), 7),
        (view_of("alice").credentials(Panicking), 8),
        (view_of("bob").credentials(one), 9),
        (unnamed.principal("bob"), 10),
    ];
    let mut open = Vec::new();
    for (view, expected) in views {
        let tools = board.toolset_with(view);
        hello(&tools).await;
        assert_eq!(connections(&handle), expected);
        open.push(tools);
    }
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn servers_whose_credentials_no_view_can_have_again_end_with_their_last_view() {
    let (board, handle) = board(remote());
    let view = view_of("alice").credentials(Unnamed);
    let tools = [board.toolset_with(view.clone()), board.toolset_with(view.clone())];
    hello(&tools[0]).await;
    drop(tools);
    assert_eq!(board.0.registry.known_principals(), 1, "the view may be opened again");
    hello(&board.toolset_with(view)).await;
    assert_eq!(connections(&handle), 1);
    assert_eq!(board.0.registry.known_principals(), 0);
    board.0.factory.shared.link_context.closing.wait().await;
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn opening_a_view_of_a_principal_starts_nothing() {
    let mut server = remote();
    server.start = pegboard_config::Start::Eager;
    let (board, handle) = board(server);
    let _views = ["alice", "bob"].map(|name| board.toolset_with(view_of(name).credentials(Tokens::default())));
    tokio::time::sleep(LATER).await;
    assert_eq!(connections(&handle), 0);
    board.settle(Duration::from_secs(10)).await;
    assert_eq!(connections(&handle), 1, "the board's own");
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_view_with_credentials_and_without_a_principal_shares_with_no_other() {
    let (board, handle) = board(remote());
    let view = View::new().credentials(Tokens::default());
    let views = [0; 3].map(|_| board.toolset_with(view.clone()));
    for view in &views {
        hello(view).await;
    }
    assert_eq!(connections(&handle), 3);
    let rows = board.status().servers;
    let owners: Vec<_> = rows.iter().filter_map(|row| row.view.as_deref()).collect();
    assert_eq!(owners, ["view-1", "view-2", "view-3"]);
    drop(views);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_is_shared_unless_credentials_go_into_it() {
    let (board, handle) = board(process());
    hello(&board.toolset()).await;
    for name in ["alice", "bob"] {
        hello(&board.toolset_with(view_of(name))).await;
        hello(&board.toolset_with(view_of(name).credentials(Tokens::default()))).await;
    }
    assert_eq!(connections(&handle), 1, "no credentials for processes");
    for name in ["alice", "bob", "alice", "bob"] {
        hello(&board.toolset_with(view_of(name).credentials(Tokens::for_processes()))).await;
    }
    assert_eq!(connections(&handle), 3, "one process for each principal");
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn session_scoped_servers_stay_per_view() {
    let mut server = remote();
    server.policy.scope = Scope::Session;
    let (board, handle) = board(server);
    for _ in 0..2 {
        hello(&board.toolset_with(view_of("alice"))).await;
    }
    assert_eq!(connections(&handle), 2);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_view_per_request_keeps_the_connection_of_its_principal() {
    let (board, handle) = board(remote());
    for _ in 0..200 {
        let view = board.toolset_with(view_of("alice").credentials(Tokens::default()));
        hello(&view).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert_eq!(connections(&handle), 1);
    tokio::time::sleep(LATER).await;
    assert_eq!(board.0.registry.known_principals(), 0);
    hello(&board.toolset_with(view_of("alice"))).await;
    assert_eq!(connections(&handle), 2);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_principals_that_come_and_go_leave_nothing_behind() {
    let (board, handle) = board(remote());
    for user in 0..10_000_u32 {
        let view = board.toolset_with(view_of(&format!("user-{user}")));
        // A view that is only opened costs no connection.
        if user % 20 == 0 {
            hello(&view).await;
        }
        match user % 2 {
            0 => view.close().await,
            _ => drop(view),
        }
        assert!(board.0.registry.known_principals() <= 257);
    }
    assert_eq!(connections(&handle), 500);
    tokio::time::sleep(LATER).await;
    let registry = &board.0.registry;
    assert_eq!((registry.open_views(), registry.known_principals()), (0, 0));
    board.0.factory.shared.link_context.closing.wait().await;
    assert_eq!(board.0.factory.shared.link_context.closing.count(), 0);
    assert_eq!(board.status().servers.len(), 1, "the board's own");
    assert_eq!(board.metrics().views_open, 0);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_principal_who_comes_does_not_make_the_tables_of_others_stale() {
    let (board, _handle) = board(remote());
    let (first, anonymous) = (board.toolset_with(view_of("alice")), board.toolset());
    hello(&first).await;
    hello(&anonymous).await;
    let before = (first.revision(), anonymous.revision());
    for user in 0..10 {
        hello(&board.toolset_with(view_of(&format!("user-{user}")))).await;
    }
    hello(&board.toolset_with(view_of("alice"))).await;
    assert_eq!((first.revision(), anonymous.revision()), before);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn status_and_events_name_the_principal() {
    let (board, _handle) = board(remote());
    let mut events = board.events();
    let view = board.toolset_with(view_of("alice").name("request-1"));
    assert_eq!(board.status().servers.len(), 1, "an unused server has no row");
    hello(&view).await;
    let rows = serde_json::to_value(board.status().servers).unwrap();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["state"] == "ready")
        .unwrap();
    assert_eq!((&row["principal"], row.get("view")), (&json!("alice"), None));
    assert!(rows[0].get("principal").is_none());
    let mut ready = None;
    while ready.is_none() {
        if let Event::ServerChanged {
            state: State::Ready,
            principal,
            view,
            ..
        } = events.next().await.unwrap()
        {
            ready = Some((principal, view))
        }
    }
    assert_eq!(ready, Some((Some(Principal::new("alice")), None)));
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_config_reaches_the_servers_of_principals() {
    let (board, handle) = board(remote());
    let view = board.toolset_with(view_of("alice"));
    hello(&view).await;
    let mut changed = remote();
    changed.start = pegboard_config::Start::Lazy;
    changed.limits.max_message += 1;
    board.apply(config(changed)).await;
    hello(&view).await;
    assert_eq!(connections(&handle), 2);
    assert!(board.reconnect(&fx()).await);
    hello(&view).await;
    assert!(connections(&handle) >= 3, "the restart reached the principal");
    assert!(board.disable(&fx()).await);
    let reply = view.call(ToolCall::new("fx.hello")).await;
    assert_ne!(reply.outcome.kind(), Kind::Ok);
    let late = board.toolset_with(view_of("bob"));
    assert_ne!(late.call(ToolCall::new("fx.hello")).await.outcome.kind(), Kind::Ok);
    assert!(board.enable(&fx()).await);
    hello(&view).await;
    hello(&late).await;
    assert!(board.disconnect(&fx()).await);
    assert_ne!(view.call(ToolCall::new("fx.hello")).await.outcome.kind(), Kind::Ok);
    board.apply(config(remote())).await;
    hello(&view).await;
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_waits_for_the_catalog_of_its_own_principal() {
    let (_unused, handle) = FakeServer::new("fx").tool(Tool::new("of_the_first")).connect();
    let dialled = handle.clone();
    let mut server = remote();
    server.start = pegboard_config::Start::Lazy;
    let board = Pegboard::builder(config(server))
        .stand_ins(move |_, _| dialer(&dialled))
        .open();
    let names = async |view: View| {
        let tools = board.toolset_with(view);
        let listing = tools.list(Duration::from_secs(10)).await;
        assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
        listing.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(view_of("alice")).await, ["fx__of_the_first"]);
    handle.change(|script| script.tools = vec![Tool::new("of_the_second")]);
    assert_eq!(names(view_of("bob")).await, ["fx__of_the_second"]);
    assert_eq!(
        names(view_of("alice")).await,
        ["fx__of_the_first"],
        "no listing changed for alice"
    );
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_principal_with_refused_credentials_does_not_block_a_new_config() {
    let (board, handle) = board(remote());
    hello(&board.toolset()).await;
    let view = board.toolset_with(view_of("alice"));
    hello(&view).await;
    let before = connections(&handle);
    let mut changed = remote();
    changed.start = pegboard_config::Start::Lazy;
    changed.limits.max_message += 1;
    let applied = board.apply(config(changed)).await;
    assert_eq!((applied.replaced.len(), applied.errors.len()), (1, 0));
    assert_eq!(
        connections(&handle),
        before + 1,
        "only the board's own connection is opened in advance"
    );
    hello(&view).await;
    assert_eq!(connections(&handle), before + 2);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_views_of_a_principal_share_one_route_table() {
    let (board, _handle) = board(remote());
    let first = board.toolset_with(view_of("alice"));
    hello(&first).await;
    let second = board.toolset_with(view_of("alice"));
    assert!(first.has_table_of(&second));
    assert!(!first.has_table_of(&board.toolset_with(view_of("bob"))));
    assert!(!first.has_table_of(&board.toolset()));
    board.shutdown().await;
}

/// A provider that owns a view, for example to exchange tokens through a server.
struct OwnsView(#[expect(dead_code, reason = "its drop matters")] Toolset);

impl Credentials for OwnsView {
    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async { Ok(Credential::none()) })
    }
}

/// Dropping such a provider closes its view, which takes the lock of the registry.
#[tokio::test(start_paused = true)]
async fn providers_that_own_views_are_dropped_without_a_lock() {
    let (board, _handle) = board(remote());
    let view = |principal: &str| board.toolset_with(view_of(principal).credentials(OwnsView(board.toolset())));
    let views = [view("ann"), view("ann")];
    drop(views);
    for number in 0..300 {
        drop(view(&format!("user-{number}")));
    }
    tokio::time::sleep(LATER).await;
    assert_eq!(board.0.registry.known_principals(), 0);
    board.shutdown().await;
}
