//! How many calls run at once: by server, by queue, and one after the other.

use crate::settings::fixtures::*;

/// How long four concurrent calls of ten seconds take together.
async fn seconds(top: &str, settings: &str) -> u64 {
    Stage::of_file(top, settings, &good()).seconds_of(4, "slow").await
}

#[tokio::test(start_paused = true)]
async fn a_queue_bounds_the_calls_of_its_servers() {
    for (top, expected) in [
        ("queues = { heavy = 1 }", 40),
        ("queues = { heavy = { concurrent = 2 } }", 20),
        ("queues = { heavy = { concurrent = 4 } }", 10),
    ] {
        assert_eq!(seconds(top, "queue = 'heavy'").await, expected, "{top}");
        assert_eq!(seconds(top, "tools.slow.queue = 'heavy'").await, expected, "{top}");
        assert_eq!(seconds(top, "tools.hello.queue = 'heavy'").await, 10, "{top}");
    }
}

/// ai-agent calls the queue of servers that name none `default`.
#[tokio::test(start_paused = true)]
async fn the_queue_default_bounds_the_calls_of_servers_that_name_none() {
    for (top, settings, expected) in [
        ("queues = { default = 1 }", "", 40),
        ("queues = { default = 2 }\npreset = 'ai-agent'", "", 20),
        ("queues = { default = 1, other = 4 }", "queue = 'other'", 10),
        ("queues = { other = 1 }", "", 10),
    ] {
        assert_eq!(seconds(top, settings).await, expected, "{top} {settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_bounds_its_calls() {
    for (settings, expected) in [
        ("max_in_flight = 2", 20),
        ("max_in_flight = 1", 40),
        ("serial = true", 40),
        ("serial = false", 10),
    ] {
        assert_eq!(seconds("", settings).await, expected, "{settings}");
    }
}
