//! Servers that do not serve this program, and what is no server of Redis.

use std::{sync::Arc, time::Duration};

use pegboard_store::{Key, Limits, RedisStore, Refusal, Store, StoreAddress, StoreError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{Server, connect, server::free_port};
use crate::{
    conformance,
    fixture::{Fixture, LONG, bytes},
};

async fn refusal(address: &str) -> Refusal {
    let error = connect(address).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    match error {
        StoreError::Refused { refusal, .. } => refusal,
        error => panic!("{address}: {error}: {error:?}"),
    }
}

/// Answers every connection with the same bytes, whatever it asks.
async fn answering(reply: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 1024];
                while stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                    if stream.write_all(reply).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_password_is_needed_where_the_server_wants_one() {
    let server = Server::start(&["--requirepass", "hunter2"]).await;
    let port = server.port;
    assert_eq!(refusal(&server.address()).await, Refusal::Credentials);
    assert_eq!(
        refusal(&format!("redis://:wrong@127.0.0.1:{port}")).await,
        Refusal::Credentials
    );
    assert_eq!(
        refusal(&format!("redis://hunter2:wrong@127.0.0.1:{port}")).await,
        Refusal::Credentials
    );
    let store = connect(&format!("redis://:hunter2@127.0.0.1:{port}/3")).await.unwrap();
    store.put(&Key::new("k", &[]), bytes("x"), LONG).await.unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_password_is_refused_where_there_is_none() {
    let server = Server::start(&[]).await;
    let refused = refusal(&format!("redis://:hunter2@127.0.0.1:{}", server.port)).await;
    assert_eq!(refused, Refusal::Credentials);
}

/// What a user needs, as docs/architecture/pegboard-store.md says.
const RULES: &str = "resetkeys ~team:* -@all +auth +hello +select +scan +eval +evalsha +time +exists +get +getrange +strlen +set +del +pttl \
                     +pexpire +zadd +zrem +zrangebyscore +hget +hmget +hset +llen +lrange +lpop +rpush";

#[tokio::test]
async fn a_user_needs_the_rules_that_are_documented() {
    let server = Server::start(&[]).await;
    server.say(&format!("ACL SETUSER gate on >p%40ss {RULES}")).await;
    server
        .say("ACL SETUSER narrow on >hunter2 ~other:* -@all +@connection +@read")
        .await;
    let address = |user: &str| format!("redis://{user}@127.0.0.1:{}?prefix=team", server.port);
    let store = connect(&address("gate:p%2540ss")).await.unwrap();
    let key = Key::new("k", &["a"]);
    let fixture = Fixture::new(vec![Arc::new(store)], ());
    conformance::a_listing_has_the_values_right_below_its_key(&fixture).await;
    conformance::a_replacement_needs_the_version_that_stands(&fixture).await;
    conformance::a_log_drops_its_oldest_entries_and_says_so(&fixture).await;
    conformance::racing_draws_get_no_more_than_the_burst(&fixture).await;
    conformance::a_late_holder_cannot_write(&fixture).await;
    let store = fixture.store();
    let refused = refusal(&address("narrow:hunter2")).await;
    assert!(matches!(&refused, Refusal::Permission(_)), "{refused}");
    server.say("ACL SETUSER gate -set").await;
    let error = store.put(&key, bytes("y"), LONG).await.unwrap_err();
    assert!(
        matches!(
            &error,
            StoreError::Refused {
                refusal: Refusal::Permission(_),
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn what_speaks_another_protocol_is_no_store() {
    for reply in [
        &b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"220 smtp ready\r\n",
        b"\0\0\0\0\xff\xff\xff\xff",
        b"$99999999999999999999\r\n",
        b"*-7\r\n",
        b"$-7\r\n",
        b"+PONG\r\n",
        b":1\r\n",
        b"*0\r\n",
        b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+x\r\n",
        b"_\r\n",
    ] {
        let port = answering(reply).await;
        let refused = refusal(&format!("redis://127.0.0.1:{port}")).await;
        assert_eq!(refused, Refusal::NotAStore, "{:?}", String::from_utf8_lossy(reply));
    }
}

#[tokio::test]
async fn deep_and_endless_replies_end() {
    let deep: &'static [u8] = "*1\r\n".repeat(50_000).leak().as_bytes();
    for reply in [deep, b"*2147483647\r\n:1\r\n", b"$536870912\r\nxxxx"] {
        let port = answering(reply).await;
        let address = StoreAddress::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
        let limits = Limits {
            time: Duration::from_millis(200),
            ..Limits::default()
        };
        assert!(RedisStore::connect(&address, limits).await.is_err());
    }
}

#[tokio::test]
async fn what_never_answers_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = StoreAddress::parse(&format!("redis://127.0.0.1:{port}")).unwrap();
    let limits = Limits {
        time: Duration::from_millis(100),
        ..Limits::default()
    };
    let error = RedisStore::connect(&address, limits).await.unwrap_err();
    assert!(matches!(&error, StoreError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn where_nobody_listens_the_store_is_unreachable() {
    for host in ["127.0.0.1", "no-such-host.invalid"] {
        let error = connect(&format!("redis://{host}:{}", free_port())).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
        assert!(std::error::Error::source(&error).unwrap().to_string().contains(host));
    }
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let error = connect(&format!("redis://127.0.0.1:{port}")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let hello = b"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n";
    let ancient = b"-ERR unknown command `HELLO`, with args beginning with: `2`, \r\n";
    for (reply, version) in [(&hello[..], "6.0.9"), (ancient, "5 or lower")] {
        let port = answering(reply).await;
        let refused = refusal(&format!("redis://127.0.0.1:{port}")).await;
        let old = Refusal::OldServer {
            found: version.into(),
            needed: "6.2",
        };
        assert_eq!(refused, old);
    }
}

#[tokio::test]
async fn a_prefix_with_data_of_others_is_refused() {
    let server = Server::start(&[]).await;
    server.say("SET pegboardx:1 x").await;
    server.say("SET team:report x").await;
    connect(&server.address()).await.unwrap();
    let refused = refusal(&format!("{}?prefix=team", server.address())).await;
    assert_eq!(refused, Refusal::ForeignData("team:report".into()));
    assert!(
        server.say("EXISTS team:format").await.starts_with(":0"),
        "nothing is written there"
    );
}

#[tokio::test]
async fn another_format_is_refused_also_when_it_appears_later() {
    let mut server = Server::start(&[]).await;
    let store = connect(&server.address()).await.unwrap();
    server.restart().await;
    server.say("SET pegboard:format pegboard-store_9").await;
    let other = refusal(&server.address()).await;
    assert!(
        matches!(&other, Refusal::OtherFormat { found, .. } if found == "pegboard-store_9"),
        "{other}"
    );
    let error = store.put(&Key::new("k", &[]), bytes("x"), LONG).await;
    // The first operation may find out that its connection is gone.
    let error = match error {
        Err(StoreError::Unreachable { .. }) => store.ping().await.unwrap_err(),
        other => other.unwrap_err(),
    };
    assert!(matches!(&error, StoreError::Refused { .. }), "{error}");
}
