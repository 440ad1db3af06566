//! Servers are looked up by any text.

use pegboard::{
    Config, Grants, Kind, Pegboard, ServerName, View,
    in_process::{ByteSink, ByteSource},
};
use pegboard_testkit::{FakeServer, Tool};

fn board() -> Pegboard {
    let (_first, handle) = FakeServer::new("fx")
        .tool(Tool::new("echo").answers_text("hi"))
        .connect();
    let dial = move || {
        let (read, write) = tokio::io::split(handle.connect());
        (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
    };
    let name = ServerName::parse("fx").unwrap();
    Pegboard::builder(Config::new()).in_process(name, dial).open()
}

#[tokio::test]
async fn an_unknown_name_and_an_impossible_one_get_the_same_error() {
    let (board, name) = (board(), ServerName::parse("fx").unwrap());
    let tools = board.toolset();
    for wrong in ["nope", "no such server!", ""] {
        let failure = tools.read_resource(wrong, "note://a").await.unwrap_err();
        assert_eq!(failure.kind, Kind::Unavailable);
        assert_eq!(
            failure.message,
            format!("there is no server `{wrong}`. Available servers: fx.")
        );
        assert_eq!(tools.events(wrong).unwrap_err(), failure);
        assert!(!board.reconnect(wrong).await && !board.refresh(wrong) && !board.disable(wrong).await);
        assert!(board.changes(wrong).is_empty());
    }
    // A name, a reference to one, and every kind of text.
    for found in [tools.events(&name), tools.events("fx"), tools.events("fx")] {
        found.unwrap();
    }
    assert!(board.reconnect("fx").await && board.reconnect(&name).await);
    board.shutdown().await;
}

#[tokio::test]
async fn a_grant_for_an_impossible_name_grants_nothing() {
    let board = board();
    let listed = async |grants: Grants| {
        let tools = board.toolset_with(View::new().grants(grants));
        tools.list(std::time::Duration::from_secs(30)).await.tools.len()
    };
    assert_eq!(listed(Grants::new().server("fx")).await, 1);
    assert_eq!(listed(Grants::new().tool("fx", "echo")).await, 1);
    assert_eq!(listed(Grants::new().server("f x").tool("*", "*")).await, 0);
    board.shutdown().await;
}
