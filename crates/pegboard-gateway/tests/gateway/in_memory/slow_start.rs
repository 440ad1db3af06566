//! A server that starts slowly, at an endpoint of its own and among others.

use std::time::Duration;

use pegboard_gateway::{BoardPart, SignInLinks, board_service};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::in_memory::client::{Client, ERAS, Era, board};

const CONFIG: &str = "[servers.git]\ncommand = \"in-memory\"\nstart = \"lazy\"\nconnect_timeout = \"2m\"\n";

/// The list requests and the fields with their lists.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

fn part() -> BoardPart {
    BoardPart::Server("git".parse().expect("a name"))
}

/// A server whose handshake takes this long.
fn starting(delay: Duration) -> FakeServer {
    let ms = u64::try_from(delay.as_millis()).expect("a short delay");
    FakeServer::new("the-real-name")
        .era(pegboard_testkit::Era::Legacy)
        .tool(Tool::new("log").answers_text("ran"))
        .fault_on(When::method("initialize"), Fault::LateAnswer { ms })
}

#[tokio::test(start_paused = true)]
async fn a_handshake_does_not_wait_for_long_and_calls_do() {
    for era in ERAS {
        let board = board(CONFIG, &[("git", starting(Duration::from_secs(20)))]);
        let asked = Instant::now();
        let mut client = Client::connect(&board, part(), era).await;
        if era == Era::Modern {
            let found = client.ask("server/discover", json!({})).await;
            assert_eq!(
                found["result"]["capabilities"]["tools"],
                json!({"listChanged": true}),
                "{found}"
            );
        }
        assert_eq!(asked.elapsed().as_millis(), 2500, "{era:?}");
        let ran = client.call("log", json!({})).await;
        assert_eq!(ran["result"]["content"][0]["text"], "ran", "{ran}");
        assert_eq!(client.tools().await, ["log"]);
        if era == Era::Modern {
            let found = client.ask("server/discover", json!({})).await;
            let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(info["name"], "the-real-name", "{found}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_is_told_when_the_tools_of_a_slow_server_are_known() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(20)))]);
    let mut client = Client::connect(&board, part(), Era::Legacy).await;
    client.notified("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["log"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_ready_in_time_describes_itself() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(2)))]);
    let mut client = Client::connect(&board, part(), Era::Modern).await;
    let found = client.ask("server/discover", json!({})).await;
    let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "the-real-name", "{found}");
}

#[tokio::test(start_paused = true)]
async fn the_lists_of_one_server_that_is_still_starting_are_empty_in_time() {
    for era in ERAS {
        let board = board(CONFIG, &[("git", starting(Duration::from_secs(60)))]);
        let mut client = Client::connect(&board, part(), era).await;
        for (method, list) in LISTS {
            let asked = Instant::now();
            let listed = client.ask(method, json!({})).await;
            assert_eq!(listed["result"][list], json!([]), "{listed}");
            assert!(asked.elapsed() < Duration::from_secs(3), "{era:?} {method}");
        }
    }
}

/// Hosts list once after they have connected, and many do not heed notifications.
#[tokio::test(start_paused = true)]
async fn the_first_listings_of_a_session_wait_together_for_servers_of_which_nothing_is_known() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(2)))]);
    let mut client = Client::connect(&board, BoardPart::Whole, Era::Legacy).await;
    assert_eq!(client.tools().await, ["git__log"]);

    let board = self::board(CONFIG, &[("git", starting(Duration::from_secs(60)))]);
    let endpoint = board_service(board.clone(), BoardPart::Whole, SignInLinks::default());
    for session in 0..2 {
        let mut client = Client::connect_to(endpoint.clone(), Era::Legacy).await;
        for ((method, list), expected) in LISTS.into_iter().zip([2500, 500, 500, 500]) {
            let asked = Instant::now();
            let listed = client.ask(method, json!({})).await;
            assert_eq!(listed["result"][list], json!([]), "{listed}");
            assert_eq!(asked.elapsed().as_millis(), expected, "session {session}: {method}");
        }
        if session == 1 {
            client.notified("notifications/tools/list_changed").await;
            assert_eq!(client.tools().await, ["git__log"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_a_client_without_a_session_waits_as_long_as_that_of_any_other() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(60)))]);
    let endpoint = board_service(board.clone(), BoardPart::Whole, SignInLinks::default());
    for _ in 0..2 {
        let mut client = Client::connect_to(endpoint.clone(), Era::Modern).await;
        let asked = Instant::now();
        assert_eq!(client.tools().await, [""; 0]);
        assert_eq!(asked.elapsed().as_millis(), 2500);
    }
}

/// With `scope = "session"` every session starts its servers. What one session has seen is listed for the next ones at once.
#[tokio::test(start_paused = true)]
async fn a_session_lists_what_another_one_has_seen_while_its_own_server_starts() {
    let config = format!("{CONFIG}scope = \"session\"\n[views.tight]\nservers = [\"git\"]\n");
    for part in [BoardPart::Whole, BoardPart::View("tight".to_owned())] {
        let board = board(&config, &[("git", starting(Duration::from_secs(5)))]);
        let endpoint = board_service(board.clone(), part, SignInLinks::default());
        for session in 0..3 {
            let mut client = Client::connect_to(endpoint.clone(), Era::Legacy).await;
            let asked = Instant::now();
            let (expected, waited) = match session {
                0 => (vec![], 2500),
                _ => (vec!["git__log".to_owned()], 0),
            };
            assert_eq!(client.tools().await, expected, "session {session}");
            assert_eq!(asked.elapsed().as_millis(), waited, "session {session}");
            let ran = client.call("git__log", json!({})).await;
            assert_eq!(ran["result"]["content"][0]["text"], "ran", "{ran}");
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    }
}
