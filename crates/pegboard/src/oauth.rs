//! Sign-in: obtains tokens for remote servers from their authorization servers, keeps them in files of the user, and refreshes them.
//!
//! [`OAuthClient`] is what the board uses. Below it, `discovery` finds the authorization server that a server names, `registration` makes
//! this program known there, `authorization` is the part with a person and a browser, and `token_request` exchanges what came of it for tokens.
//! Every URL that a server names goes through `checked_http`. `token_store` keeps the results. `binding` decides whether tokens are bound to a key,
//! and `dpop` makes the proofs of it.

mod access_token;
mod account;
mod address_class;
mod authorization;
mod binding;
mod challenge;
mod checked_http;
mod client;
mod client_auth;
mod clock;
mod discovery;
mod dpop;
mod error;
mod issuer_pin;
mod jws;
#[cfg(feature = "keyring")]
mod keyring_key;
mod listing;
mod metadata;
mod pick_up;
mod pkce;
mod redirect_uri;
mod registration;
mod renewal;
mod revocation;
mod session;
mod sign_in_page;
mod signed_out;
mod store_key;
mod store_lock;
mod stored;
#[cfg(test)]
mod test_server;
mod token_answer;
mod token_request;
mod token_store;

pub(crate) use account::{AccountKey, OAuthAccount};
pub(crate) use authorization::PendingSignIn;
pub(crate) use challenge::asks_for_token;
pub(crate) use client::OAuthClient;
pub(crate) use error::OAuthError;
#[cfg(feature = "keyring")]
pub(crate) use keyring_key::KeyringKey;
pub(crate) use listing::ListedSession;
pub(crate) use pick_up::StoreChange;
pub(crate) use redirect_uri::RedirectUri;
pub(crate) use session::SessionSummary;
pub(crate) use signed_out::{Forgotten, SignedOut};
pub(crate) use store_key::{FileKey, PlainText};
pub(crate) use token_store::TokenStore;
