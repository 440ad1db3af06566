//! A server that starts slowly, at an endpoint of its own and among others.

use std::time::Duration;

use pegboard_gateway::{BoardPart, SignInLinks, board_service};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::in_memory::client::{Client, ERAS, Era, board};

const CONFIG: &str = "[servers.git]\ncommand = \"in-memory\"\nstart = \"lazy\"\nconnect_timeout = \"2m\"\n";

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
        assert_eq!(asked.elapsed().as_secs(), 5, "{era:?}");
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
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(3)))]);
    let mut client = Client::connect(&board, part(), Era::Modern).await;
    let found = client.ask("server/discover", json!({})).await;
    let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "the-real-name", "{found}");
}

/// Hosts list once after they have connected, and many do not heed notifications.
#[tokio::test(start_paused = true)]
async fn the_first_listing_of_all_servers_waits_for_those_that_start_and_later_ones_do_not() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(6)))]);
    let mut client = Client::connect(&board, BoardPart::Whole, Era::Legacy).await;
    assert_eq!(client.tools().await, ["git__log"]);

    let board = self::board(CONFIG, &[("git", starting(Duration::from_secs(60)))]);
    let mut client = Client::connect(&board, BoardPart::Whole, Era::Legacy).await;
    for expected in [8000, 1500] {
        let asked = Instant::now();
        assert_eq!(client.tools().await, [""; 0]);
        assert_eq!(asked.elapsed().as_millis(), expected);
    }
    client.notified("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["git__log"]);
}

/// With `scope = "session"` every session starts its servers, however long the endpoint has been listed by others.
#[tokio::test(start_paused = true)]
async fn the_first_listing_of_every_session_and_view_waits_for_its_own_servers() {
    let config = format!("{CONFIG}scope = \"session\"\n[views.tight]\nservers = [\"git\"]\n");
    let board = board(&config, &[("git", starting(Duration::from_secs(3)))]);
    for part in [BoardPart::Whole, BoardPart::View("tight".to_owned())] {
        let endpoint = board_service(board.clone(), part, SignInLinks::default());
        for session in 0..3 {
            let mut client = Client::connect_to(endpoint.clone(), Era::Legacy).await;
            assert_eq!(client.tools().await, ["git__log"], "session {session}");
            // Longer than the wait of a first listing.
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    }
}

/// A listing that is not the client's first one does not hold up a host that lists often.
#[tokio::test(start_paused = true)]
async fn the_first_listing_of_a_session_does_not_lengthen_those_of_others() {
    let board = board(CONFIG, &[("git", starting(Duration::from_secs(60)))]);
    let endpoint = board_service(board.clone(), BoardPart::Whole, SignInLinks::default());
    let mut first = Client::connect_to(endpoint.clone(), Era::Legacy).await;
    let mut second = Client::connect_to(endpoint, Era::Legacy).await;
    for (client, expected) in [(&mut first, 8000), (&mut second, 8000)] {
        let asked = Instant::now();
        assert_eq!(client.tools().await, [""; 0]);
        assert_eq!(asked.elapsed().as_millis(), expected);
    }
    for client in [&mut first, &mut second] {
        let asked = Instant::now();
        assert_eq!(client.tools().await, [""; 0]);
        assert_eq!(asked.elapsed().as_millis(), 1500);
    }
}
