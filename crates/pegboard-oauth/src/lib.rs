//! Sign-in: obtains tokens for remote servers from their authorization servers, keeps them in files of the user, and renews them.
//!
//! ```text
//! challenge of a server ──▶ discovery: its authorization server ──▶ registration: our client there
//!                                                                        ▼
//!                        token_request ◀── redirect ◀── authorization: a person with a browser
//!                              │ tokens
//!                              ▼
//! OAuthClient ◀──▶ token_store: files of the user, encrypted ◀── renewal: one task of one process at a time
//!      │ AccessToken, with proofs by `dpop` if `binding` binds it to a key
//!      ▼
//! the transports of `pegboard-client`
//! ```
//!
//! [`OAuthClient`] is what the board uses. Every URL that a server names goes through `checked_http`, which resolves the host once and connects
//! to the checked address. A renewal ends even if no caller waits for it, because the response may replace the refresh token.
//!
//! `SecretStore` (feature `keyring`) keeps what the user has no sign-in for: the secrets that configs refer to with `${secret:NAME}`.
//!
//! The API follows the needs of the other crates. Programs use the crate `pegboard` with its feature `oauth`.

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
mod sealed;
#[cfg(feature = "keyring")]
mod secret_store;
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

pub use account::{AccountKey, OAuthAccount};
pub use authorization::PendingSignIn;
pub use challenge::asks_for_token;
pub use client::OAuthClient;
pub use error::{OAuthError, Refusal};
#[cfg(feature = "keyring")]
pub use keyring_key::KeyringKey;
pub use listing::ListedSession;
pub use pick_up::StoreChange;
pub use redirect_uri::RedirectUri;
#[cfg(feature = "keyring")]
pub use secret_store::{SecretPlace, SecretStore, SecretStoreError, StoredSecret};
pub use session::SessionSummary;
pub use signed_out::{Forgotten, SignedOut};
pub use store_key::{FileKey, PlainText};
pub use token_store::TokenStore;
