//! Credentials that a program supplies at run time, for the servers of a board or of one principal.

mod auth_challenge;
mod caller_tokens;
mod credentials_key;
mod issued;
mod provider;
mod request_proof;
mod source;

pub use auth_challenge::{AuthChallenge, INSUFFICIENT_SCOPE};
pub use caller_tokens::{CallerRights, CallerToken, CallerTokens};
pub use credentials_key::{CredentialsKey, ViewCredentials};
pub(crate) use issued::Issued;
pub use provider::{Credential, CredentialError, CredentialReason, CredentialRequest, Credentials, credentials};
pub use provider::{PersonTask, Remedy};
#[cfg(any(feature = "http", feature = "websocket"))]
pub use request_proof::PROOF_HEADER;
pub use request_proof::RequestProof;
pub use source::{CredentialSource, NoCredential};
