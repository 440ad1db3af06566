//! Pins: the definitions of tools as they were first listed or accepted, kept across runs of the program.
//!
//! A server can change what its tools say after a person has looked at them. A pin is the hash of a tool's full definition under the
//! identity of its server: what is started or connected to, not the server's name in the config.

mod change;
mod identity;
mod judge;
mod pin_store;
mod pinned_server;

pub(crate) use change::command_name;
pub use change::{FieldChange, PinChange, PinState};
pub(crate) use identity::ServerIdentity;
pub(crate) use judge::{Judged, Listed, accept, judge, record};
pub(crate) use pin_store::Stamp;
pub use pin_store::{PinError, PinStore};
pub use pinned_server::{Pin, PinnedServer};
