//! [`StoreError`]: why an operation of a store failed.

use std::{error::Error, sync::Arc, time::Duration};

/// Why an operation of a store failed. No variant contains a value, a password or a key of the ring.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing answers at the address, or the connection was lost. A change may have taken effect.
    #[error("the store {address} cannot be reached; check that it runs and that its address is right")]
    Unreachable {
        /// Where the store is, without its password.
        address: Arc<str>,
        /// What failed.
        #[source]
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// The operation took too long. A change may have taken effect.
    #[error("the store {address} did not answer within {} ms; check its load and the network to it", limit.as_millis())]
    TimedOut {
        /// Where the store is, without its password.
        address: Arc<str>,
        /// The limit on the time.
        limit: Duration,
    },
    /// The store is there and does not serve this program.
    #[error("the store {address} cannot be used: {refusal}")]
    Refused {
        /// Where the store is, without its password.
        address: Arc<str>,
        /// Why.
        refusal: Refusal,
    },
    /// A value is larger than a store takes.
    #[error("{what} has {bytes} bytes, and a store takes at most {limit}; store less, or in parts")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// What is stored is not what was stored, so it is not returned.
    #[error("`{key}` in the store {address} is damaged: {reason}; remove it, and check who else writes to the store")]
    Damaged {
        /// Where the store is, without its password.
        address: Arc<str>,
        /// The name of the value.
        key: Box<str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The address of a store cannot be used.
    #[error("the address of the store cannot be used: {reason}")]
    BadAddress {
        /// What is wrong with it. It does not contain the address, which may have a password.
        reason: String,
    },
}

/// Why a store does not serve this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It does not accept the user and the password, or wants them.
    #[error("it does not accept the user and the password, or wants some; set them in its address")]
    Credentials,
    /// The user may not do what is needed.
    #[error("its user may not do what is needed: {0}; extend the user's rules")]
    Permission(String),
    /// What answers is no Redis or Valkey.
    #[error("what answers there is no Redis or Valkey; check the host and the port")]
    NotAStore,
    /// It is too old.
    #[error("it is version {found} of Redis, and at least {needed} is needed; update it")]
    OldServer {
        /// The version that it says.
        found: String,
        /// The lowest version that works.
        needed: &'static str,
    },
    /// Another version of Pegboard keeps its state there.
    #[error(
        "its format is `{found}`, and this program knows `{known}`; use the same version of the program everywhere, or another prefix or folder"
    )]
    OtherFormat {
        /// The format that is there.
        found: String,
        /// The format of this program.
        known: &'static str,
    },
    /// There are data of others.
    #[error("`{0}` is there, which this program did not write; choose an empty prefix or folder")]
    ForeignData(String),
    /// The folder is not private.
    #[error("its folder is not private: {0}; it must belong to the user, and nobody else may write to it")]
    NotPrivate(&'static str),
    /// It holds as much as it may.
    #[error("it is full; give it more memory, or store less")]
    Full,
    /// Sentinels know no such primary.
    #[error("its sentinels know no primary `{0}`; check the name")]
    UnknownPrimary(String),
    /// Anything else, in the words of the store.
    #[error("it says `{0}`")]
    Other(String),
}
