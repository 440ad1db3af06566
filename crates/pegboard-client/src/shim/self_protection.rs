//! Protects the memory and the environment of this process from other processes of the same user.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Makes this process non-dumpable and switches its core dumps off.
///
/// The kernel then gives its files in `/proc` to root, so that other processes of the same user can neither read its environment and its memory
/// nor trace it. Processes of root still can. Neither call fails on Linux.
pub(super) fn protect_this_process() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let limit = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Core)
    };
    let _ = setrlimit(Resource::Core, limit);
}
