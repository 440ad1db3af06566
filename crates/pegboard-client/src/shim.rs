//! A guard process between this program and its stdio servers. It ensures that no process of a server outlives the server or this program:
//! even if the server starts daemons, and even if this program is killed.
//!
//! The guard is this program, re-executed once for all servers with a private first argument (`process_role`). This program holds a
//! `server_handle` for each server and a `guard_handle`, and talks to the guard over a `guard_connection` (`guard_protocol`,
//! `spawn_request`). The guard (`guard_process`) spawns `guarded_servers`, adopts their orphans, finds them in `/proc` (`process_table`),
//! attributes them to servers by their tags (`process_tag`) and watches its parent (`parent_watch`). If the guard is killed, this program
//! finds all processes by their tags and kills them.
//!
//! A server with limits or a sandbox of its own starts as this program again (`launcher`), which restricts itself (`rlimits`, `sandbox`)
//! and then executes the server, which may have a `scratch_folder` of its own (`folder_lock`). This program and the guard protect their own memory (`self_protection`).
//!
//! `local_peer` tells servers from other processes of the user at the other end of a connection (`socket_table`).

#[cfg(target_os = "linux")]
mod folder_lock;
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
mod launcher;
mod local_peer;
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
mod sandbox;
mod sandbox_status;
#[cfg(target_os = "linux")]
mod sandboxed_servers;
#[cfg(target_os = "linux")]
mod scratch_folder;
#[cfg(target_os = "linux")]
mod self_protection;
#[cfg(target_os = "linux")]
mod server_handle;
#[cfg(target_os = "linux")]
mod socket_diag;
#[cfg(target_os = "linux")]
mod socket_table;
#[cfg(target_os = "linux")]
mod spawn_request;

pub use local_peer::LocalPeer;
#[cfg(target_os = "linux")]
pub(crate) use sandbox::{MissingPath, PackageCache, SandboxPlan, SandboxReport};
pub use sandbox_status::SandboxStatus;
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
/// the servers, limits their resources ([`Rlimits`](pegboard_config::Rlimits)), sets their umask to 077, and enforces their
/// [`Sandbox`](pegboard_config::Sandbox).
///
/// The call also protects this program from its servers, which run as the same user: it becomes non-dumpable (`PR_SET_DUMPABLE`), so that
/// other processes of the user cannot read its environment and memory under `/proc` or attach a debugger to it, and it writes no core
/// dumps. A debugger that starts the program, or one that runs as root, still works. A program that runs as root is not protected
/// from its servers unless they have a sandbox.
///
/// If this process was itself started as a guard, the call runs the guard and never returns. So nothing that reads arguments, prints or
/// starts threads may come before it; the strict sandbox does not work below a program that has started threads by then. The
/// servers inherit process attributes, such as the scheduling priority, from the moment when the guard started.
///
/// ```
/// # mod pegboard { pub use pegboard_client::shim::shim; }
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
            Some(process_role::Role::Launcher { request, scratch }) => launcher::run(request, scratch.as_deref()),
            Some(process_role::Role::Init { request }) => launcher::run_init(request),
            Some(process_role::Role::Probe { request }) => launcher::run_probe(request),
            None => {
                self_protection::protect_this_process();
                HOOKED.store(process_role::is_possible(), Ordering::Relaxed);
            }
        }
    }
}

/// Whether servers can be spawned below a guard.
pub(crate) fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed)
}
