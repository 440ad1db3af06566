//! A running authorization server.

use std::{io, sync::Arc};

use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    clients::Client,
    fault::AuthFault,
    issuer::Issuer,
    jws::SigningKey,
    protect::Protected,
    record::{AuthRequest, IssuedToken},
    routes::router,
    settings::AuthorizationServer,
    token::test_claims,
};
use crate::{fake::FakeServer, server::lock, wire::net::Wire};

/// An authorization server on a loopback port. It stops when the handle is dropped.
#[derive(Debug)]
pub struct IssuerHandle {
    issuer: Arc<Issuer>,
    task: JoinHandle<()>,
}

impl AuthorizationServer {
    /// Starts it on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(self) -> io::Result<IssuerHandle> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let issuer = Issuer::new(self, &format!("http://{}", listener.local_addr()?));
        let router = router(&issuer);
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(IssuerHandle { issuer, task })
    }
}

impl IssuerHandle {
    /// The issuer identifier, `http://127.0.0.1:PORT` and its path.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.issuer.url
    }

    /// Starts an MCP server that accepts only the tokens of this issuer.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn protect(&self, fake: &FakeServer) -> io::Result<Protected> {
        self.protect_on(Wire::Http, fake).await
    }

    /// Like [`protect`](Self::protect), over this transport.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn protect_on(&self, wire: Wire, fake: &FakeServer) -> io::Result<Protected> {
        Protected::start(&self.issuer, wire, fake).await
    }

    /// Makes a server accept only the tokens of this issuer from now on, and name it in its metadata.
    pub fn take_over(&self, server: &Protected) {
        server.set_issuer(Arc::clone(&self.issuer));
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<AuthRequest> {
        self.issuer.requests.all()
    }

    /// The number of requests to an endpoint, for example `/token`.
    #[must_use]
    pub fn count(&self, endpoint: &str) -> usize {
        self.issuer.requests.count(|request| request.path.ends_with(endpoint))
    }

    /// The number of token requests with this grant type.
    #[must_use]
    pub fn token_requests(&self, grant_type: &str) -> usize {
        self.issuer
            .requests
            .count(|request| request.parameter("grant_type") == Some(grant_type))
    }

    /// Returns once this many requests to an endpoint came. It has no timeout of its own.
    pub async fn wait_for(&self, endpoint: &str, count: usize) {
        self.issuer
            .requests
            .wait_for(count, |request| request.path.ends_with(endpoint))
            .await;
    }

    /// All tokens and codes issued so far.
    #[must_use]
    pub fn issued(&self) -> Vec<IssuedToken> {
        self.issuer.issued.all()
    }

    /// How often a replaced refresh token was used again.
    #[must_use]
    pub fn reuses(&self) -> usize {
        lock(&self.issuer.books).reuses()
    }

    /// Adds a fault until [`heal`](Self::heal).
    pub fn add_fault(&self, fault: AuthFault) {
        self.issuer.add_fault(fault, None);
    }

    /// Adds a fault that happens this many times.
    pub fn add_fault_times(&self, times: u32, fault: AuthFault) {
        self.issuer.add_fault(fault, Some(times));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.issuer.heal();
    }

    /// Accepts no nonce of before any more, at the token endpoint.
    pub fn rotate_nonces(&self) {
        self.issuer.proofs.rotate();
    }

    /// Lets token requests continue that wait because of a fault, and all later ones.
    pub fn open_gate(&self) {
        self.issuer.open_gate(true);
    }

    /// Adds a client.
    pub fn add_client(&self, client: Client) {
        self.issuer.add_client(client);
    }

    /// Forgets a client, as servers do with those that registered themselves.
    pub fn forget_client(&self, id: &str) {
        self.issuer.forget_client(id);
    }

    /// Knows a client-id metadata document as if it had fetched it from this URL.
    pub fn add_document(&self, url: &str, document: Value) {
        self.issuer.add_document(url, document);
    }

    /// Signs with a new key from now on; the old ones stay in the key set.
    pub fn rotate_keys(&self) {
        self.issuer.rotate_keys(true);
    }

    /// Signs with a new key from now on, and drops the old ones: no earlier token is valid any more.
    pub fn replace_keys(&self) {
        self.issuer.rotate_keys(false);
    }

    /// Expires all access tokens now.
    pub fn expire_access_tokens(&self) {
        lock(&self.issuer.books).expire_all();
    }

    /// Revokes all sessions: their refresh tokens and access tokens.
    pub fn revoke_sessions(&self) {
        lock(&self.issuer.books).revoke_all();
    }

    /// The key that signs now.
    #[must_use]
    pub fn signing_key(&self) -> Arc<SigningKey> {
        self.issuer.signing_key()
    }

    /// The claims of a valid access token for this subject and audience, to be changed and signed by a test.
    #[must_use]
    pub fn claims(&self, subject: &str, audience: &str) -> Value {
        test_claims(&self.issuer, subject, audience)
    }

    /// A valid access token for this subject and audience.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        self.signing_key().sign("at+jwt", claims)
    }
}

impl Drop for IssuerHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}
