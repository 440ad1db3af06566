//! Sealed values: only holders of a key read them, and only where they were put.

use std::sync::Arc;

use pegboard_store::{Key, KeyRing, LogBounds, MemoryStore, SealedStore, Store, StoreError};

use crate::fixture::{LONG, bytes, text};

const BOUNDS: LogBounds = LogBounds {
    entries: 10,
    bytes: 10_000,
};

fn sealed(inner: &Arc<MemoryStore>, first: u8, second: Option<u8>) -> SealedStore {
    let second = second.map(|byte| [byte; 32]);
    let ring = KeyRing::new(&[first; 32], second.as_ref());
    SealedStore::new(inner.clone(), ring, "memory")
}

fn assert_damaged<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Damaged { .. })), "{result:?}");
}

#[tokio::test]
async fn what_is_stored_does_not_contain_the_value() {
    let inner = Arc::new(MemoryStore::new());
    let (store, key) = (sealed(&inner, 1, None), Key::new("k", &["a"]));
    for _ in 0..2 {
        store.put(&key, bytes("plain text"), LONG).await.unwrap();
        store
            .append(&key, vec![bytes("plain text")], BOUNDS, LONG)
            .await
            .unwrap();
    }
    let stored = inner.get(&key).await.unwrap().unwrap().bytes;
    assert!(!stored.windows(5).any(|part| part == b"plain"));
    let log = inner.read_after(&key, 0, 10).await.unwrap().entries;
    assert!(!log[0].bytes.windows(5).any(|part| part == b"plain"));
    assert_ne!(log[0].bytes, log[1].bytes, "equal values look different");
    let printed = format!("{store:?}");
    assert!(!printed.contains("plain") && !printed.contains("1, 1"), "{printed}");
}

#[tokio::test]
async fn a_value_that_was_changed_or_moved_is_damaged() {
    let inner = Arc::new(MemoryStore::new());
    let store = sealed(&inner, 1, None);
    let (key, other) = (Key::new("k", &["a"]), Key::new("k", &["b"]));
    store.put(&key, bytes("value"), LONG).await.unwrap();
    let stored = inner.get(&key).await.unwrap().unwrap().bytes;
    for position in 0..stored.len() {
        let mut changed = stored.to_vec();
        changed[position] ^= 1;
        inner.put(&key, changed.into(), LONG).await.unwrap();
        assert_damaged(&store.get(&key).await);
    }
    for part in [0, 1, 11, 12, 27, 28, stored.len() - 1] {
        inner.put(&key, stored.slice(..part), LONG).await.unwrap();
        assert_damaged(&store.get(&key).await);
        assert_damaged(&store.put_new(&key, bytes("x"), LONG).await);
    }
    inner.put(&other, stored.clone(), LONG).await.unwrap();
    assert_damaged(&store.get(&other).await);
    let listing = store.list(&Key::new("k", &[]), 10).await.unwrap();
    assert_eq!((listing.values.len(), listing.damaged), (0, 2));
    assert_damaged(&store.take(&other).await);
    inner.append(&key, vec![stored], BOUNDS, LONG).await.unwrap();
    assert_damaged(&store.read_after(&key, 0, 10).await);
}

#[tokio::test]
async fn keys_are_replaced_one_after_the_other() {
    let inner = Arc::new(MemoryStore::new());
    let key = Key::new("k", &["a"]);
    sealed(&inner, 1, None).put(&key, bytes("old"), LONG).await.unwrap();
    assert_damaged(&sealed(&inner, 2, None).get(&key).await);
    let both = sealed(&inner, 2, Some(1));
    assert_eq!(text(&both, &key).await.as_deref(), Some("old"));
    both.put(&key, bytes("new"), LONG).await.unwrap();
    assert_eq!(text(&sealed(&inner, 2, None), &key).await.as_deref(), Some("new"));
    assert_eq!(text(&sealed(&inner, 1, Some(2)), &key).await.as_deref(), Some("new"));
    assert_damaged(&sealed(&inner, 1, None).get(&key).await);
}
