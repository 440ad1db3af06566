//! The state that replicas of a gateway share, behind one trait: [`Store`].
//!
//! | looking for | type |
//! | --- | --- |
//! | the operations | [`Store`] |
//! | the names of values | [`Key`] |
//! | state of one process | [`MemoryStore`] |
//! | state in a folder that several processes share | [`FileStore`] |
//! | state in Redis or Valkey, behind the feature `redis` | `RedisStore` |
//! | values that only holders of a key can read | [`SealedStore`], [`KeyRing`] |
//! | a store by its address | [`open`], [`StoreAddress`] |
//!
//! Nothing here knows MCP, a gateway or what the values mean. The API follows the needs of the other crates. Programs use the crate `pegboard`.

mod address;
mod error;
mod file;
mod key;
mod key_ring;
mod lease;
mod limits;
mod log;
mod memory;
mod open;
mod rate;
#[cfg(feature = "redis")]
mod redis;
mod sealed;
mod store;
mod value;

pub use address::StoreAddress;
pub use error::{Refusal, StoreError};
pub use file::FileStore;
pub use key::Key;
pub use key_ring::KeyRing;
pub use lease::{Lease, LeaseAttempt};
pub use limits::Limits;
pub use log::{LogBounds, LogEntry, LogRead};
pub use memory::{MemoryBounds, MemoryStore};
pub use open::open;
pub use rate::{Draw, Rate};
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use sealed::SealedStore;
pub use store::{Answer, Store};
pub use value::{Listing, PutFenced, PutNew, Replaced, Value, Version};
