//! Listings: complete or not at all, only of declared capabilities, and in a stable order.

use pegboard::{Kind, Listing};
use pegboard_testkit::{Bomb, Era, FakeServer, Fault, Rule, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

fn many(count: usize) -> FakeServer {
    FakeServer::new("fx").tools((0..count).map(|number| Tool::new(format!("tool_{number:03}"))))
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// Every page is fetched, in both eras.
#[tokio::test(start_paused = true)]
async fn a_listing_is_followed_to_its_last_page() {
    for era in [Era::Legacy, Era::Modern] {
        let (board, handle) = in_memory(&many(250).pages_of(7).era(era));
        let listing = board.toolset().list(PATIENCE).await;
        assert_eq!(listing.tools.len(), 250);
        assert_eq!(handle.count("tools/list"), 36);
        board.shutdown().await;
    }
}

/// Pages that are long enough to be parsed in parts give the same tools, in order.
#[tokio::test(start_paused = true)]
async fn long_pages_are_listed_in_order() {
    let (board, handle) = in_memory(&many(2_000).pages_of(900).fault(Fault::BrokenSchema));
    let listing = board.toolset().list(PATIENCE).await;
    let names = names(&listing);
    assert_eq!(names.len(), 2_000, "{:?}", listing.warnings);
    assert!(names.is_sorted());
    assert_eq!(listing.warnings.len(), 1, "{:?}", listing.warnings);
    assert_eq!(handle.count("tools/list"), 3);
    board.shutdown().await;
}

/// What a listing with too many pages has up to the limit is used, with a warning.
#[tokio::test(start_paused = true)]
async fn a_listing_with_too_many_pages_is_cut_with_a_warning() {
    let (board, handle) = in_memory(&many(10).pages_of(2).fault(Fault::EndlessPages));
    let tools = board.toolset();
    let listing = tools.list(secs(60)).await;
    assert_eq!(listing.tools.len(), 10 + 100, "{:?}", listing.unavailable);
    let said = [
        "the tools after the first 110 were left out",
        "the limit is 100 (`max_pages` of the server)",
    ];
    assert_contains(&listing.warnings.join("\n"), &said);
    assert_eq!(handle.count("tools/list"), 100);
    assert_eq!(call(&tools, "fx.tool_009", json!({})).await.outcome.kind(), Kind::Ok);
}

/// A listing that goes wrong fails within its limit, and no part of it is used.
#[tokio::test(start_paused = true)]
async fn a_listing_without_an_end_is_an_error_and_nothing_of_it_is_used() {
    for (fault, words, pages, within) in [
        (Fault::RepeatedCursor, "the same cursor twice", 2, 1),
        (Fault::HangingPage { page: 3 }, "no answer within 30 s", 3, 31),
    ] {
        let (board, handle) = in_memory(&many(10).pages_of(2).fault(fault));
        let tools = board.toolset();
        let started = Instant::now();
        let listing = tools.list(secs(60)).await;
        assert!(listing.tools.is_empty(), "{words}: {:?}", names(&listing));
        assert_contains(&listing.unavailable[0].error, &[words]);
        assert!(started.elapsed() <= secs(within), "{words}: {:?}", started.elapsed());
        // The server is restarted in the background, so there may be more than one listing by now, but none ended early.
        assert!(handle.count("tools/list") >= pages, "{words}");
        board.shutdown().await;
    }
}

/// A complete listing with too many tools is truncated, with a warning.
#[tokio::test(start_paused = true)]
async fn a_listing_with_too_many_tools_is_cut_with_a_warning() {
    let (board, _handle) = in_memory(&many(1).fault(Fault::ManyTools { count: 3_000 }));
    let listing = board.toolset().list(PATIENCE).await;
    assert_eq!(listing.tools.len(), 2_048);
    assert_contains(&listing.warnings.join("\n"), &["953 of 3001 tools were left out"]);
}

/// An unusable tool is dropped with a warning; the other tools stay.
#[tokio::test(start_paused = true)]
async fn a_bad_tool_is_left_out_and_the_others_stay() {
    let bomb = |kind| Fault::SchemaBomb { kind };
    for (fault, costs) in [
        (Fault::DuplicateTools, true),
        (Fault::LongToolName { length: 300 }, true),
        (Fault::NoInputSchema, false),
        (Fault::BrokenSchema, true),
        (bomb(Bomb::Depth), true),
        (bomb(Bomb::HugeEnum), true),
        (bomb(Bomb::RefCycle), false),
        (bomb(Bomb::RemoteRef), false),
        (bomb(Bomb::Pattern), false),
    ] {
        let described = format!("{fault:?}");
        let (board, _handle) = in_memory(&many(3).fault(fault));
        let tools = board.toolset();
        let listing = tools.list(PATIENCE).await;
        let names = names(&listing);
        for wanted in ["fx__tool_000", "fx__tool_001", "fx__tool_002"] {
            assert!(names.contains(&wanted), "{described}: {names:?}");
        }
        if costs {
            assert_eq!(names.len(), 3, "{described}: {names:?}");
            assert!(!listing.warnings.is_empty(), "{described}");
        }
        assert_eq!(call(&tools, "fx.tool_001", json!({})).await.text(), "ok", "{described}");
        board.shutdown().await;
    }
}

/// An unusable output schema is dropped with a warning. The tool is called without it.
#[tokio::test(start_paused = true)]
async fn a_tool_whose_output_schema_is_too_large_is_kept_without_it() {
    let schema = json!({"type": "object", "required": ["n"], "description": "x".repeat(70_000)});
    let tool = Tool::new("count").output_schema(schema).answers_text("done");
    let (board, _handle) = in_memory(&FakeServer::new("fx").tool(tool));
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert_eq!(names(&listing), ["fx__count"]);
    assert_contains(
        &listing.warnings.join("\n"),
        &["the outputSchema of tool `count` was left out", "65536 are allowed"],
    );
    assert_eq!(call(&tools, "fx.count", json!({})).await.text(), "done");
}

/// Undeclared capabilities are not listed.
#[tokio::test(start_paused = true)]
async fn only_what_is_offered_is_listed() {
    for (capabilities, expected) in [
        (json!({}), [0, 0, 0]),
        (json!({"tools": {}}), [1, 0, 0]),
        (json!({"tools": null, "logging": {}}), [0, 0, 0]),
        (json!({"prompts": {}, "resources": {}}), [0, 1, 1]),
    ] {
        for era in [Era::Legacy, Era::Modern] {
            let fake = many(1)
                .prompt("p", "x")
                .resource("file:///r", "y")
                .capabilities(capabilities.clone())
                .era(era);
            let (board, handle) = in_memory(&fake);
            board.settle(PATIENCE).await;
            let asked = ["tools/list", "prompts/list", "resources/list"].map(|method| handle.count(method));
            assert_eq!(asked, expected, "{capabilities} in {era:?}");
            assert_eq!(board.status().servers[0].state, pegboard::State::Ready);
            board.shutdown().await;
        }
    }
}

/// Tools are sorted by name, and the whole list is byte-identical after every start.
#[tokio::test(start_paused = true)]
async fn the_list_is_the_same_byte_for_byte_after_a_restart() {
    let (a, b) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 1}));
    let schema = json!({"type": "object", "required": ["b"], "properties": {"b": b, "a": a}});
    let fake = |turned: bool| {
        let mut tools = vec!["zebra", "ant", "mole"];
        if turned {
            tools.reverse();
        }
        let tools = tools
            .into_iter()
            .map(|name| Tool::new(name).schema(schema.clone()).read_only());
        FakeServer::new("fx").tools(tools)
    };
    let (board, handle) = in_memory(&fake(false).then_after(1, fake(true)));
    let tools = board.toolset();
    let first = tools.list(PATIENCE).await;
    assert_eq!(names(&first), ["fx__ant", "fx__mole", "fx__zebra"]);
    let first = serde_json::to_string(&first).unwrap();
    for start in 2..5 {
        handle.kill();
        let listed = async {
            loop {
                let listing = tools.list(PATIENCE).await;
                if handle.starts() == start {
                    return listing;
                }
                tokio::task::yield_now().await;
            }
        };
        let again = tokio::time::timeout(PATIENCE, listed).await.unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), first);
    }
}

/// A hanging refresh blocks neither calls nor shutdown.
#[tokio::test(start_paused = true)]
async fn a_changed_list_that_hangs_holds_nobody_up() {
    let (board, handle) = in_memory(&many(1));
    let tools = board.toolset();
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 1);
    handle.change(|script| {
        let (fault, when) = (Fault::HangingPage { page: 1 }, When::default());
        script.faults.push(Rule { fault, when });
    });
    handle.tools_changed().await;
    handle.wait_for("tools/list", 2).await;
    assert_eq!(call(&tools, "fx.tool_000", json!({})).await.text(), "ok");
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < secs(1), "{:?}", closing.elapsed());
}

/// A `list_changed` notification refreshes the list soon; a malformed new list changes nothing.
#[tokio::test(start_paused = true)]
async fn a_changed_list_is_picked_up_and_a_broken_one_leaves_the_old() {
    let (board, handle) = in_memory(&many(1));
    let tools = board.toolset();
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 1);
    handle.change(|script| script.tools.push(Tool::new("added")));
    handle.tools_changed().await;
    let told = Instant::now();
    let seen = async {
        while tools.list(PATIENCE).await.tools.len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.unwrap();
    assert!(told.elapsed() <= secs(1), "{:?}", told.elapsed());
    assert_eq!(call(&tools, "fx.added", json!({})).await.text(), "ok");

    handle.change(|script| {
        script.tools.clear();
        let (fault, when) = (Fault::RepeatedCursor, When::default());
        script.faults.push(Rule { fault, when });
    });
    handle.tools_changed().await;
    tokio::time::timeout(PATIENCE, handle.wait_for("tools/list", 4))
        .await
        .unwrap();
    tokio::time::sleep(secs(5)).await;
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 2);
    assert_outcome(&call(&tools, "fx.nothing", json!({})).await, Kind::UnknownTool, false);
}

fn offers_all() -> FakeServer {
    many(2).prompt("p", "x").resource("file:///r", "y")
}

fn with_fault(method: &str, fault: Fault) -> impl FnOnce(&mut pegboard_testkit::Script) {
    let when = When::method(method);
    move |script| script.faults.push(Rule { fault, when })
}

/// What may go wrong with one listing while the session stays up.
fn listing_faults() -> [Fault; 3] {
    [
        Fault::AnswersError {
            code: -32603,
            message: "the database is gone".to_owned(),
            data: None,
        },
        Fault::NeverAnswers,
        Fault::Nested { depth: 5 },
    ]
}

/// Only the tool listing is mandatory: any other failed listing is a warning.
#[tokio::test(start_paused = true)]
async fn resources_or_prompts_that_cannot_be_listed_leave_the_tools_alone() {
    for era in [Era::Legacy, Era::Modern] {
        for fault in listing_faults() {
            for (method, what, kept) in [
                ("resources/list", "the resources could not be listed", [0, 1]),
                (
                    "resources/templates/list",
                    "the resource templates could not be listed",
                    [1, 1],
                ),
                ("prompts/list", "the prompts could not be listed", [1, 0]),
            ] {
                let fake = offers_all().era(era).fault_on(When::method(method), fault.clone());
                let (board, handle) = in_memory(&fake);
                let tools = board.toolset();
                let began = Instant::now();
                let listing = tools.list(secs(60)).await;
                assert_eq!(listing.tools.len(), 2, "{method} {fault:?}: {listing:?}");
                assert_contains(&listing.warnings.join("\n"), &[what]);
                assert!(began.elapsed() <= secs(31), "{method} {fault:?}: {:?}", began.elapsed());
                let (resources, prompts) = (tools.resources(PATIENCE).await, tools.prompts(PATIENCE).await);
                assert_eq!(
                    [resources.resources.len(), prompts.prompts.len()],
                    kept,
                    "{method} {fault:?}"
                );
                assert_eq!(handle.starts(), 1);
                board.shutdown().await;
            }
        }
    }
}

/// A server that disconnects during its first listing has not started.
#[tokio::test(start_paused = true)]
async fn a_server_that_leaves_in_any_listing_has_not_started() {
    for method in ["tools/list", "resources/list", "prompts/list"] {
        let fake = offers_all().fault_on(When::method(method), Fault::DiesBeforeExecuting { code: 1 });
        let (board, _handle) = in_memory(&fake);
        let listing = board.toolset().list(PATIENCE).await;
        assert!(listing.tools.is_empty(), "{method}: {:?}", names(&listing));
        board.shutdown().await;
    }
}

/// A list that cannot be refreshed stays as it was, and the new tools are still picked up.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_listed_again_stays_as_it_was() {
    for fault in listing_faults() {
        let (board, handle) = in_memory(&offers_all());
        let tools = board.toolset();
        assert_eq!(tools.list(PATIENCE).await.tools.len(), 2);
        handle.change(with_fault("resources/list", fault.clone()));
        handle.change(with_fault("prompts/list", fault.clone()));
        handle.change(|script| script.tools.push(Tool::new("added")));
        handle.tools_changed().await;
        let seen = async {
            while tools.list(PATIENCE).await.tools.len() < 3 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(secs(60), seen).await.unwrap();
        let listing = tools.list(PATIENCE).await;
        assert_contains(
            &listing.warnings.join("\n"),
            &[
                "the resources could not be listed; those listed before stay",
                "the prompts could",
            ],
        );
        assert_eq!(
            tools.resources(PATIENCE).await.resources[0].uri,
            "file:///r",
            "{fault:?}"
        );
        assert_eq!(tools.prompts(PATIENCE).await.prompts[0].name, "p", "{fault:?}");

        // A new session keeps the old list as well.
        handle.kill();
        handle.wait_for("initialize", 2).await;
        tokio::time::sleep(secs(40)).await;
        assert_eq!(tools.list(PATIENCE).await.tools.len(), 3);
        assert_eq!(tools.resources(PATIENCE).await.resources.len(), 1, "{fault:?}");
        board.shutdown().await;
    }
}
