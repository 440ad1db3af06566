//! [`Proof`]: what a server's certificate must prove.

use std::sync::Arc;

use rustls::{RootCertStore, client::WebPkiServerVerifier};

use pegboard_config::SpiffeId;

/// What a certificate of the authorities in a file must prove.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    /// That it belongs to the host in the URL.
    HostName(Arc<WebPkiServerVerifier>),
    /// That it is the certificate of this workload, signed by one of these authorities. The host does not matter.
    Id(SpiffeId, Arc<RootCertStore>),
}
