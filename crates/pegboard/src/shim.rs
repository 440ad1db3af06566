//! A small process between us and our stdio servers, so that no process of a server is ever left behind: not when the
//! server starts processes in sessions of their own, and not when this program is killed.
//!
//! The guard is this program itself, started again under a private first argument (`role`), once for all servers. It
//! starts them as it is told (`client` and `guard` speak in `message`s about `order`s), adopts whatever their processes
//! leave behind (`wards`), finds them in `/proc` (`tree`), tells whose they are (`tag`) and watches its parent (`parent`).
//! When the guard itself is killed, this program finds all processes by their tags and kills them.

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod guarded_servers;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod parent_watch;
#[cfg(target_os = "linux")]
pub(crate) mod process_table;
#[cfg(target_os = "linux")]
mod process_tag;
#[cfg(target_os = "linux")]
pub(crate) mod rlimits;
#[cfg(target_os = "linux")]
mod role;
#[cfg(target_os = "linux")]
mod spawn_request;

#[cfg(target_os = "linux")]
pub(crate) use client::{Guarded, NotStarted};
#[cfg(target_os = "linux")]
pub(crate) use spawn_request::SpawnRequest;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether [`shim`] was called, so that this program can be started again as a guard.
///
/// It is a state of the whole process because it tells a fact about `main`.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Lets this program guard the stdio servers it starts. Call it first in `main`.
///
/// From then on stdio servers run below one small process, which is this program started again with the first of them. That
/// process ends a server with everything it ever started when the server is stopped or ends, and all servers at once when
/// this program is gone, even if it was killed. When it is killed itself, this program ends the servers. It also switches
/// core dumps and gaining privileges (`sudo`) off for the servers.
///
/// When this process was itself started to be such a guard, the call runs it and never returns. So nothing that reads
/// arguments, prints or starts threads may come before it. The servers inherit what the program had when the first of
/// them was started, such as its umask.
///
/// ```
/// // The first line of `main`; arguments, logging and the runtime come after it.
/// pegboard::shim();
/// ```
///
/// Without this call stdio servers are children of this program itself. They are stopped with everything that can be
/// found of them, but nobody stops them when this program is killed. The same holds on systems other than Linux.
pub fn shim() {
    #[cfg(target_os = "linux")]
    {
        match role::Role::read(std::env::args_os()) {
            Some(role::Role::Guard { parent }) => guard::run(parent),
            Some(role::Role::Limited { rlimits, program, args }) => role::become_limited(&rlimits, &program, &args),
            None => HOOKED.store(role::is_possible(), Ordering::Relaxed),
        }
    }
}

/// Whether servers can be started below a guard.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed)
}
