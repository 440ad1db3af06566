//! A store by its address.

use std::sync::Arc;

use pegboard_store::{Key, KeyRing, Store, StoreAddress, StoreError, open};

use crate::fixture::{LONG, bytes, text};

async fn open_with(address: &str, key: u8) -> Result<Arc<dyn Store>, StoreError> {
    let address = StoreAddress::parse(address)?;
    open(&address, KeyRing::new(&[key; 32], None)).await
}

async fn assert_sealed(address: &str) {
    let key = Key::new("k", &[]);
    let store = open_with(address, 1).await.unwrap();
    store.put(&key, bytes("x"), LONG).await.unwrap();
    assert_eq!(text(&*store, &key).await.as_deref(), Some("x"));
    if StoreAddress::parse(address).unwrap().is_shared() {
        let other = open_with(address, 2).await.unwrap();
        let error = other.get(&key).await.unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(address), "{error}");
    }
}

#[tokio::test]
async fn a_store_that_is_opened_by_its_address_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    assert_sealed("memory").await;
    assert_sealed(&format!("file:{}", folder.path().join("store").display())).await;
}

#[cfg(all(feature = "redis", unix))]
#[tokio::test]
async fn a_server_that_is_opened_by_its_address_is_sealed() {
    let server = crate::redis::Server::start(&[]).await;
    assert_sealed(&server.address()).await;
    let foreign = server.say("GETRANGE pegboard:v:k 0 -1").await;
    assert!(foreign.len() > 28, "{foreign}");
}

#[cfg(not(feature = "redis"))]
#[tokio::test]
async fn an_address_of_redis_needs_the_feature() {
    let error = open_with("redis://localhost", 1).await.unwrap_err();
    assert!(error.to_string().contains("feature `redis`"), "{error}");
}
