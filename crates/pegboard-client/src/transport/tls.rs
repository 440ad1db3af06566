//! TLS settings of HTTP and WebSocket connections: trusted roots, client certificates, and what a server's certificate must prove.

mod certificate_files;
mod proof;
mod system_roots;
mod verifier;

use std::sync::Arc;

use rustls::{ClientConfig, client::Resumption, crypto::CryptoProvider};
use url::Url;

pub(super) use certificate_files::CertificateFiles;
pub(super) use system_roots::prepare;
use verifier::Verifier;
pub(super) use verifier::WrongId;

use super::dial_error::DialError;
use pegboard_config::Tls;

/// The cryptography of connections: what the program has installed for all users of rustls, or else what is built in. Nothing is installed.
fn provider() -> Option<Arc<CryptoProvider>> {
    CryptoProvider::get_default().cloned().or_else(built_in)
}

#[cfg(feature = "rustls-ring")]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::ring::default_provider()))
}

#[cfg(all(feature = "rustls-aws-lc", not(feature = "rustls-ring")))]
fn built_in() -> Option<Arc<CryptoProvider>> {
    Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

#[cfg(not(any(feature = "rustls-aws-lc", feature = "rustls-ring")))]
fn built_in() -> Option<Arc<CryptoProvider>> {
    None
}

/// The TLS settings for connections to `url`, with its files as they are now; `None` if it needs no TLS and there is no cryptography. Creating
/// them does not load the system's roots unless `tls.ca` is set.
pub(super) fn client_config(tls: &Tls, url: &Url) -> Result<Option<ClientConfig>, DialError> {
    Ok(reloading_config(tls, url)?.map(|settings| settings.config))
}

/// The TLS settings for connections to one server.
pub(super) struct TlsSettings {
    pub(super) config: ClientConfig,
    /// The files whose changes they follow when they are asked to.
    pub(super) files: Option<Arc<CertificateFiles>>,
}

/// Like [`client_config`], with the files that the settings came from.
pub(super) fn reloading_config(tls: &Tls, url: &Url) -> Result<Option<TlsSettings>, DialError> {
    let provider = match provider() {
        Some(provider) => provider,
        None if matches!(url.scheme(), "https" | "wss") => return Err(DialError::NoCryptography),
        None => return Ok(None),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::Tls(error.to_string()))?;
    let has_files = tls.client_cert.is_some() || (tls.ca.is_some() && !tls.insecure);
    let files = match has_files {
        true => Some(Arc::new(CertificateFiles::load(tls, provider.clone())?)),
        false => None,
    };
    if tls.insecure {
        tracing::warn!("the server's certificate is not checked, because its config says so");
    }
    let verifier = match &files {
        _ if tls.insecure => Verifier::accept_all(provider),
        _ if tls.server_id.is_some() && tls.ca.is_none() => {
            let problem = "`tls.server_id` needs `tls.ca`: the file with the authorities of its trust domain";
            return Err(DialError::Tls(problem.to_owned()));
        }
        Some(files) if tls.ca.is_some() => Verifier::with_files(provider, files.clone()),
        _ => Verifier::with_system_roots(provider),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &files {
        Some(files) if tls.client_cert.is_some() => builder.with_client_cert_resolver(files.clone()),
        _ => builder.with_no_client_auth(),
    };
    if files.is_some() {
        // A resumed session stays that of the certificates with which it began, whatever the files say now.
        config.resumption = Resumption::disabled();
    }
    Ok(Some(TlsSettings { config, files }))
}
