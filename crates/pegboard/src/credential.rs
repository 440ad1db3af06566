//! Credentials that a program supplies at run time, for the servers of a board or of one principal.

mod caller_tokens;
mod credentials_key;
mod issued;
mod provider;
mod request_proof;
mod source;

#[cfg(feature = "oauth")]
pub(crate) use caller_tokens::CallerToken;
pub use caller_tokens::{CallerRights, CallerTokens};
pub(crate) use credentials_key::{CredentialsKey, ViewCredentials};
pub(crate) use issued::Issued;
pub(crate) use provider::Remedy;
pub use provider::{Credential, CredentialError, CredentialReason, CredentialRequest, Credentials};
#[cfg(any(feature = "http", feature = "websocket"))]
pub(crate) use request_proof::PROOF_HEADER;
#[cfg(feature = "oauth")]
pub(crate) use request_proof::RequestProof;
pub(crate) use source::{CredentialSource, NoCredential};
