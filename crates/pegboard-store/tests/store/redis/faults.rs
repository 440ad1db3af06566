//! A server that is away, hangs, fills up, or loses its data.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use pegboard_store::{
    Key, Lease, LeaseAttempt, Limits, PutFenced, RedisStore, Refusal, Store, StoreAddress, StoreError,
};
use tokio::time::Instant;

use super::{Server, connect};
use crate::fixture::{LONG, PATIENCE, bytes, eventually, text};

async fn connect_in_a_hurry(server: &Server) -> RedisStore {
    let address = StoreAddress::parse(&server.address()).unwrap();
    let limits = Limits {
        time: Duration::from_millis(300),
        ..Limits::default()
    };
    eventually(|| async { RedisStore::connect(&address, limits).await.ok() }).await
}

fn is_outage(error: &StoreError) -> bool {
    matches!(error, StoreError::Unreachable { .. } | StoreError::TimedOut { .. })
}

async fn lease(store: &dyn Store, key: &Key) -> Lease {
    match store.lease(key, "me", LONG).await.unwrap() {
        LeaseAttempt::Leased(lease) => lease,
        held @ LeaseAttempt::Held { .. } => panic!("{held:?}"),
    }
}

#[tokio::test]
async fn a_store_comes_back_after_its_server_crashed() {
    let mut server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    let key = Key::new("k", &["a"]);
    store.put(&key, bytes("x"), LONG).await.unwrap();
    let lease_before = lease(&store, &key).await;
    server.kill();
    for _ in 0..50 {
        let error = store.put(&key, bytes("y"), LONG).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
        let shown = error.to_string();
        assert!(shown.contains(&server.port.to_string()), "{shown}");
    }
    server.restart().await;
    eventually(|| async { store.put(&key, bytes("z"), LONG).await.ok() }).await;
    assert_eq!(text(&store, &key).await.as_deref(), Some("z"));
    // The server has lost its data, and nobody works with an old lease.
    assert!(!store.renew(&lease_before, LONG).await.unwrap());
    let put = store
        .put_fenced(&key, bytes("late"), LONG, &lease_before)
        .await
        .unwrap();
    assert_eq!(put, PutFenced::Refused);
    assert!(
        lease(&store, &key).await.fence() > lease_before.fence(),
        "fences rise with the clock"
    );
}

#[tokio::test]
async fn many_operations_fail_in_time_while_the_server_hangs() {
    let server = Server::start(&[]).await;
    let store = Arc::new(connect_in_a_hurry(&server).await);
    server.stop();
    let started = Instant::now();
    let tasks: Vec<_> = (0..2000)
        .map(|number: u32| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .put(&Key::new("k", &[&number.to_string()]), bytes("x"), LONG)
                    .await
            })
        })
        .collect();
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        assert!(is_outage(&error), "{error}");
    }
    assert!(started.elapsed() < PATIENCE, "not one after the other");
    server.go_on();
    eventually(|| async { store.ping().await.ok() }).await;
}

#[tokio::test]
async fn connections_that_the_server_closes_are_replaced_unnoticed() {
    let server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    let key = Key::new("k", &[]);
    store.put(&key, bytes("x"), LONG).await.unwrap();
    for _ in 0..5 {
        server.say("CLIENT KILL TYPE normal SKIPME yes").await;
        assert_eq!(text(&store, &key).await.as_deref(), Some("x"));
    }
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    let key = Key::new("k", &[]);
    for _ in 0..2 {
        store.put(&key, bytes("x"), LONG).await.unwrap();
        assert!(server.say("SCRIPT FLUSH").await.starts_with("+OK"));
    }
}

#[tokio::test]
async fn a_full_server_says_so() {
    let server = Server::start(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"]).await;
    let store = connect(&server.address()).await.unwrap();
    let large = Bytes::from(vec![7; 500_000]);
    let mut number = 0;
    let error = eventually(|| {
        number += 1;
        let key = Key::new("k", &[&number.to_string()]);
        let (store, large) = (&store, large.clone());
        async move { store.put(&key, large, LONG).await.err() }
    })
    .await;
    assert!(
        matches!(
            &error,
            StoreError::Refused {
                refusal: Refusal::Full,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn what_others_put_under_a_key_is_damaged() {
    let server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    let key = Key::new("k", &["a"]);
    for command in [
        "SET pegboard:v:k:a foreign",
        "RPUSH pegboard:v:k:a foreign",
        "SETRANGE pegboard:v:k:a 2000000 x",
    ] {
        server.say("DEL pegboard:v:k:a").await;
        let reply = server.say(command).await;
        assert!(reply.starts_with('+') || reply.starts_with(':'), "{command}: {reply}");
        let errors = [
            store.get(&key).await.err(),
            store.put_new(&key, bytes("x"), LONG).await.err(),
            store.take(&key).await.err(),
        ];
        for error in errors {
            assert!(
                matches!(&error, Some(StoreError::Damaged { .. })),
                "{command}: {error:?}"
            );
            // `take` removes it.
            server.say(command).await;
        }
    }
    for command in [
        "SET pegboard:l:k:a x",
        "SET pegboard:b:k:a x",
        "SET pegboard:n:k:a x",
        "SET pegboard:i:k x",
    ] {
        assert!(server.say(command).await.starts_with('+'));
    }
    let rate = pegboard_store::Rate::new(1, 1.0).unwrap();
    let errors = [
        store.read_after(&key, 0, 1).await.err(),
        store.draw(&key, rate, 1).await.err(),
        store.lease(&key, "me", LONG).await.err(),
        store.list(&Key::new("k", &[]), 10).await.err(),
    ];
    for error in errors {
        assert!(matches!(&error, Some(StoreError::Damaged { .. })), "{error:?}");
    }
    server.say("HSET pegboard:b:k:b tokens nan at inf").await;
    server.say("HSET pegboard:n:k:b fence x until y").await;
    server.say("HSET pegboard:l:k:b base x last y").await;
    let other = Key::new("k", &["b"]);
    // What it makes of these does not matter, if it goes on.
    let _ = store.draw(&other, rate, 1).await;
    let _ = store.lease(&other, "me", LONG).await;
    let _ = store.read_after(&other, 0, 1).await;
    store.ping().await.unwrap();
}

#[tokio::test]
async fn everything_expires_by_itself() {
    let server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    let key = Key::new("k", &["a"]);
    let bounds = pegboard_store::LogBounds { entries: 1, bytes: 1 };
    let lease = lease(&store, &key).await;
    store.put(&key, bytes("x"), LONG).await.unwrap();
    store.put_fenced(&key, bytes("x"), LONG, &lease).await.unwrap();
    store.append(&key, vec![bytes("x")], bounds, LONG).await.unwrap();
    store
        .draw(&key, pegboard_store::Rate::new(1, 1.0).unwrap(), 1)
        .await
        .unwrap();
    for sort in ["v", "i", "l", "e", "b", "n"] {
        let key = if sort == "i" { "k" } else { "k:a" };
        let ttl = server.say(&format!("PTTL pegboard:{sort}:{key}")).await;
        let ttl: i64 = ttl.trim().trim_start_matches(':').parse().unwrap();
        assert!(ttl > 0, "{sort}: {ttl}");
    }
    let keys = server.say("DBSIZE").await;
    assert_eq!(keys.trim(), ":7", "these and the format");
}
