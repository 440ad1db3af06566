//! A small process between us and each stdio server, so that no process of a server is ever left behind: not when the
//! server starts processes in sessions of their own, and not when this program is killed.
//!
//! The shim is this program itself, started again under a private first argument. It adopts whatever the server's
//! processes leave behind (`guard`), finds them in `/proc` (`tree`) and watches its parent (`parent`).

#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(target_os = "linux")]
pub(crate) mod rlimits;
#[cfg(target_os = "linux")]
pub(crate) mod tree;

#[cfg(target_os = "linux")]
pub(crate) use order::Order;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether [`shim`] was called, so that this program can be started again as a shim.
///
/// This is the library's only state of the whole process. It has to be: what it tells is a fact about `main`.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Lets this program guard the stdio servers it starts. Call it first in `main`.
///
/// From then on each stdio server runs below a small process of its own, which is this program started again. That
/// process ends the server with everything it ever started when the server is stopped or ends, and at once when this
/// program is gone, even if it was killed. It also switches core dumps and gaining privileges (`sudo`) off for the server.
///
/// When this process was itself started to be such a guard, the call runs it and never returns. So nothing that reads
/// arguments, prints or starts threads may come before it.
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
        if let Some(order) = Order::read(std::env::args_os()) {
            guard::run(order);
        }
        HOOKED.store(std::path::Path::new(order::PROGRAM).exists(), Ordering::Relaxed);
    }
}

/// Whether servers can be started below a shim.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed)
}
