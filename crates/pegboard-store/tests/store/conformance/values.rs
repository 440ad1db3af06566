//! Sentences about values.

use std::time::Duration;

use bytes::Bytes;
use pegboard_store::{Draw, Key, LogBounds, PutNew, Rate, Replaced, Store, StoreError};

use crate::fixture::{Fixture, LONG, SHORT, bytes, eventually, text};

const BOUNDS: LogBounds = LogBounds {
    entries: 10,
    bytes: 10_000,
};

pub(crate) async fn a_value_is_the_one_that_was_put_last(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("value", &["a"]));
    assert_eq!(text(store, &key).await, None);
    store.put(&key, bytes("first"), LONG).await.unwrap();
    store.put(&key, bytes("second"), LONG).await.unwrap();
    assert_eq!(text(&*fixture.opening(1), &key).await.as_deref(), Some("second"));
    assert!(store.remove(&key).await.unwrap());
    assert!(!store.remove(&key).await.unwrap());
    assert_eq!(text(store, &key).await, None);
}

pub(crate) async fn a_value_may_be_anything_under_any_name(fixture: &Fixture) {
    let store = fixture.store();
    let every_byte: Vec<u8> = (0..=255).collect();
    let long = "x".repeat(5000);
    let names: [&[&str]; 6] = [
        &[],
        &[""],
        &["a:b", "c d\n"],
        &["*", "[a]", "?"],
        &["é", "../..", "\0"],
        &[&long],
    ];
    for (number, parts) in names.iter().enumerate() {
        for value in [&[][..], &every_byte, &[u8::try_from(number).unwrap()]] {
            let key = Key::new("any", parts);
            store.put(&key, Bytes::copy_from_slice(value), LONG).await.unwrap();
            assert_eq!(store.get(&key).await.unwrap().unwrap().bytes, value, "{key}");
        }
    }
    for (number, parts) in names.iter().enumerate() {
        let value = store.take(&Key::new("any", parts)).await.unwrap().unwrap();
        assert_eq!(value.bytes, [u8::try_from(number).unwrap()][..], "{parts:?}");
    }
}

pub(crate) async fn a_value_is_gone_when_its_time_is_over(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("value", &["short"]));
    store.put(&key, bytes("x"), SHORT).await.unwrap();
    eventually(|| async { text(store, &key).await.is_none().then_some(()) }).await;
    assert_eq!(store.take(&key).await.unwrap(), None);
    assert!(!store.remove(&key).await.unwrap());
    let stored = store.put_new(&key, bytes("y"), LONG).await.unwrap();
    assert!(matches!(stored, PutNew::Stored(_)));
    assert_eq!(text(store, &key).await.as_deref(), Some("y"));
}

pub(crate) async fn putting_a_value_again_gives_it_a_new_time(fixture: &Fixture) {
    let store = fixture.store();
    let [kept, replaced, other] = ["kept", "replaced", "other"].map(|name| Key::new("value", &[name]));
    store.put(&kept, bytes("x"), SHORT).await.unwrap();
    store.put(&kept, bytes("x"), LONG).await.unwrap();
    let PutNew::Stored(version) = store.put_new(&replaced, bytes("x"), LONG).await.unwrap() else {
        panic!("it is new");
    };
    store.replace(&replaced, &version, bytes("y"), SHORT).await.unwrap();
    store.put(&other, bytes("x"), SHORT).await.unwrap();
    eventually(|| async { text(store, &other).await.is_none().then_some(()) }).await;
    eventually(|| async { text(store, &replaced).await.is_none().then_some(()) }).await;
    assert_eq!(text(store, &kept).await.as_deref(), Some("x"));
}

pub(crate) async fn put_new_stores_only_where_nothing_is(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("value", &["new"]));
    let PutNew::Stored(version) = store.put_new(&key, bytes("first"), LONG).await.unwrap() else {
        panic!("nothing was there");
    };
    let PutNew::Exists(value) = store.put_new(&key, bytes("second"), LONG).await.unwrap() else {
        panic!("a value was there");
    };
    assert_eq!((value.bytes, value.version), (bytes("first"), version));
    assert_eq!(text(store, &key).await.as_deref(), Some("first"));
}

pub(crate) async fn one_of_many_put_news_stores(fixture: &Fixture) {
    let put = |store: std::sync::Arc<dyn Store>, number: usize| async move {
        let key = Key::new("value", &["race"]);
        let put = store.put_new(&key, bytes(&number.to_string()), LONG).await.unwrap();
        match put {
            PutNew::Stored(_) => (true, bytes(&number.to_string())),
            PutNew::Exists(value) => (false, value.bytes),
        }
    };
    let results = fixture.race(24, put).await;
    let stored = results.iter().filter(|(is_stored, _)| *is_stored).count();
    assert_eq!(stored, 1);
    assert!(
        results.iter().all(|(_, value)| *value == results[0].1),
        "all see the same value"
    );
}

pub(crate) async fn a_value_is_taken_by_exactly_one_caller(fixture: &Fixture) {
    let key = Key::secret("code", &[], b"c4nary7f3a9b1e");
    fixture.store().put(&key, bytes("once"), LONG).await.unwrap();
    let take = |store: std::sync::Arc<dyn Store>, _| async move {
        let key = Key::secret("code", &[], b"c4nary7f3a9b1e");
        store.take(&key).await.unwrap().map(|value| value.bytes)
    };
    let taken: Vec<Bytes> = fixture.race(24, take).await.into_iter().flatten().collect();
    assert_eq!(taken, [bytes("once")]);
}

pub(crate) async fn a_replacement_needs_the_version_that_stands(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("value", &["versions"]));
    store.put(&key, bytes("1"), LONG).await.unwrap();
    let first = store.get(&key).await.unwrap().unwrap().version;
    let Replaced::Stored(second) = store.replace(&key, &first, bytes("2"), LONG).await.unwrap() else {
        panic!("the version stands");
    };
    let Replaced::Lost(Some(value)) = store.replace(&key, &first, bytes("3"), LONG).await.unwrap() else {
        panic!("the version is old");
    };
    assert_eq!((value.bytes, &value.version), (bytes("2"), &second));
    let third = store.replace(&key, &second, bytes("3"), LONG).await.unwrap();
    assert!(matches!(third, Replaced::Stored(_)));
    assert_eq!(text(store, &key).await.as_deref(), Some("3"));
    store.remove(&key).await.unwrap();
    assert_eq!(
        store.replace(&key, &second, bytes("4"), LONG).await.unwrap(),
        Replaced::Lost(None)
    );
    assert_eq!(text(store, &key).await, None);
}

pub(crate) async fn no_change_is_lost_between_racing_replacements(fixture: &Fixture) {
    let key = Key::new("value", &["counter"]);
    fixture.store().put(&key, bytes("0"), LONG).await.unwrap();
    let count = |store: std::sync::Arc<dyn Store>, _| async move {
        let key = Key::new("value", &["counter"]);
        for _ in 0..4 {
            let mut value = store.get(&key).await.unwrap().unwrap();
            loop {
                let number: u32 = std::str::from_utf8(&value.bytes).unwrap().parse().unwrap();
                let next = bytes(&(number + 1).to_string());
                match store.replace(&key, &value.version, next, LONG).await.unwrap() {
                    Replaced::Stored(_) => break,
                    Replaced::Lost(other) => value = other.unwrap(),
                }
            }
        }
    };
    fixture.race(8, count).await;
    assert_eq!(text(fixture.store(), &key).await.as_deref(), Some("32"));
}

pub(crate) async fn a_listing_has_the_values_right_below_its_key(fixture: &Fixture) {
    let store = fixture.store();
    let parent = Key::new("replica", &["eu"]);
    assert_eq!(store.list(&parent, 10).await.unwrap().values, []);
    let others: [&[&str]; 5] = [&[], &["eu"], &["eu", "a", "b"], &["eu2", "a"], &["eu-", "a"]];
    for parts in others {
        store
            .put(&Key::new("replica", parts), bytes("other"), LONG)
            .await
            .unwrap();
    }
    for name in ["b:1", "a", "removed", "taken"] {
        store
            .put(&Key::new("replica", &["eu", name]), bytes(name), LONG)
            .await
            .unwrap();
    }
    store
        .put(&Key::new("replica", &["eu", "short"]), bytes("short"), SHORT)
        .await
        .unwrap();
    store.remove(&Key::new("replica", &["eu", "removed"])).await.unwrap();
    store.take(&Key::new("replica", &["eu", "taken"])).await.unwrap();
    let listing = eventually(|| async {
        let listing = store.list(&parent, 10).await.unwrap();
        (listing.values.len() == 2).then_some(listing)
    })
    .await;
    let found: Vec<_> = listing
        .values
        .iter()
        .map(|(key, value)| (key.last_part().unwrap(), value.bytes.clone()))
        .collect();
    assert_eq!(found, [("a".to_owned(), bytes("a")), ("b:1".to_owned(), bytes("b:1"))]);
    assert_eq!((listing.damaged, listing.more), (0, false));
    let (key, value) = &listing.values[0];
    let replaced = store.replace(key, &value.version, bytes("new"), LONG).await.unwrap();
    assert!(
        matches!(replaced, Replaced::Stored(_)),
        "a listed version is one to replace"
    );
}

pub(crate) async fn a_listing_is_bounded(fixture: &Fixture) {
    let store = fixture.store();
    for number in 0..5 {
        let key = Key::new("replica", &[&number.to_string()]);
        store.put(&key, bytes("x"), LONG).await.unwrap();
    }
    let parent = Key::new("replica", &[]);
    let listing = store.list(&parent, 3).await.unwrap();
    assert_eq!((listing.values.len(), listing.more), (3, true));
    let listing = store.list(&parent, 5).await.unwrap();
    assert_eq!((listing.values.len(), listing.more), (5, false));
    let large = Bytes::from(vec![7; store.max_value_bytes()]);
    for number in 0..10 {
        let key = Key::new("large", &[&number.to_string()]);
        store.put(&key, large.clone(), LONG).await.unwrap();
    }
    let listing = store.list(&Key::new("large", &[]), 100).await.unwrap();
    assert!(
        (1..10).contains(&listing.values.len()) && listing.more,
        "{} of them",
        listing.values.len()
    );
}

pub(crate) async fn a_value_that_is_too_large_is_refused(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("value", &["large"]));
    let lease = match store.lease(&key, "me", LONG).await.unwrap() {
        pegboard_store::LeaseAttempt::Leased(lease) => lease,
        held @ pegboard_store::LeaseAttempt::Held { .. } => panic!("{held:?}"),
    };
    let largest = Bytes::from(vec![7; store.max_value_bytes()]);
    let too_large = Bytes::from(vec![7; store.max_value_bytes() + 1]);
    store.put(&key, largest.clone(), LONG).await.unwrap();
    store.append(&key, vec![largest.clone()], BOUNDS, LONG).await.unwrap();
    let value = store.get(&key).await.unwrap().unwrap();
    assert_eq!(value.bytes, largest);
    let replaced = store
        .replace(&key, &value.version, largest.clone(), LONG)
        .await
        .unwrap();
    assert!(matches!(replaced, Replaced::Stored(_)));
    for error in [
        store.put(&key, too_large.clone(), LONG).await.err(),
        store.put_new(&key, too_large.clone(), LONG).await.err(),
        store.replace(&key, &value.version, too_large.clone(), LONG).await.err(),
        store.put_fenced(&key, too_large.clone(), LONG, &lease).await.err(),
        store
            .append(&key, vec![bytes("x"), too_large], BOUNDS, LONG)
            .await
            .err(),
    ] {
        assert!(matches!(error, Some(StoreError::TooLarge { .. })), "{error:?}");
    }
    assert_eq!(
        store.get(&key).await.unwrap().unwrap().bytes,
        largest,
        "it is still there"
    );
    assert_eq!(store.read_after(&key, 0, 10).await.unwrap().entries.len(), 1);
}

pub(crate) async fn values_logs_buckets_and_leases_do_not_share_names(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("same", &["name"]));
    let rate = Rate::new(1, 0.001).unwrap();
    store.put(&key, bytes("value"), LONG).await.unwrap();
    store.append(&key, vec![bytes("entry")], BOUNDS, LONG).await.unwrap();
    assert_eq!(store.draw(&key, rate, 1).await.unwrap(), Draw::Drawn);
    store.lease(&key, "me", LONG).await.unwrap();
    assert_eq!(text(store, &key).await.as_deref(), Some("value"));
    assert!(store.remove(&key).await.unwrap());
    assert_eq!(store.read_after(&key, 0, 9).await.unwrap().entries.len(), 1);
    assert!(matches!(store.draw(&key, rate, 1).await.unwrap(), Draw::Wait(_)));
    let attempt = store.lease(&key, "you", LONG).await.unwrap();
    assert!(matches!(attempt, pegboard_store::LeaseAttempt::Held { .. }));
}

pub(crate) async fn the_shortest_and_the_longest_time_to_live_work(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("ttl", &["a"]));
    for (ttl, is_kept) in [(Duration::ZERO, false), (Duration::MAX, true)] {
        store.put(&key, bytes("x"), ttl).await.unwrap();
        store.append(&key, vec![bytes("x")], BOUNDS, ttl).await.unwrap();
        let attempt = store.lease(&key, "me", ttl).await.unwrap();
        let pegboard_store::LeaseAttempt::Leased(lease) = attempt else {
            panic!("{attempt:?}");
        };
        eventually(|| async { (text(store, &key).await.is_some() == is_kept).then_some(()) }).await;
        eventually(|| async { ((store.read_after(&key, 0, 1).await.unwrap().end > 0) == is_kept).then_some(()) }).await;
        eventually(|| async { (store.renew(&lease, ttl).await.unwrap() == is_kept).then_some(()) }).await;
    }
    let fastest = Rate::new(u32::MAX, 1e6).unwrap();
    assert_eq!(store.draw(&key, fastest, u32::MAX).await.unwrap(), Draw::Drawn);
    let slowest = Rate::new(u32::MAX, 1e-7).unwrap();
    let slow = Key::new("ttl", &["slow"]);
    assert_eq!(store.draw(&slow, slowest, u32::MAX).await.unwrap(), Draw::Drawn);
    assert!(matches!(
        store.draw(&slow, slowest, u32::MAX).await.unwrap(),
        Draw::Wait(_)
    ));
}

pub(crate) async fn a_store_answers(fixture: &Fixture) {
    fixture.store().ping().await.unwrap();
}
