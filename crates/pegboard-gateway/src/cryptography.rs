//! The cryptography of TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

/// What the program has installed for all users of rustls, or else `ring`.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    let installed = CryptoProvider::get_default().cloned();
    installed.unwrap_or_else(|| Arc::new(ring::default_provider()))
}
