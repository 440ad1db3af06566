//! The root certificates of the system. Without the feature `native-roots` there are none, and a server is trusted by what its config names.

use std::sync::{Arc, OnceLock};

use rustls::RootCertStore;
use url::Url;

/// The system's root certificates. They are loaded once per process: loading takes longer than most connections, and a hundred servers
/// would hold a hundred copies.
static SYSTEM_ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// Loads the system's root certificates on a blocking thread, if `url` needs TLS. Otherwise the first TLS handshake would load them on an
/// async thread.
pub(crate) async fn prepare(url: &Url) {
    // An async cell: tasks that wait for the load do not block a thread.
    static LOADED: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    if matches!(url.scheme(), "https" | "wss") && SYSTEM_ROOTS.get().is_none() {
        let load = || async {
            // Fails only when the runtime shuts down.
            let _ = tokio::task::spawn_blocking(|| drop(system_roots())).await;
        };
        LOADED.get_or_init(load).await;
    }
}

/// The system's root certificates. A system without any is not an error here, but makes the handshake fail.
pub(super) fn system_roots() -> Arc<RootCertStore> {
    let load = || {
        #[cfg_attr(not(feature = "native-roots"), expect(unused_mut, reason = "there are none to add"))]
        let mut roots = RootCertStore::empty();
        #[cfg(feature = "native-roots")]
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    SYSTEM_ROOTS.get_or_init(load).clone()
}
