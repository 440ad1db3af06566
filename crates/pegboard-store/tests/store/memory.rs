//! The store in memory, on paused time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use pegboard_store::{Key, Limits, MemoryBounds, MemoryStore, Refusal, Store, StoreError};

use crate::{
    conformance::conforms,
    fixture::{Fixture, LONG, bytes, text},
};

mod plain {
    super::conforms!(super::open, start_paused = true);
}

mod sealed {
    async fn open() -> crate::fixture::Fixture {
        super::open().await.sealed()
    }
    super::conforms!(open, start_paused = true);
}

#[expect(clippy::unused_async, reason = "the other stores wait when they are opened")]
async fn open() -> Fixture {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    Fixture::new(vec![store], ())
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_what_is_new_until_something_expires() {
    let bounds = MemoryBounds {
        entries: 2,
        bytes: 10_000,
    };
    let store = MemoryStore::with_limits(Limits::default(), bounds);
    let [first, second, third] = ["1", "2", "3"].map(|name| Key::new("k", &[name]));
    store.put(&first, bytes("a"), Duration::from_secs(10)).await.unwrap();
    store.put(&second, bytes("b"), LONG).await.unwrap();
    let error = store.put(&third, bytes("c"), LONG).await.unwrap_err();
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
    store.put(&second, bytes("new"), LONG).await.unwrap();
    let large = Bytes::from(vec![0; 20_000]);
    assert!(store.put(&second, large, LONG).await.is_err());
    assert_eq!(text(&store, &second).await.as_deref(), Some("new"));
    tokio::time::advance(Duration::from_secs(10)).await;
    store.put(&third, bytes("c"), LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_value_is_there_until_the_last_moment() {
    let (store, key) = (MemoryStore::new(), Key::new("k", &[]));
    store.put(&key, bytes("a"), Duration::from_secs(10)).await.unwrap();
    tokio::time::advance(Duration::from_millis(9_999)).await;
    assert_eq!(text(&store, &key).await.as_deref(), Some("a"));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(text(&store, &key).await, None);
}
