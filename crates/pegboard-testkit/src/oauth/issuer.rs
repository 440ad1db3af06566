//! The state that all endpoints of an authorization server share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    books::{Books, Grant, now_seconds},
    clients::{Client, names_one_of},
    dpop::Proofs,
    fault::{AuthFault, AuthRule},
    jws::{Algorithm, SigningKey, random_text, unsigned, verify},
    record::{AuthRequest, IssuedToken, Record, TokenKind},
    settings::{AuthorizationServer, Refresh, TokenForm},
};
use crate::server::lock;

#[derive(Debug)]
pub(super) struct Issuer {
    /// The issuer identifier, which is also the base of its endpoints.
    pub(super) url: String,
    pub(super) settings: AuthorizationServer,
    faults: Mutex<Vec<AuthRule>>,
    clients: Mutex<HashMap<String, Client>>,
    documents: Mutex<HashMap<String, Value>>,
    /// The last one signs.
    keys: Mutex<Vec<Arc<SigningKey>>>,
    pub(super) books: Mutex<Books>,
    pub(super) requests: Record<AuthRequest>,
    pub(super) issued: Record<IssuedToken>,
    gate: watch::Sender<bool>,
    pub(super) proofs: Proofs,
}

impl Issuer {
    pub(super) fn new(settings: AuthorizationServer, origin: &str) -> Arc<Self> {
        let clients = settings
            .clients
            .iter()
            .map(|client| (client.id.clone(), client.clone()));
        Arc::new(Self {
            url: format!("{origin}{}", settings.path),
            faults: Mutex::new(settings.faults.clone()),
            clients: Mutex::new(clients.collect()),
            documents: Mutex::default(),
            keys: Mutex::new(vec![Arc::new(SigningKey::generate(settings.algorithm, "key-1"))]),
            books: Mutex::default(),
            requests: Record::default(),
            issued: Record::default(),
            gate: watch::Sender::new(false),
            proofs: Proofs::default(),
            settings,
        })
    }

    /// The part of the first fault that this picks, if the fault happens now.
    pub(super) fn fault<T>(&self, pick: impl Fn(&AuthFault) -> Option<T>) -> Option<T> {
        let mut rules = lock(&self.faults);
        rules
            .iter_mut()
            .find_map(|rule| pick(&rule.fault).filter(|_| rule.hit()))
    }

    /// Whether this fault happens now.
    pub(super) fn has(&self, fault: &AuthFault) -> bool {
        self.fault(|known| (known == fault).then_some(())).is_some()
    }

    pub(super) fn add_fault(&self, fault: AuthFault, times: Option<u32>) {
        lock(&self.faults).push(AuthRule { fault, left: times });
    }

    pub(super) fn heal(&self) {
        lock(&self.faults).clear();
    }

    pub(super) fn open_gate(&self, open: bool) {
        self.gate.send_replace(open);
    }

    pub(super) async fn pass_gate(&self) {
        // The sender lives as long as the issuer, so the wait cannot fail.
        let _ = self.gate.subscribe().wait_for(|open| *open).await;
    }

    /// A client by its id: registered, or by its metadata document.
    pub(super) fn client(&self, id: &str) -> Option<Client> {
        if let Some(client) = lock(&self.clients).get(id) {
            return Some(client.clone());
        }
        let documents = lock(&self.documents);
        let document = documents.get(id).filter(|document| document["client_id"] == id)?;
        self.settings.documents.then(|| Client::from_metadata(id, document))
    }

    pub(super) fn add_client(&self, client: Client) {
        lock(&self.clients).insert(client.id.clone(), client);
    }

    pub(super) fn forget_client(&self, id: &str) {
        lock(&self.clients).remove(id);
    }

    pub(super) fn add_document(&self, url: &str, document: Value) {
        lock(&self.documents).insert(url.to_owned(), document);
    }

    pub(super) fn public_keys(&self) -> Vec<Value> {
        lock(&self.keys).iter().map(|key| key.public_jwk()).collect()
    }

    pub(super) fn signing_key(&self) -> Arc<SigningKey> {
        let keys = lock(&self.keys);
        Arc::clone(keys.last().expect("an issuer always has a key"))
    }

    pub(super) fn rotate_keys(&self, keep: bool) {
        let mut keys = lock(&self.keys);
        let id = random_text("key-");
        if !keep {
            keys.clear();
        }
        keys.push(Arc::new(SigningKey::generate(self.settings.algorithm, id)));
    }

    /// The audiences of assertions for this issuer: itself, or its token endpoint.
    pub(super) fn audiences(&self) -> Vec<String> {
        vec![self.url.clone(), format!("{}/token", self.url)]
    }

    /// Issues an access token alone.
    pub(super) fn issue_access(&self, grant: &Grant) -> Value {
        let lifetime = if self.has(&AuthFault::ExpiredAtOnce) {
            Duration::ZERO
        } else {
            self.settings.lifetime
        };
        let access = self.access_token(grant, lifetime);
        lock(&self.books).add_access(&access, grant.clone(), lifetime);
        self.note(TokenKind::Access, &access, grant);
        let mut answer = json!({"access_token": access, "token_type": "Bearer", "scope": grant.scope});
        if grant.key.is_some() || self.has(&AuthFault::DpopUnasked) {
            answer["token_type"] = "DPoP".into();
        }
        if !self.has(&AuthFault::NoExpiresIn) {
            // A client that believes in a second more than there is would send an expired token.
            answer["expires_in"] = self.settings.lifetime.as_secs().into();
        }
        answer
    }

    /// Issues an access token, and a refresh token if this issuer has them.
    pub(super) fn issue(&self, grant: &Grant) -> Value {
        let mut answer = self.issue_access(grant);
        if self.settings.refresh != Refresh::Never {
            let refresh = lock(&self.books).add_refresh(grant.clone());
            self.note(TokenKind::Refresh, &refresh, grant);
            answer["refresh_token"] = refresh.into();
        }
        answer
    }

    fn access_token(&self, grant: &Grant, lifetime: Duration) -> String {
        if self.settings.tokens == TokenForm::Opaque {
            return random_text("at-");
        }
        let audience = self.fault(|fault| match fault {
            AuthFault::Audience(audience) => Some(audience.clone()),
            _ => None,
        });
        let issuer = self.fault(|fault| match fault {
            AuthFault::TokenIssuer(issuer) => Some(issuer.clone()),
            _ => None,
        });
        let now = now_seconds();
        let mut claims = json!({
            "iss": issuer.unwrap_or_else(|| self.url.clone()),
            "sub": grant.subject, "client_id": grant.client, "scope": grant.scope,
            "aud": audience.or_else(|| grant.resource.clone()),
            // Whole seconds: the record of issued tokens knows the exact end.
            "iat": now, "exp": now + lifetime.as_secs() + u64::from(!lifetime.is_zero()), "jti": random_text(""),
        });
        if let Some(key) = &grant.key {
            claims["cnf"] = json!({"jkt": key});
        }
        let key = self.signing_key();
        if self.has(&AuthFault::Unsigned) {
            return unsigned(&claims);
        }
        if self.has(&AuthFault::ForeignKey) {
            return SigningKey::generate(Algorithm::Es256, key.id()).sign("at+jwt", &claims);
        }
        key.sign("at+jwt", &claims)
    }

    pub(super) fn note(&self, kind: TokenKind, value: &str, grant: &Grant) {
        self.issued.push(IssuedToken {
            kind,
            value: value.to_owned(),
            subject: grant.subject.clone(),
            client: grant.client.clone(),
            resource: grant.resource.clone(),
            scope: grant.scope.clone(),
        });
    }

    /// Judges an access token as a resource server does. `audience` is the resource that it is presented to.
    pub(super) fn judge(&self, token: &str, audience: Option<&str>) -> Result<Grant, String> {
        let known = {
            let books = lock(&self.books);
            books.knows_access(token).then(|| books.access(token))
        };
        if self.settings.tokens == TokenForm::Opaque {
            let grant = known.ok_or("unknown access token")??;
            return match audience {
                Some(audience) if grant.resource.as_deref().is_some_and(|resource| resource != audience) => {
                    Err(format!("the access token is for {:?}", grant.resource))
                }
                _ => Ok(grant),
            };
        }
        let claims = verify(token, &self.public_keys())?;
        if claims["iss"] != self.url.as_str() {
            return Err(format!("the access token is by {}", claims["iss"]));
        }
        if claims["exp"].as_u64().is_none_or(|end| end <= now_seconds()) {
            return Err("the access token has expired".into());
        }
        if audience.is_some_and(|wanted| !names_one_of(&claims["aud"], &[wanted.to_owned()])) {
            return Err(format!("the access token is for {}", claims["aud"]));
        }
        match known {
            Some(known) => known.map_err(str::to_owned),
            // One that a test signed itself.
            None => Ok(Grant {
                subject: claims["sub"].as_str().unwrap_or_default().to_owned(),
                client: claims["client_id"].as_str().unwrap_or_default().to_owned(),
                scope: claims["scope"].as_str().unwrap_or_default().to_owned(),
                resource: claims["aud"].as_str().map(str::to_owned),
                session: None,
                key: claims["cnf"]["jkt"].as_str().map(str::to_owned),
            }),
        }
    }
}
