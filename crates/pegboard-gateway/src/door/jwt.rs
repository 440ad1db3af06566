//! Signed JSON Web Tokens: parsing, keys of issuers, and signatures. What the claims mean is not decided here.

mod issuer_keys;
mod jwk;
mod jws;

pub(super) use issuer_keys::{IssuerKeys, Proof};
pub(super) use jws::{Jws, MAX_TOKEN};
