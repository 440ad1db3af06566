//! Faults of listings.

use std::time::Duration;

use pegboard_testkit::{Bomb, Fault, When};

use super::{BOTH, EVERY, play};
use crate::{
    case::{Case, How},
    stage::Stage,
    support::*,
};

/// A listing with this fault: how many tools it gives, and the first call.
async fn listed(stage: &mut Stage, fault: Fault) -> String {
    let fake = stage.fake().fault(fault);
    stage.open(&fake).await;
    let tools = count(stage).await;
    format!("{tools} tools; {}", stage.call().await)
}

/// How many tools the faulty server offers.
async fn count(stage: &Stage) -> usize {
    let listing = stage.board().toolset().list(secs(10)).await;
    listing.tools.iter().filter(|tool| tool.name.starts_with("fx")).count()
}

fn list(
    id: &'static str,
    fault: &'static str,
    must: &'static str,
    how: How,
    end: &'static [(&str, &str, &str)],
) -> Case {
    Case {
        id,
        fault,
        must,
        wires: EVERY,
        eras: BOTH,
        bound: 3_500,
        how,
        ends: end,
    }
}

const DROPPED: &[(&str, &str, &str)] = &[("", "", "1 tools; ok, ran 1")];
const NONE: &[(&str, &str, &str)] = &[("", "", "0 tools; refused unavailable, ran 0")];
const ALL_ODD: &str = "it is dropped or kept, and the other tools work";

fn bomb(id: &'static str, fault: &'static str, how: How, end: &'static [(&str, &str, &str)]) -> Case {
    Case {
        bound: 6_000,
        ..list(id, fault, "no fetch, no hang; the other tools work", how, end)
    }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        list(
            "F030",
            "a listing has pages without end",
            "it ends at the limit of pages or items, and the partial list is not used",
            play!(|stage| listed(stage, Fault::EndlessPages).await),
            NONE,
        ),
        list(
            "F031",
            "the cursor of a listing repeats",
            "the listing fails",
            play!(|stage| listed(stage, Fault::RepeatedCursor).await),
            NONE,
        ),
        list(
            "F032",
            "a page of the first listing never comes",
            "the list limit ends it",
            play!(|stage| listed(stage, Fault::HangingPage { page: 1 }).await),
            NONE,
        ),
        list(
            "F032b",
            "a page of a later listing never comes",
            "the last good list is kept",
            play!(|stage| {
                let fake = stage
                    .fake()
                    .fault_on(When::default().after(1), Fault::HangingPage { page: 1 });
                stage.open(&fake).await;
                stage.warm().await;
                stage.board().refresh(&name("fx"));
                stage.until(secs(5), |stage| stage.count("tools/list") > 1).await;
                format!("{} tools; {}", count(stage).await, stage.call().await)
            }),
            DROPPED,
        ),
        list(
            "F033",
            "a listing has too many tools",
            "those beyond the limit are dropped, and the others work",
            play!(|stage| {
                stage.limit(|limits| {
                    limits.items = 200;
                    limits.message_bytes = 4 << 20;
                });
                listed(stage, Fault::ManyTools { count: 300 }).await
            }),
            &[("", "", "200 tools; ok, ran 1")],
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
            "the name of a tool has 5,000 characters",
            "that tool is dropped",
            play!(|stage| listed(stage, Fault::LongToolName { length: 5_000 }).await),
            DROPPED,
        ),
        list(
            "F033d",
            "the name of a tool has spaces, a slash and an emoji",
            ALL_ODD,
            play!(|stage| listed(stage, Fault::OddToolName).await),
            &[("", "", "2 tools; ok, ran 1")],
        ),
        list(
            "F034",
            "a tool has no schema but something else in its place",
            "only that tool is dropped",
            play!(|stage| listed(stage, Fault::BrokenSchema).await),
            DROPPED,
        ),
        list(
            "F034b",
            "a tool has an x-mcp-header that cannot be a header",
            "only that tool is dropped",
            play!(|stage| listed(stage, Fault::BrokenMcpHeader).await),
            // Headers for arguments came with the newest era.
            &[("", "l", "2 tools; ok, ran 1"), ("", "m", "1 tools; ok, ran 1")],
        ),
        bomb(
            "F035",
            "a schema nested very deep",
            play!(|stage| bombed(stage, Bomb::Depth).await),
            BOMBED,
        ),
        bomb(
            "F035b",
            "a schema whose references go round in a circle",
            play!(|stage| bombed(stage, Bomb::RefCycle).await),
            BOMBED,
        ),
        bomb(
            "F035c",
            "a schema with a reference to another host",
            play!(|stage| bombed(stage, Bomb::RemoteRef).await),
            BOMBED,
        ),
        bomb(
            "F035d",
            "a schema with an enum of 100,000 values",
            play!(|stage| bombed(stage, Bomb::HugeEnum).await),
            BOMBED,
        ),
        bomb(
            "F035e",
            "a schema with a pattern that backtracks without end",
            play!(|stage| bombed(stage, Bomb::Pattern).await),
            BOMBED,
        ),
        list(
            "F036",
            "500 notices that the list changed",
            "one listing at a time, and few of them",
            play!(|stage| {
                let fake = stage.fake();
                stage.open(&fake).await;
                stage.warm().await;
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
                let word = stage.call().await;
                tokio::time::sleep(Duration::from_millis(500)).await;
                let listings = stage.count("tools/list");
                format!("{word}; at most 4 listings: {}", listings <= 4)
            }),
            &[("", "", "ok, ran 1; at most 4 listings: true")],
        ),
        Case {
            wires: "S",
            ..list(
                "F036b",
                "a process sends 500 notices that the list changed with each listing",
                "one listing at a time, and few of them",
                play!(|stage| {
                    let (count, every_ms) = (500, 0);
                    let fake = stage.fake().fault(Fault::ListChanged { count, every_ms });
                    stage.open(&fake).await;
                    stage.warm().await;
                    let word = stage.call().await;
                    tokio::time::sleep(Duration::from_millis(1_000)).await;
                    let listings = stage.count("tools/list");
                    format!("{word}; at most 4 listings: {}", listings <= 4)
                }),
                &[("", "", "ok, ran 1; at most 4 listings: true")],
            )
        },
        list(
            "F037",
            "the description of a tool changes after it was listed",
            "the change is told",
            play!(|stage| {
                let fake = stage.fake().fault_on(When::default().after(1), Fault::ToolsChange);
                stage.open(&fake).await;
                stage.warm().await;
                stage.board().refresh(&name("fx"));
                let changed = stage
                    .until(secs(5), |stage| !stage.board().changes(&name("fx")).is_empty())
                    .await;
                format!("told: {changed}; {}", stage.call().await)
            }),
            &[("", "", "told: true; ok, ran 1")],
        ),
    ]
}

const BOMBED: &[(&str, &str, &str)] = &[("", "", "ok, ran 1")];

async fn bombed(stage: &mut Stage, kind: Bomb) -> String {
    stage.limit(|limits| {
        limits.message_bytes = 8 << 20;
        limits.connect = secs(10);
        limits.list = secs(10);
        limits.call_total = secs(10);
        limits.call_idle = secs(10);
    });
    let fake = stage.fake().fault(Fault::SchemaBomb { kind });
    stage.open(&fake).await;
    stage.call().await
}
