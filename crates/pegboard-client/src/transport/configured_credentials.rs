//! The providers of credentials that a config names: a file with a token, or a program that prints headers.

use std::sync::Arc;

use super::{headers_helper::HelperCredentials, token_file::TokenFile};
use crate::credential::Credentials;
use pegboard_config::{Auth, Transport};
use pegboard_mask::ServerMasker;

/// The provider for a server whose config names a file or a program.
pub fn configured_credentials(transport: &Transport, masker: &ServerMasker) -> Option<Arc<dyn Credentials>> {
    let endpoint = transport.endpoint()?;
    match &endpoint.auth {
        Auth::BearerFile(path) => Some(Arc::new(TokenFile::new(path.clone()))),
        Auth::HeadersHelper(helper) => Some(Arc::new(HelperCredentials::new(
            helper.clone(),
            endpoint.url.clone(),
            masker.clone(),
        ))),
        _ => None,
    }
}
