//! [`open`]: a store by its address.

use std::sync::Arc;

use crate::{
    address::{Place, StoreAddress},
    error::StoreError,
    file::FileStore,
    key_ring::KeyRing,
    limits::Limits,
    memory::MemoryStore,
    sealed::SealedStore,
    store::Store,
};

/// Opens a store, whose values are sealed with the keys. It fails if the store cannot be reached now; one that is lost later comes back by itself.
pub async fn open(address: &StoreAddress, ring: KeyRing) -> Result<Arc<dyn Store>, StoreError> {
    let limits = Limits::default();
    let store: Arc<dyn Store> = match address.place() {
        Place::Memory => Arc::new(MemoryStore::new()),
        Place::Folder(folder) => Arc::new(FileStore::open(folder, limits).await?),
        #[cfg(feature = "redis")]
        Place::Redis(_) => Arc::new(crate::redis::RedisStore::connect(address, limits).await?),
        #[cfg(not(feature = "redis"))]
        Place::Redis(_) => {
            return Err(StoreError::BadAddress {
                reason: "this program was built without the feature `redis`".into(),
            });
        }
    };
    Ok(Arc::new(SealedStore::new(store, ring, address.to_string())))
}
