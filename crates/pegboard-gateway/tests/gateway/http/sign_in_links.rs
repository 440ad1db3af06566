//! The links to sign-in pages and the visits of browsers end with the token that they were given out for, whatever ends it.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use axum::{Extension, Router, routing::post};
use pegboard::{
    Secret,
    config::{OAuthIntrospection, OAuthRule, ServeOAuth},
};
use pegboard_gateway::{Caller, GatewayBuilder, SignInLinks, Token};
use serde_json::json;

use crate::http::{
    client::Http,
    door::token,
    issuer::{GATEWAY, Issuer, call_with, in_seconds, pass},
    service::{Running, start_with},
    signer::Signer,
};

/// A gateway whose path `/link` gives out links.
struct Pages {
    server: Running,
    links: SignInLinks,
}

impl Pages {
    async fn new(configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let kept: Arc<OnceLock<SignInLinks>> = Arc::default();
        let server = start_with(|builder| {
            let links = builder.sign_in_links();
            links.serve(|_| true);
            kept.set(links.clone()).unwrap();
            let link = async move |Extension(caller): Extension<Caller>| {
                links.create(&caller, None).unwrap().url.expose().to_owned()
            };
            let others = Router::new().route("/link", post(link));
            configure(builder.fallback(others).public_url(GATEWAY))
        })
        .await;
        let links = kept.get().unwrap().clone();
        Self { server, links }
    }

    /// What a person has open: a visit with a used link, and a link that no browser has followed yet.
    async fn open(&self, bearer: &str) -> Option<Person> {
        let bearer = format!("Bearer {bearer}");
        let headers = [("authorization", &*bearer)];
        let link = async || {
            let mut http = Http::connect(self.server.address).await;
            let answer = http.ask("POST", "/link", &headers, "").await;
            let url = String::from_utf8(answer.body).unwrap();
            let code = url.rsplit_once("link=").map(|(_, code)| code.to_owned());
            code.filter(|_| answer.status == 200)
        };
        let first = link().await?;
        let opened = self.links.open(&first, None).unwrap()?;
        let cookie = opened.cookie.unwrap();
        self.links.use_up(cookie.expose(), &"fx".parse().unwrap());
        let person = Person {
            cookie,
            unused: link().await?,
        };
        assert_ne!(person.unused, first);
        Some(person)
    }

    fn visits(&self, person: &Person) -> bool {
        let visits = self.links.visit(person.cookie.expose()).is_some();
        let follows = self.links.open(&person.unused, None).unwrap().is_some();
        assert_eq!(visits, follows, "the visit and the link end together");
        visits
    }

    /// Waits until nothing of the person is open.
    async fn until_gone(&self, person: &Person) {
        let gone = async {
            while self.links.visit(person.cookie.expose()).is_some() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
        assert!(!self.visits(person));
    }

    /// Waits until the link that no browser has followed is gone. The sign-in that has begun goes on.
    async fn until_link_is_gone(&self, person: &Person) {
        let gone = async {
            while self.links.open(&person.unused, None).unwrap().is_some() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
        assert!(self.links.visit(person.cookie.expose()).is_some());
    }
}

struct Person {
    cookie: Secret,
    unused: String,
}

async fn issuer() -> (Signer, Issuer) {
    let signer = Signer::new("EdDSA", "a");
    let issuer = Issuer::start(&[&signer]).await;
    (signer, issuer)
}

async fn with_oauth(settings: &ServeOAuth) -> Pages {
    Pages::new(|builder| builder.oauth(settings.clone())).await
}

#[tokio::test]
async fn visits_end_when_a_token_of_the_config_is_removed() {
    let both = [token("alice", "pgb_alice"), token("bob", "pgb_bob")];
    let pages = Pages::new(|builder| both.into_iter().fold(builder, GatewayBuilder::token)).await;
    let alice = pages.open("pgb_alice").await.unwrap();
    let bob = pages.open("pgb_bob").await.unwrap();
    assert!(pages.visits(&alice) && pages.visits(&bob));
    assert!(pages.server.gateway.set_tokens(vec![token("bob", "pgb_bob")], true));
    assert!(!pages.visits(&alice));
    assert!(pages.visits(&bob));
}

#[tokio::test]
async fn links_end_when_a_token_of_the_config_expires() {
    for seconds in [2, 8] {
        let expires = SystemTime::now() + Duration::from_secs(seconds);
        let short: Token = token("alice", "pgb_alice").expires(expires);
        let pages = Pages::new(|builder| builder.token(short)).await;
        if let Some(alice) = pages.open("pgb_alice").await {
            pages.until_link_is_gone(&alice).await;
            assert!(SystemTime::now() >= expires);
            return;
        }
        // The machine is so busy that the token has expired already.
    }
    panic!("no visit could begin in time");
}

#[tokio::test]
async fn links_end_when_an_access_token_expires() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.clock_skew = Duration::ZERO;
    let pages = with_oauth(&settings).await;
    for seconds in [2, 8] {
        let claims = json!({"exp": in_seconds(seconds), "sub": format!("s{seconds}")});
        if let Some(person) = pages.open(&signer.token(&issuer.claims(&claims))).await {
            pages.until_link_is_gone(&person).await;
            return;
        }
    }
    panic!("no visit could begin in time");
}

#[tokio::test]
async fn visits_end_when_the_key_of_a_token_is_withdrawn() {
    let (old, new) = (Signer::new("ES256", "old"), Signer::new("ES256", "new"));
    let issuer = Issuer::start(&[&old, &new]).await;
    let pages = with_oauth(&issuer.settings()).await;
    let lost = old.token(&issuer.claims(&json!({"sub": "ada"})));
    let good = new.token(&issuer.claims(&json!({"sub": "bob"})));
    assert_eq!(call_with(&pages.server, &lost).await.status, 200);
    // The keys are old after an hour, which is longer than a visit lasts.
    pass(Duration::from_secs(3500)).await;
    let (ada, bob) = (pages.open(&lost).await.unwrap(), pages.open(&good).await.unwrap());
    issuer.book().keys = vec![new.jwk()];
    pass(Duration::from_secs(101)).await;
    while call_with(&pages.server, &lost).await.status != 401 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    pass(Duration::from_secs(61)).await;
    pages.until_gone(&ada).await;
    assert!(pages.visits(&bob));
}

#[tokio::test]
async fn visits_and_streams_end_when_the_issuer_says_that_a_token_is_inactive() {
    let (_, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.introspection = Some(OAuthIntrospection::new(issuer.introspection_url(), "gate", "p w"));
    let pages = with_oauth(&settings).await;
    for who in ["ada", "bob"] {
        let active = json!({"active": true, "sub": who, "aud": GATEWAY, "exp": in_seconds(300)});
        issuer.book().opaque.insert(who.to_owned(), active);
    }
    let ada = pages.open("ada").await.unwrap();
    let bob = pages.open("bob").await.unwrap();
    let mut stream = Http::connect(pages.server.address).await;
    let answer = stream.ask("GET", "/sse", &[("authorization", "Bearer ada")], "").await;
    assert_eq!(answer.status, 200);
    assert!(stream.event().await.is_some());
    issuer.book().opaque.remove("ada");
    // The issuer is asked again after a minute, or after a reload.
    settings.clock_skew = Duration::from_secs(61);
    pages.server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    assert!(pages.visits(&ada), "the new rules admit it too");
    assert_eq!(call_with(&pages.server, "ada").await.status, 401);
    assert!(!pages.visits(&ada));
    assert_eq!(stream.event().await, None);
    assert!(pages.visits(&bob));
    assert_eq!(call_with(&pages.server, "bob").await.status, 200);
}

#[tokio::test]
async fn visits_end_when_new_rules_do_not_admit_a_token() {
    let (signer, issuer) = issuer().await;
    let mut settings = issuer.settings();
    settings.rules = vec![OAuthRule::claim("groups", "a"), OAuthRule::claim("groups", "b")];
    let pages = with_oauth(&settings).await;
    let open = async |who: &str, group: &str| {
        let claims = json!({"sub": who, "groups": [group]});
        pages.open(&signer.token(&issuer.claims(&claims))).await.unwrap()
    };
    let (ada, bob) = (open("ada", "a").await, open("bob", "b").await);
    settings.rules.pop();
    pages.server.gateway.set_oauth(Some(&settings), Some(GATEWAY));
    assert!(pages.visits(&ada));
    assert!(!pages.visits(&bob));
    pages.server.gateway.set_oauth(None, Some(GATEWAY));
    assert!(!pages.visits(&ada));
}

#[tokio::test]
async fn visits_without_a_token_end_when_tokens_are_needed() {
    let pages = Pages::new(|builder| builder).await;
    let anyone = pages.open("none").await.unwrap();
    assert!(pages.visits(&anyone));
    assert!(pages.server.gateway.set_tokens(vec![token("bob", "pgb_bob")], true));
    assert!(!pages.visits(&anyone));
}
