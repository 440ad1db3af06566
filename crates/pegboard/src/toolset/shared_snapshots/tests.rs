use std::{sync::Barrier, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    board::Pegboard,
    call::{RouteTable, ToolCall},
    toolset::Toolset,
};
use pegboard_base::name::{NameRules, NameStyle, ServerName};
use pegboard_client::native::{NativeTool, NativeTools};
use pegboard_config::{Config, Scope, ServerConfig};
use pegboard_tools::{
    filter::Selection,
    grant::Grants,
    outcome::{Answer, Kind},
};

const PATIENCE: Duration = Duration::from_secs(10);

fn name(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

fn tools(names: &[&str]) -> NativeTools {
    let tool = |name: &&str| {
        NativeTool::new(*name, "Says hello.", json!({"type": "object"}), |_| async {
            Ok(Answer::from_text("hi"))
        })
    };
    NativeTools::new(names.iter().map(tool))
}

/// A board with two servers that all views share.
async fn board() -> Pegboard {
    let board = Pegboard::builder(Config::default())
        .in_process(name("one"), tools(&["read", "write"]))
        .in_process(name("two"), tools(&["list"]))
        .open();
    board.settle(PATIENCE).await;
    board
}

fn shares(one: &Toolset, other: &Toolset) -> bool {
    Arc::ptr_eq(&one.table(), &other.table())
}

fn listed(tools: &Toolset) -> Vec<String> {
    tools.table().routes().iter().map(|route| route.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn equal_views_share_one_table_and_any_difference_that_matters_separates_them() {
    let board = board().await;
    type Make = fn() -> View;
    let views: [(&str, Make); 13] = [
        ("plain", View::new),
        ("naming", || View::new().naming(NameStyle::McpDunder)),
        ("name rules", || View::new().name_rules(NameRules::STRICT)),
        ("provider", || View::new().provider(Provider::Anthropic)),
        ("schema budget", || {
            View::new().provider(Provider::Anthropic).schema_budget(500)
        }),
        ("resource tools", || View::new().resource_tools()),
        ("audience", || View::new().for_client()),
        ("allow", || View::new().allow(["one.*"])),
        ("deny", || View::new().deny(["one.*"])),
        ("selection", || View::new().selection(Selection::new().server("one"))),
        ("other selection", || {
            View::new().selection(Selection::new().tools("one", ["read"]))
        }),
        ("grants", || View::new().grants(Grants::from_words(["mcp_one"]))),
        ("other grants", || View::new().grants(Grants::from_words(["mcp_two"]))),
    ];
    let opened: Vec<_> = views.iter().map(|(_, view)| board.toolset_with(view())).collect();
    opened.iter().for_each(|toolset| drop(toolset.table()));
    for (at, (what, view)) in views.iter().enumerate() {
        for (other, toolset) in opened.iter().enumerate() {
            let is_same = shares(&board.toolset_with(view()), toolset);
            assert_eq!(is_same, at == other, "`{what}` against `{}`", views[other].0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_change_the_tools_is_no_reason_for_another_table() {
    let board = board().await;
    let plain = board.toolset();
    for (what, view) in [
        ("name", View::new().name("request-7")),
        ("tool budget", View::new().tool_budget(100)),
        ("check", View::new().check(|_| Ok(()))),
        ("rate", View::new().writes_in_turn()),
    ] {
        assert!(shares(&plain, &board.toolset_with(view)), "{what}");
    }
    let of_call = Arc::new(Selection::new().server("one"));
    let selected = board.toolset_with(View::new().selection(Selection::new().server("one")));
    let of_call = plain.open_view().with_selection(of_call);
    assert!(Arc::ptr_eq(&of_call.table(), &selected.table()));
}

#[tokio::test(start_paused = true)]
async fn every_view_sees_a_server_that_is_disabled_enabled_or_removed() {
    let board = board().await;
    let kept = board.toolset();
    assert_eq!(listed(&kept).len(), 3);
    board.disable(&name("two")).await;
    let fresh = board.toolset();
    assert_eq!(listed(&kept), ["one__read", "one__write"]);
    assert!(shares(&kept, &fresh));
    board.enable(&name("two")).await;
    board.settle(PATIENCE).await;
    assert_eq!((listed(&kept).len(), listed(&board.toolset()).len()), (3, 3));
    assert!(board.disconnect(&name("one")).await);
    assert_eq!(listed(&kept), ["two__list"]);
    assert_eq!(listed(&fresh), ["two__list"]);
    assert!(shares(&kept, &board.toolset()));
}

#[tokio::test(start_paused = true)]
async fn a_view_that_owns_a_server_shares_nothing_and_is_not_kept() {
    let mut per_view = ServerConfig::in_process();
    per_view.policy.scope = Scope::Session;
    let board = Pegboard::builder(Config::default())
        .in_process(name("one"), tools(&["read"]))
        .in_process_with(name("own"), tools(&["write"]), per_view)
        .open();
    let (first, second) = (board.toolset(), board.toolset());
    for view in [&first, &second] {
        let reply = view.call(ToolCall::new("own.write")).await;
        assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    }
    assert!(!shares(&first, &second));
    let server = |view: &Toolset| view.table().routes()[1].server.number();
    assert_ne!(server(&first), server(&second));
    assert!(first.open.snapshots.entries.load().is_empty());

    let table = Arc::downgrade(&first.table());
    first.close().await;
    drop(first);
    assert!(table.upgrade().is_none(), "the table of a closed view is kept");
}

#[tokio::test(start_paused = true)]
async fn a_view_with_tools_of_its_own_shares_nothing_and_is_not_kept() {
    let board = board().await;
    let plain = board.toolset();
    let view = || View::new().tools(tools(&["basket"]));
    let (first, second) = (board.toolset_with(view()), board.toolset_with(view()));
    assert!(!shares(&first, &second) && !shares(&first, &plain));
    assert_eq!((listed(&first).len(), listed(&plain).len()), (4, 3));
    let table = Arc::downgrade(&first.table());
    drop(first);
    assert!(table.upgrade().is_none(), "the table of a dropped view is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn toolsets_that_are_opened_at_once_build_one_table() {
    const AT_ONCE: usize = 64;
    let board = board().await;
    let barrier = Barrier::new(AT_ONCE);
    let tables: Vec<_> = std::thread::scope(|scope| {
        let open = || {
            let toolset = board.toolset_with(View::new().provider(Provider::OpenAi));
            barrier.wait();
            toolset.table()
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])));
    assert_eq!(board.toolset().open.snapshots.entries.load().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_board_keeps_the_snapshots_that_were_used_last() {
    let board = board().await;
    let plain = board.toolset();
    let first = plain.table();
    for user in 0..3 * MAX_SNAPSHOTS {
        drop(board.toolset_with(View::new().deny([format!("user-{user}")])).table());
        assert!(Arc::ptr_eq(&first, &board.toolset().table()), "it is in use");
    }
    assert_eq!(plain.open.snapshots.entries.load().len(), MAX_SNAPSHOTS);
}

#[tokio::test(start_paused = true)]
async fn definitions_outlive_a_revision_and_the_table_of_an_older_one_does_not() {
    let board = board().await;
    let view = || View::new().provider(Provider::OpenAi);
    let before = board.toolset_with(view()).table();
    board.disable(&name("two")).await;
    let after = board.toolset_with(view()).table();
    let definition = |table: &RouteTable| table.routes()[0].definition.clone().unwrap();
    assert!(Arc::ptr_eq(&definition(&before), &definition(&after)));
    // A view with its own tools takes them over too.
    let own = board.toolset_with(view().tools(tools(&["basket"])));
    let own = own.table();
    let read = own.routes().iter().find(|route| route.tool.name == "read").unwrap();
    assert!(Arc::ptr_eq(read.definition.as_ref().unwrap(), &definition(&after)));
    let old = Arc::downgrade(&before);
    drop((before, own));
    assert!(old.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn views_with_servers_of_their_own_share_the_definitions_of_equal_tools() {
    let mut per_view = ServerConfig::in_process();
    per_view.policy.scope = Scope::Session;
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("own"), tools(&["write"]), per_view)
        .open();
    let mut tables = Vec::new();
    for _ in 0..2 {
        let view = board.toolset_with(View::new().provider(Provider::OpenAi));
        let reply = view.call(ToolCall::new("own.write")).await;
        assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
        tables.push(view.table());
    }
    let route = |at: usize| &tables[at].routes()[0];
    assert_ne!(route(0).server.number(), route(1).server.number());
    let definition = |at: usize| route(at).definition.as_ref().unwrap();
    assert!(Arc::ptr_eq(definition(0), definition(1)));
}

#[tokio::test(start_paused = true)]
async fn each_view_of_a_shared_snapshot_knows_its_reader() {
    let board = board().await;
    for _ in 0..2 {
        let toolset = board.toolset_with(View::new().naming(NameStyle::Dot));
        drop(toolset.table());
        assert_eq!(
            &*toolset.open_view().view.result_options.reader(),
            "pegboard.read_output"
        );
    }
}
