//! The store in Redis: real servers, their faults, and what is no server.

mod cluster;
mod faults;
mod refused;
mod sentinel;
mod server;
mod tls;

use std::sync::Arc;

use pegboard_store::{Limits, RedisStore, Store, StoreAddress, StoreError};

pub(crate) use self::server::Server;
use crate::{
    conformance::conforms,
    fixture::{Fixture, PATIENCE},
};

mod plain {
    super::conforms!(super::open, flavor = "multi_thread", worker_threads = 2);
}

mod sealed {
    async fn open() -> crate::fixture::Fixture {
        super::open().await.sealed()
    }
    super::conforms!(open, flavor = "multi_thread", worker_threads = 2);
}

/// A busy machine is slow, and the limit is not what most tests are about.
fn limits() -> Limits {
    Limits {
        time: PATIENCE,
        ..Limits::default()
    }
}

async fn connect(address: &str) -> Result<RedisStore, StoreError> {
    let address = StoreAddress::parse(address).unwrap();
    RedisStore::connect(&address, limits()).await
}

async fn open() -> Fixture {
    let server = Server::start(&[]).await;
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(connect(&server.address()).await.unwrap()));
    }
    Fixture::new(stores, server)
}
