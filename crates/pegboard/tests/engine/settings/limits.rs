//! Limits on the time and the size of calls and listings.

use pegboard::{Kind, State};
use pegboard_testkit::{Answer, FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::{settings::fixtures::*, support::*};

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_after_the_call_timeout() {
    for seconds in [7, 90] {
        let stage = Stage::new(&format!("call_timeout = '{seconds}s'"), &good());
        stage.tools.list(PATIENCE).await;
        let began = Instant::now();
        assert_outcome(&stage.call("mute").await, Kind::Timeout, true);
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_progress_ends_after_the_total_timeout() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("long"))
        .fault(Fault::ProgressForEver { every_ms: 1000 });
    for seconds in [70, 700] {
        let stage = Stage::new(&format!("call_total_timeout = '{seconds}s'"), &fake);
        stage.tools.list(PATIENCE).await;
        let began = Instant::now();
        assert_outcome(&stage.call("long").await, Kind::Timeout, true);
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_without_an_answer_is_given_up_after_the_list_timeout() {
    for (seconds, expected) in [(5, State::Down), (50, State::Connecting)] {
        let fake = good().fault_on(When::method("tools/list"), Fault::NeverAnswers);
        let stage = Stage::new(&format!("list_timeout = '{seconds}s'\nrestart = false"), &fake);
        tokio::time::sleep(secs(10)).await;
        assert_eq!(
            stage.board.status().servers[0].state,
            expected,
            "list_timeout = {seconds} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_is_given_up_after_the_write_timeout() {
    let fake = good()
        .tool(Tool::new("deaf"))
        .fault_on(When::tool("deaf"), Fault::StopsReading);
    for seconds in [3, 30] {
        let settings = format!("write_timeout = '{seconds}s'\ncall_timeout = '1h'\nhealth_probe = 'none'");
        let stage = Stage::new(&settings, &fake);
        stage.tools.list(PATIENCE).await;
        // More than the pipe holds. The fake may have read one line ahead, so that only the second one stalls.
        let large = json!({"text": "x".repeat(1 << 20)});
        let began = Instant::now();
        let stalled = async {
            tokio::join!(
                stage.call_with("hello", large.clone()),
                stage.call_with("hello", large.clone())
            )
        };
        let (_, (first, second)) = tokio::join!(stage.call("deaf"), stalled);
        assert_eq!(
            began.elapsed().as_secs(),
            seconds,
            "{}, {}",
            first.text(),
            second.text()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_above_the_limit_fails_its_call() {
    let fake = FakeServer::new("fx").tool(Tool::new("big").answers(Answer::Bytes(5000)));
    for (settings, is_error) in [("max_message = '4KiB'", true), ("max_message = '8KiB'", false)] {
        let reply = Stage::new(settings, &fake).call("big").await;
        assert_eq!(reply.is_error(), is_error, "{settings}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_has_at_most_so_many_pages_and_items() {
    let fake = FakeServer::new("fx")
        .tools((0..6).map(|n| Tool::new(format!("t{n}"))))
        .pages_of(2);
    for (settings, is_listed) in [
        ("max_pages = 3", true),
        ("max_pages = 2", false),
        ("max_items = 6", true),
        ("max_items = 5", false),
    ] {
        let stage = Stage::new(settings, &fake);
        let listing = stage.tools.list(PATIENCE).await;
        assert_eq!(
            listing.tools.len() == 6,
            is_listed,
            "{settings}: {:?}",
            listing.unavailable
        );
        assert_eq!(
            listing.warnings.is_empty(),
            is_listed,
            "{settings}: {:?}",
            listing.warnings
        );
        assert!(listing.tools.len() >= 4, "what was listed is offered");
    }
}
