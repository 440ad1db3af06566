//! What systemd and its services tell each other: the state of the service, and the sockets that it listens on.
//!
//! Both are described in `sd_notify(3)` and `sd_listen_fds(3)`. On other systems, and without systemd, there is nothing to tell and no socket.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod notifier;
#[cfg(target_os = "linux")]
mod sockets;

#[cfg(target_os = "linux")]
pub(crate) use notifier::Notifier;
#[cfg(target_os = "linux")]
pub(crate) use sockets::passed_listeners;

#[cfg(not(target_os = "linux"))]
pub(crate) use absent::{Notifier, passed_listeners};
