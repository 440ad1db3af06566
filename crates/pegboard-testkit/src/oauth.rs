//! A local authorization server with real signatures, faults and a record, and MCP servers that accept only its tokens.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use pegboard_testkit::{FakeServer, Tool, oauth::{AuthFault, AuthorizationServer, follow_redirect}};
//!
//! let issuer = AuthorizationServer::new().start().await?;
//! let fake = FakeServer::new("wiki").tool(Tool::new("read").answers_text("page"));
//! let wiki = issuer.protect(&fake).await?;
//! issuer.add_fault_times(1, AuthFault::TokenStatus(500));
//! // A client that wants to use `wiki.url()` gets 401, finds the issuer and makes an authorization URL. The user approves at once:
//! # let authorization_url = "";
//! let redirected = follow_redirect(authorization_url, Some("alice")).await?;
//! # drop(redirected);
//! assert_eq!(issuer.count("/token"), 0);
//! # Ok(()) }
//! ```
//!
//! The issuer and each protected server have a port of their own, so a token that goes to the wrong one is seen: [`IssuerHandle::requests`]
//! holds all requests to the issuer, [`Protected::seen`] the token of each request to a server, [`IssuerHandle::issued`] all tokens and codes.
//!
//! | endpoint | behaviour |
//! |---|---|
//! | `/.well-known/oauth-protected-resource/mcp` of a server | RFC 9728 |
//! | `/.well-known/oauth-authorization-server`, `/.well-known/openid-configuration` | RFC 8414 and OpenID Connect, at all places of an issuer with a path, or at the chosen [`MetadataPlace`]s |
//! | `/authorize` | approves at once and redirects with `code`, `state` and `iss`; the parameter `login_hint` chooses the user |
//! | `/token` | `authorization_code` with PKCE, `refresh_token` with rotation and reuse detection, `client_credentials` with secret and `private_key_jwt`, token exchange, JWT bearer |
//! | `DPoP` at `/token` and at a server | after [`AuthorizationServer::dpop`], proofs are checked and tokens are bound to their keys (RFC 9449) |
//! | `/register`, `/revoke`, `/introspect`, `/jwks` | RFC 7591, 7009, 7662, 7517 |

mod authorize;
mod books;
mod browser;
mod clients;
mod dpop;
mod fault;
mod handle;
mod inspect;
mod issuer;
mod jws;
mod metadata;
mod protect;
mod record;
mod register;
mod reply;
mod routes;
mod rsa_key;
mod settings;
mod token;

pub use browser::follow_redirect;
pub use clients::Client;
pub use dpop::DpopSign;
pub use fault::AuthFault;
pub use handle::IssuerHandle;
pub use jws::{Algorithm, SigningKey, unsigned, verify};
pub use protect::Protected;
pub use record::{AuthRequest, IssuedToken, Seen, TokenKind};
pub use settings::{AuthorizationServer, MetadataPlace};
