//! Health checks of idle servers.

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_probed_by_the_request_and_in_the_interval_of_the_config() {
    for (settings, pings, listings) in [
        ("health_interval = '100s'", 9..=10, 0..=0),
        ("health_interval = '10s'", 90..=100, 0..=0),
        ("health_interval = 'off'", 0..=0, 0..=0),
        ("health_interval = '100s'\nhealth_probe = 'list_tools'", 0..=0, 9..=10),
        ("health_interval = '100s'\nhealth_probe = 'none'", 0..=0, 0..=0),
    ] {
        let stage = Stage::new(settings, &good());
        stage.tools.list(PATIENCE).await;
        let listed = stage.handle.count("tools/list");
        tokio::time::sleep(secs(1001)).await;
        let pinged = stage.handle.count("ping");
        assert!(pings.contains(&pinged), "{settings}: {pinged} pings");
        let listed = stage.handle.count("tools/list") - listed;
        assert!(listings.contains(&listed), "{settings}: {listed} listings");
    }
}

/// A server that answers only its first requests.
fn hanging() -> FakeServer {
    good()
        .fault_on(When::method("ping"), Fault::NeverAnswers)
        .fault_on(When::method("tools/list").after(1), Fault::NeverAnswers)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_probe_in_time_is_replaced() {
    for (seconds, expected) in [(4, true), (40, false)] {
        let settings = format!("health_interval = '100s'\nhealth_timeout = '{seconds}s'");
        let stage = Stage::new(&settings, &hanging());
        stage.tools.list(PATIENCE).await;
        tokio::time::sleep(secs(120)).await;
        let is_replaced = || stage.board.status().servers[0].restarts > 0;
        assert_eq!(is_replaced(), expected, "{settings}");
        tokio::time::sleep(secs(25)).await;
        assert!(is_replaced(), "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_due_probe_may_restart_a_lost_server() {
    for (settings, expected) in [("health_restart = true", 2), ("health_restart = false", 1)] {
        let stage = Stage::new(
            &format!("restart = false\nhealth_interval = '10s'\n{settings}"),
            &good(),
        );
        stage.tools.list(PATIENCE).await;
        stage.handle.kill();
        tokio::time::sleep(secs(30)).await;
        assert_eq!(stage.starts(), expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_due_during_a_call_follows_the_call() {
    let slow = good().tool(Tool::new("slow").after(secs(10)).answers_text("done"));
    let stage = Stage::new("health_interval = '100s'\nhealth_probe = 'list_tools'", &slow);
    stage.tools.list(PATIENCE).await;
    let listed = stage.handle.count("tools/list");
    tokio::time::sleep(secs(95)).await;
    assert_eq!(call(&stage.tools, "fx.slow", json!({})).await.text(), "done");
    assert_eq!(stage.handle.count("tools/list"), listed, "none during the call");
    tokio::time::sleep(secs(30)).await;
    assert_eq!(
        stage.handle.count("tools/list"),
        listed + 1,
        "not a whole interval later"
    );
}
