//! The faults of an authorization server and of a server behind it.

/// One way in which an authorization server, or a server that accepts its tokens, misbehaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthFault {
    /// The metadata of the authorization server states this issuer.
    MetadataIssuer(String),
    /// The metadata names this URL for an endpoint, for example `token_endpoint`.
    MetadataEndpoint(&'static str, String),
    /// The metadata is sent after this many milliseconds.
    MetadataSlow(u64),
    /// The metadata has this many bytes more.
    MetadataHuge(usize),
    /// The metadata is an HTML page, with status 200.
    MetadataHtml,
    /// The metadata is JSON with members of other types.
    MetadataOtherTypes,
    /// The metadata is refused with this status.
    MetadataStatus(u16),
    /// The metadata redirects there.
    MetadataRedirect(String),
    /// The metadata of the protected resource states this resource.
    ResourceOf(String),
    /// The metadata of the protected resource names this issuer.
    ResourceIssuer(String),
    /// The metadata of the protected resource is sent after this many milliseconds.
    ResourceSlow(u64),
    /// The metadata of the protected resource is an HTML page, with status 200.
    ResourceHtml,
    /// The metadata of the protected resource has this many bytes more.
    ResourceHuge(usize),
    /// The redirect after the approval has this `iss`, or none.
    CallbackIssuer(Option<String>),
    /// The redirect after the approval has this `state`.
    CallbackState(String),
    /// The user refuses: the redirect has this error and no code.
    CallbackError(&'static str),
    /// The token endpoint does nothing and responds with this status and an HTML page.
    TokenStatus(u16),
    /// The token endpoint never responds, and does nothing.
    TokenHangs,
    /// The token endpoint does its work, then waits for [`open_gate`](super::IssuerHandle::open_gate) before it responds.
    TokenWaits,
    /// The token endpoint waits for [`open_gate`](super::IssuerHandle::open_gate) before it does anything.
    TokenWaitsFirst,
    /// The token endpoint does nothing and responds with this OAuth error and status 400.
    TokenError(&'static str),
    /// The token endpoint does nothing and responds with this OAuth error and status 200.
    TokenErrorWith200(&'static str),
    /// The token endpoint redirects there, with status 307.
    TokenRedirect(String),
    /// Token responses have no `expires_in`.
    NoExpiresIn,
    /// Access tokens have expired when they are issued.
    ExpiredAtOnce,
    /// Access tokens are for this audience.
    Audience(String),
    /// Access tokens name this issuer.
    TokenIssuer(String),
    /// Access tokens have no signature (`alg: none`).
    Unsigned,
    /// Access tokens are signed by a key that is not in the key set, under the id of one that is.
    ForeignKey,
    /// The registration endpoint refuses with this status.
    RegisterStatus(u16),
    /// The key set is refused with this status.
    KeysStatus(u16),
    /// The protected server refuses without `WWW-Authenticate`.
    NoChallenge,
    /// The protected server refuses every token with 403 and asks for this scope.
    InsufficientScope(String),
    /// The protected server refuses every token with 401.
    RefusesTokens,
    /// Proofs of possession need the nonce of the last refusal, at the token endpoint and at protected servers, until
    /// [`rotate_nonces`](super::IssuerHandle::rotate_nonces).
    DpopNonce,
    /// Every response has another nonce, and proofs of possession need one of the newest.
    DpopNonceEachTime,
    /// All proofs of possession are refused.
    DpopRefusesProofs,
    /// Tokens are bearer tokens although the request had a proof.
    DpopIgnored,
    /// The token response says that the token is bound to a key, although the request had no proof.
    DpopUnasked,
    /// The clocks of the issuer and of its servers are this many seconds ahead, where proofs of possession are checked.
    ClockAhead(u64),
}

/// A fault and how often it happens.
#[derive(Debug, Clone)]
pub(super) struct AuthRule {
    pub(super) fault: AuthFault,
    /// How often it still happens; `None` is for ever.
    pub(super) left: Option<u32>,
}

impl AuthRule {
    /// Whether the fault happens now. Each `true` counts.
    pub(super) fn hit(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}
