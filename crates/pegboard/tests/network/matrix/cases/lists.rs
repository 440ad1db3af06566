//! Faults of listings.

use std::time::Duration;

use pegboard_testkit::{Bomb, Fault, When};

use super::{case, play};
use crate::{
    matrix::{
        case::{Case, How},
        stage::Stage,
    },
    support::*,
};

/// The number of tools of a listing with this fault, and the outcome of the first call.
async fn listed(stage: &mut Stage, fault: Fault) -> String {
    let fake = stage.fake().fault(fault);
    stage.open(&fake).await;
    let tools = count(stage).await;
    format!("{tools} tools; {}", stage.call().await)
}

/// The number of tools that are listed for the faulty server.
async fn count(stage: &Stage) -> usize {
    let listing = stage.board().toolset().list(secs(10)).await;
    listing.tools.iter().filter(|tool| tool.name.starts_with("fx")).count()
}

fn list(id: &'static str, fault: &'static str, must: &'static str, how: How, end: &'static str) -> Case {
    case(id, fault, must, how, end).within(3_500)
}

const DROPPED: &str = "1 tools; ok, ran 1";
const NONE: &str = "0 tools; refused unavailable, ran 0";

fn bomb(id: &'static str, fault: &'static str, how: How, end: &'static str) -> Case {
    list(id, fault, "no fetch, no hang; the other tools work", how, end).within(6_000)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        list(
            "F030",
            "the listing has endless pages",
            "it ends at the limit of pages or items, and what was listed works",
            play!(|stage| {
                stage.limit(|limits| limits.max_pages = 10);
                listed(stage, Fault::EndlessPages).await
            }),
            "11 tools; ok, ran 1",
        ),
        list(
            "F031",
            "the cursor of the listing repeats",
            "the listing fails",
            play!(|stage| listed(stage, Fault::RepeatedCursor).await),
            NONE,
        ),
        list(
            "F032",
            "a page of the first listing never arrives",
            "the list timeout ends it",
            play!(|stage| listed(stage, Fault::HangingPage { page: 1 }).await),
            NONE,
        ),
        list(
            "F032b",
            "a page of a later listing never arrives",
            "the last good list is kept",
            play!(|stage| {
                let fake = stage
                    .fake()
                    .fault_on(When::default().after(1), Fault::HangingPage { page: 1 });
                stage.open_listed(&fake).await;
                stage.board().refresh(name("fx"));
                stage.until(secs(5), |stage| stage.count("tools/list") > 1).await;
                format!("{} tools; {}", count(stage).await, stage.call().await)
            }),
            DROPPED,
        ),
        list(
            "F033",
            "the listing has too many tools",
            "the excess tools are dropped, and the others work",
            play!(|stage| {
                stage.limit(|limits| {
                    limits.max_items = 200;
                    limits.max_message = 4 << 20;
                });
                listed(stage, Fault::ManyTools { count: 300 }).await
            }),
            "200 tools; ok, ran 1",
        ),
        list(
            "F033b",
            "every tool is listed twice",
            "the second is dropped",
            play!(|stage| listed(stage, Fault::DuplicateTools).await),
            DROPPED,
        ),
        list(
            "F033c",
            "a tool has a name of 5,000 characters",
            "that tool is dropped",
            play!(|stage| listed(stage, Fault::LongToolName { length: 5_000 }).await),
            DROPPED,
        ),
        list(
            "F033d",
            "a tool has a name with spaces, a slash and an emoji",
            "the name is escaped, and all tools work",
            play!(|stage| listed(stage, Fault::OddToolName).await),
            "2 tools; ok, ran 1",
        ),
        list(
            "F034",
            "a tool has an input schema that is not a schema",
            "only that tool is dropped",
            play!(|stage| listed(stage, Fault::BrokenSchema).await),
            DROPPED,
        ),
        list(
            "F034b",
            "a tool has an x-mcp-header that is no valid header",
            "only that tool is dropped",
            play!(|stage| listed(stage, Fault::BrokenMcpHeader).await),
            // The legacy era has no headers for arguments.
            "1 tools; ok, ran 1",
        )
        .except("", "l", "2 tools; ok, ran 1"),
        bomb(
            "F035",
            "a tool has a schema that is nested very deeply",
            play!(|stage| bombed(stage, Bomb::Depth).await),
            "ok, ran 1",
        ),
        bomb(
            "F035b",
            "a tool has a schema with cyclic references",
            play!(|stage| bombed(stage, Bomb::RefCycle).await),
            "ok, ran 1",
        ),
        bomb(
            "F035c",
            "a tool has a schema with a reference to another host",
            play!(|stage| bombed(stage, Bomb::RemoteRef).await),
            "ok, ran 1",
        ),
        bomb(
            "F035d",
            "a tool has a schema with an enum of 100,000 values",
            play!(|stage| bombed(stage, Bomb::HugeEnum).await),
            "ok, ran 1",
        ),
        bomb(
            "F035e",
            "a tool has a schema with a pattern that backtracks exponentially",
            play!(|stage| bombed(stage, Bomb::Pattern).await),
            "ok, ran 1",
        ),
        list(
            "F036",
            "the server sends 500 list_changed notifications",
            "one listing at a time, and few of them",
            play!(|stage| {
                let fake = stage.fake();
                stage.open_listed(&fake).await;
                if let Some(control) = stage.control().cloned() {
                    stage
                        .until(secs(3), |stage| {
                            stage.control().is_some_and(|control| control.listeners() > 0)
                        })
                        .await;
                    stage
                        .servers()
                        .spawn(async move {
                            for _ in 0..500 {
                                control.tools_changed().await;
                            }
                        })
                        .await
                        .unwrap();
                }
                let outcome = stage.call().await;
                tokio::time::sleep(Duration::from_millis(500)).await;
                let listings = stage.count("tools/list");
                format!("{outcome}; at most 4 listings: {}", listings <= 4)
            }),
            "ok, ran 1; at most 4 listings: true",
        ),
        list(
            "F036b",
            "a process sends 500 list_changed notifications with each listing",
            "one listing at a time, and few of them",
            play!(|stage| {
                let (count, every_ms) = (500, 0);
                let fake = stage.fake().fault(Fault::ListChanged { count, every_ms });
                stage.open_listed(&fake).await;
                let outcome = stage.call().await;
                tokio::time::sleep(Duration::from_millis(1_000)).await;
                let listings = stage.count("tools/list");
                format!("{outcome}; at most 4 listings: {}", listings <= 4)
            }),
            "ok, ran 1; at most 4 listings: true",
        )
        .on("S"),
        list(
            "F037",
            "the description of a tool changes after it was listed",
            "the change is reported",
            play!(|stage| {
                let fake = stage.fake().fault_on(When::default().after(1), Fault::ToolsChange);
                stage.open_listed(&fake).await;
                stage.board().refresh(name("fx"));
                let changed = stage
                    .until(secs(5), |stage| !stage.board().changes(name("fx")).is_empty())
                    .await;
                format!("told: {changed}; {}", stage.call().await)
            }),
            "told: true; ok, ran 1",
        ),
    ]
}

async fn bombed(stage: &mut Stage, kind: Bomb) -> String {
    stage.limit(|limits| {
        limits.max_message = 8 << 20;
        limits.connect_timeout = secs(10);
        limits.list_timeout = secs(10);
        limits.call_total_timeout = secs(10);
        limits.call_timeout = secs(10);
    });
    let fake = stage.fake().fault(Fault::SchemaBomb { kind });
    stage.open(&fake).await;
    stage.call().await
}
