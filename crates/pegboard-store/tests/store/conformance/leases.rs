//! Sentences about leases and fences.

use std::{sync::Arc, time::Duration};

use pegboard_store::{Key, Lease, LeaseAttempt, PutFenced, Store, StoreError};

use crate::fixture::{Fixture, LONG, SHORT, bytes, eventually, text};

async fn leased(store: &dyn Store, key: &Key, holder: &str, ttl: Duration) -> Lease {
    match store.lease(key, holder, ttl).await.unwrap() {
        LeaseAttempt::Leased(lease) => lease,
        held @ LeaseAttempt::Held { .. } => panic!("{held:?}"),
    }
}

/// Waits until the lease is free, and takes it.
async fn leased_at_last(store: &dyn Store, key: &Key, holder: &str) -> Lease {
    eventually(|| async {
        match store.lease(key, holder, LONG).await.unwrap() {
            LeaseAttempt::Leased(lease) => Some(lease),
            LeaseAttempt::Held { .. } => None,
        }
    })
    .await
}

pub(crate) async fn a_lease_has_one_holder(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("lease", &["one"]));
    let ada = leased(store, &key, "ada", LONG).await;
    assert_eq!((ada.key(), ada.holder()), (&key, "ada"));
    let held = fixture.opening(1).lease(&key, "bob", LONG).await.unwrap();
    let LeaseAttempt::Held { by, expires_in } = held else {
        panic!("ada has it");
    };
    assert_eq!(by, "ada");
    assert!(expires_in <= LONG && expires_in > LONG / 2, "{expires_in:?}");
    let again = leased(store, &key, "ada", LONG).await;
    assert_eq!(again.fence(), ada.fence(), "she has it already");
}

pub(crate) async fn a_lease_that_was_released_is_given_with_a_higher_fence(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("lease", &["released"]));
    let ada = leased(store, &key, "ada", LONG).await;
    assert!(store.release(&ada).await.unwrap());
    assert!(!store.release(&ada).await.unwrap());
    assert!(!store.renew(&ada, LONG).await.unwrap());
    let bob = leased(store, &key, "bob", LONG).await;
    assert!(bob.fence() > ada.fence());
    assert!(!store.release(&ada).await.unwrap(), "it is bob's");
    assert!(store.release(&bob).await.unwrap());
    assert!(leased(store, &key, "bob", LONG).await.fence() > bob.fence());
}

pub(crate) async fn a_lease_that_expired_is_given_with_a_higher_fence(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("lease", &["expired"]));
    let ada = leased(store, &key, "ada", SHORT).await;
    let bob = leased_at_last(store, &key, "bob").await;
    assert!(bob.fence() > ada.fence());
    assert!(!store.renew(&ada, LONG).await.unwrap());
    assert!(!store.release(&ada).await.unwrap());
    assert!(store.renew(&bob, LONG).await.unwrap());
}

pub(crate) async fn one_of_many_gets_the_lease(fixture: &Fixture) {
    let lease = |store: Arc<dyn Store>, number: usize| async move {
        let key = Key::new("lease", &["race"]);
        match store.lease(&key, &format!("holder {number}"), LONG).await.unwrap() {
            LeaseAttempt::Leased(lease) => (true, lease.holder().to_owned()),
            LeaseAttempt::Held { by, .. } => (false, by),
        }
    };
    let results = fixture.race(24, lease).await;
    assert_eq!(results.iter().filter(|(is_leased, _)| *is_leased).count(), 1);
    assert!(
        results.iter().all(|(_, holder)| *holder == results[0].1),
        "all see the same holder"
    );
}

pub(crate) async fn a_lease_lasts_while_it_is_renewed(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("lease", &["renewed"]));
    let ada = leased(store, &key, "ada", LONG).await;
    assert!(store.renew(&ada, 2 * LONG).await.unwrap());
    let LeaseAttempt::Held { expires_in, .. } = store.lease(&key, "bob", LONG).await.unwrap() else {
        panic!("ada has it");
    };
    assert!(expires_in > LONG, "{expires_in:?}");
    assert!(store.renew(&ada, SHORT).await.unwrap());
    let bob = leased_at_last(store, &key, "bob").await;
    assert!(bob.fence() > ada.fence());
}

pub(crate) async fn a_late_holder_cannot_write(fixture: &Fixture) {
    let store = fixture.store();
    let (key, value) = (Key::new("lease", &["fenced"]), Key::new("state", &["of", "it"]));
    let ada = leased(store, &key, "ada", SHORT).await;
    let put = store.put_fenced(&value, bytes("ada"), LONG, &ada).await.unwrap();
    assert_eq!(put, PutFenced::Stored);
    let bob = leased_at_last(store, &key, "bob").await;
    let late = store.put_fenced(&value, bytes("late"), LONG, &ada).await.unwrap();
    assert_eq!(
        (late, text(store, &value).await.as_deref()),
        (PutFenced::Refused, Some("ada"))
    );
    assert!(store.release(&bob).await.unwrap());
    let put = store.put_fenced(&value, bytes("bob"), LONG, &bob).await.unwrap();
    assert_eq!(put, PutFenced::Stored, "nobody has a newer lease");
    let listed = store.list(&Key::new("state", &["of"]), 10).await.unwrap();
    assert_eq!(listed.values.len(), 1);
}

pub(crate) async fn the_name_of_a_holder_is_bounded(fixture: &Fixture) {
    let (store, key) = (fixture.store(), Key::new("lease", &["names"]));
    let strange = leased(store, &key, "a b:c\n\0é", LONG).await;
    assert!(store.renew(&strange, LONG).await.unwrap());
    let error = store.lease(&key, &"x".repeat(10_000), LONG).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
}
