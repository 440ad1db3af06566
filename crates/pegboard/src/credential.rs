//! Credentials that a program supplies at run time, for the servers of a board or of one principal.

mod issued;
mod provider;
mod source;

pub(crate) use issued::Issued;
pub(crate) use provider::Remedy;
pub use provider::{Credential, CredentialError, CredentialReason, CredentialRequest, Credentials};
pub(crate) use source::{CredentialSource, NoCredential};
