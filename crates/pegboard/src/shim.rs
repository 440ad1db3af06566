//! A guard process between this program and its stdio servers. It ensures that no process of a server outlives the server or this program:
//! even if the server starts daemons, and even if this program is killed.
//!
//! The guard is this program, re-executed once for all servers with a private first argument (`process_role`). This program holds a
//! `server_handle` for each server and a `guard_handle`, and talks to the guard over a `guard_connection` (`guard_protocol`,
//! `spawn_request`). The guard (`guard_process`) spawns `guarded_servers`, adopts their orphans, finds them in `/proc` (`process_table`),
//! attributes them to servers by their tags (`process_tag`) and watches its parent (`parent_watch`). If the guard is killed, this program
//! finds all processes by their tags and kills them.

#[cfg(target_os = "linux")]
mod guard_connection;
#[cfg(target_os = "linux")]
mod guard_handle;
#[cfg(target_os = "linux")]
mod guard_process;
#[cfg(target_os = "linux")]
mod guard_protocol;
#[cfg(target_os = "linux")]
mod guarded_servers;
#[cfg(target_os = "linux")]
mod kill_timing;
#[cfg(target_os = "linux")]
mod parent_watch;
#[cfg(target_os = "linux")]
mod process_role;
#[cfg(target_os = "linux")]
pub(crate) mod process_table;
#[cfg(target_os = "linux")]
mod process_tag;
#[cfg(target_os = "linux")]
pub(crate) mod rlimits;
#[cfg(target_os = "linux")]
mod server_handle;
#[cfg(target_os = "linux")]
mod spawn_request;

#[cfg(target_os = "linux")]
pub(crate) use server_handle::{ServerHandle, SpawnFailure};
#[cfg(target_os = "linux")]
pub(crate) use spawn_request::SpawnRequest;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether [`shim`] was called, so that this program can re-execute itself as a guard. Global, because it is a property of `main`.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Enables the guard process for stdio servers. Call it first in `main`.
///
/// After this call stdio servers run below one guard process, which is this program re-executed when the first of them starts. The guard
/// kills all descendants of a server when the server is stopped or exits, and all servers when this program is gone, even if it was killed.
/// If the guard itself is killed, this program kills the servers. The guard also disables core dumps and privilege escalation (`sudo`) for
/// the servers.
///
/// If this process was itself started as a guard, the call runs the guard and never returns. So nothing that reads arguments, prints or
/// starts threads may come before it. The servers inherit process attributes, such as the umask, from the moment when the guard started.
///
/// ```
/// // The first line of `main`; arguments, logging and the runtime come after it.
/// pegboard::shim();
/// ```
///
/// Without this call stdio servers are children of this program. They are stopped together with all descendants that can be found, but they
/// keep running if this program is killed. The same holds on systems other than Linux.
pub fn shim() {
    #[cfg(target_os = "linux")]
    {
        match process_role::Role::read(std::env::args_os()) {
            Some(process_role::Role::Guard { parent }) => guard_process::run(parent),
            Some(process_role::Role::Limited { rlimits, program, args }) => {
                process_role::exec_limited(&rlimits, &program, &args)
            }
            None => HOOKED.store(process_role::is_possible(), Ordering::Relaxed),
        }
    }
}

/// Whether servers can be spawned below a guard.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed)
}
