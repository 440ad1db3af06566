//! A primary that sentinels name, and another one after it is gone.

use pegboard_store::{Key, Refusal, Store, StoreError};

use super::{Server, connect};
use crate::fixture::{LONG, bytes, eventually, text};

/// Starts a primary, a replica of it, and a sentinel that knows them.
async fn start() -> (Server, Server, Server) {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port)]).await;
    eventually(|| async {
        replica
            .say("INFO replication")
            .await
            .contains("master_link_status:up")
            .then_some(())
    })
    .await;
    let sentinel = Server::start_sentinel(&format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 200\nsentinel failover-timeout main 2000\n",
        primary.port
    ))
    .await;
    (primary, replica, sentinel)
}

#[tokio::test]
async fn the_store_follows_the_primary() {
    let (mut primary, replica, sentinel) = start().await;
    let address = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port);
    let store = connect(&address).await.unwrap();
    let key = Key::new("k", &[]);
    store.put(&key, bytes("x"), LONG).await.unwrap();
    eventually(|| async {
        sentinel
            .say("SENTINEL replicas main")
            .await
            .contains(&replica.port.to_string())
            .then_some(())
    })
    .await;
    eventually(|| async { replica.say("EXISTS pegboard:v:k").await.starts_with(":1").then_some(()) }).await;
    primary.kill();
    eventually(|| async { store.put(&key, bytes("y"), LONG).await.ok() }).await;
    assert_eq!(text(&store, &key).await.as_deref(), Some("y"));
    assert!(replica.say("ROLE").await.contains("master"), "it is the other one");
}

#[tokio::test]
async fn a_primary_that_is_demoted_is_left() {
    let (primary, replica, sentinel) = start().await;
    let store = connect(&format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port))
        .await
        .unwrap();
    store.put(&Key::new("k", &[]), bytes("x"), LONG).await.unwrap();
    eventually(|| async {
        sentinel
            .say("SENTINEL failover main")
            .await
            .starts_with("+OK")
            .then_some(())
    })
    .await;
    let promoted = || async { replica.say("ROLE").await.contains("master").then_some(()) };
    eventually(promoted).await;
    // The sentinel does the same to the old primary some seconds later.
    primary.say(&format!("REPLICAOF 127.0.0.1 {}", replica.port)).await;
    eventually(|| async { store.put(&Key::new("k", &[]), bytes("y"), LONG).await.ok() }).await;
    assert!(replica.say("ROLE").await.contains("master"));
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_refused() {
    let (_primary, _replica, sentinel) = start().await;
    let error = connect(&format!("redis+sentinel://127.0.0.1:{}/other", sentinel.port))
        .await
        .unwrap_err();
    let StoreError::Refused { refusal, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(refusal, Refusal::UnknownPrimary("other".into()));
}

#[tokio::test]
async fn a_replica_alone_is_no_store() {
    let (_primary, replica, _sentinel) = start().await;
    let error = connect(&replica.address()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
    assert!(
        std::error::Error::source(&error)
            .unwrap()
            .to_string()
            .contains("replica")
    );
}
