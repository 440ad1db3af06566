//! Notes whether this process has started a server with a sandbox: only then servers and the user have different rights.

use std::sync::atomic::{AtomicBool, Ordering};

static STARTED: AtomicBool = AtomicBool::new(false);

/// Notes that this process starts a server with a sandbox.
pub(in crate::shim) fn note() {
    STARTED.store(true, Ordering::Relaxed);
}

/// Whether this process has started a server with a sandbox.
pub(in crate::shim) fn were_started() -> bool {
    STARTED.load(Ordering::Relaxed)
}
