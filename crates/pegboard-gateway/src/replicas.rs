//! The processes that serve one gateway together: which of them are there, which of them a client's session or question belongs to, and how a
//! request gets from one that it reached to the one that it belongs to.
//!
//! What they must agree on is in a [`Store`](pegboard_store::Store). A request is forwarded whole, sealed with the key that the replicas share, to the
//! listener for replicas of its owner, which admits it as if its client had sent it there.

mod envelope;
mod forward;
mod rates;
mod registry;
mod replay_guard;
mod session_owner;

pub(crate) use envelope::{Envelope, NotOpened, PROOF, REFUSED};
pub(crate) use forward::{ForwardedHead, NotForwarded};
pub use registry::{BadReplicaAddress, ReplicaCounts, Replicas};
pub(crate) use registry::{Known, Replica};
pub(crate) use session_owner::SessionOwner;
