//! Tests of when the provider is asked, and of what its failures become.

use std::{
    future::{Future, pending},
    pin::Pin,
};

use futures_util::future::join_all;

use super::*;
use crate::credential::provider::CredentialError;

/// A provider that records the reasons it was asked for, and returns what a function makes of their number.
struct Scripted<F> {
    reasons: Mutex<Vec<String>>,
    answer: F,
    takes: Duration,
}

type Answer = Result<Credential, CredentialError>;

impl<F: Fn(usize) -> Answer + Send + Sync + 'static> Credentials for Scripted<F> {
    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            let number = {
                let mut reasons = self.reasons.lock();
                reasons.push(format!("{:?}", request.reason));
                reasons.len()
            };
            tokio::time::sleep(self.takes).await;
            (self.answer)(number)
        })
    }
}

impl<F: Fn(usize) -> Answer + Send + Sync + 'static> Scripted<F> {
    fn new(answer: F) -> Arc<Self> {
        Arc::new(Self {
            reasons: Mutex::default(),
            answer,
            takes: Duration::from_millis(50),
        })
    }

    fn source(self: &Arc<Self>) -> Arc<CredentialSource> {
        let server = ServerName::parse("crm").unwrap();
        CredentialSource::new(server, Some("ann".into()), self.clone())
    }

    fn reasons(&self) -> Vec<String> {
        self.reasons.lock().clone()
    }
}

fn token(number: usize) -> Credential {
    Credential::bearer(format!("token-{number}"))
}

fn sent(issued: &Issued) -> &str {
    issued.headers()["authorization"].to_str().unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_credential_is_reused_while_it_is_valid() {
    let provider = Scripted::new(|number| Ok(token(number).valid_for(MINUTE)));
    let source = provider.source();
    for _ in 0..3 {
        assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-1");
    }
    tokio::time::advance(MINUTE).await;
    assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-2");
    assert_eq!(provider.reasons(), ["FirstUse", "Refresh"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_lifetime_every_request_asks_and_none_waits_for_another() {
    let provider = Scripted::new(|number| Ok(token(number)));
    let source = provider.source();
    source.get_or_renew().await.unwrap();
    let started = Instant::now();
    let all = join_all((0..32).map(|_| source.get_or_renew())).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(provider.reasons().len(), 33);
    assert_eq!(started.elapsed(), Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_ask_once_for_the_first_and_for_an_expired_credential() {
    let provider = Scripted::new(|number| Ok(token(number).valid_for(MINUTE)));
    let source = provider.source();
    for round in 1..=2 {
        for issued in join_all((0..32).map(|_| source.get_or_renew())).await {
            assert_eq!(sent(&issued.unwrap()), format!("Bearer token-{round}"));
        }
        tokio::time::advance(MINUTE).await;
    }
    assert_eq!(provider.reasons(), ["FirstUse", "Refresh"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_refusals_of_one_credential_ask_once() {
    // Also without a lifetime, and also if the provider returns the same values again.
    for lifetime in [None, Some(MINUTE)] {
        for is_same in [false, true] {
            let provider = Scripted::new(move |number| {
                let number = if is_same || number <= 32 && lifetime.is_none() {
                    1
                } else {
                    number
                };
                let credential = token(number);
                Ok(match lifetime {
                    Some(lifetime) => credential.valid_for(lifetime),
                    None => credential,
                })
            });
            let source = provider.source();
            let all = join_all((0..32).map(|_| source.get_or_renew())).await;
            let before = provider.reasons().len();
            let refused = all
                .iter()
                .map(|issued| source.after_refusal(issued.as_ref().unwrap(), Some("Bearer x")));
            let replaced = join_all(refused).await;
            let reasons = provider.reasons();
            assert_eq!(
                reasons[before..],
                [r#"Refused { challenge: Some("Bearer x") }"#],
                "{lifetime:?} {is_same}"
            );
            let generations: Vec<u64> = replaced
                .iter()
                .map(|issued| issued.as_ref().unwrap().generation())
                .collect();
            assert!(generations.windows(2).all(|pair| pair[0] == pair[1]), "{generations:?}");
            assert!(generations[0] > all[0].as_ref().unwrap().generation());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_not_used_again_although_its_lifetime_lasts() {
    let provider = Scripted::new(|number| match number {
        2 => Err("the vault is sealed".into()),
        number => Ok(token(number).valid_for(MINUTE)),
    });
    let source = provider.source();
    let first = source.get_or_renew().await.unwrap();
    source.after_refusal(&first, None).await.unwrap_err();
    assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-3");
    assert_eq!(
        provider.reasons(),
        ["FirstUse", "Refused { challenge: None }", "Refresh"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_does_not_replace_a_newer_one() {
    // The second question is answered after the third.
    struct Slow(Mutex<usize>);
    impl Credentials for Slow {
        fn credential<'a>(
            &'a self,
            _request: CredentialRequest<'a>,
        ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
            Box::pin(async move {
                let number = {
                    let mut asked = self.0.lock();
                    *asked += 1;
                    *asked
                };
                if number == 2 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Ok(token(number))
            })
        }
    }
    let source = CredentialSource::new(
        ServerName::parse("crm").unwrap(),
        None,
        Arc::new(Slow(Mutex::default())),
    );
    let first = source.get_or_renew().await.unwrap();
    let (late, replaced) = tokio::join!(source.get_or_renew(), source.after_refusal(&first, None));
    let (late, replaced) = (late.unwrap(), replaced.unwrap());
    assert_eq!((sent(&late), sent(&replaced)), ("Bearer token-2", "Bearer token-3"));
    let newer = source.after_refusal(&late, None).await.unwrap();
    assert_eq!(sent(&newer), "Bearer token-3", "the newer one is there already");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_still_returns_a_refused_credential_does_not_replace_the_new_one() {
    // The third question is asked and answered after the refusal, and its answer is outdated.
    let provider = Scripted::new(|number| Ok(token(if number == 3 { 1 } else { number })));
    let source = provider.source();
    let first = source.get_or_renew().await.unwrap();
    let replaced = source.after_refusal(&first, None).await.unwrap();
    let outdated = source.get_or_renew().await.unwrap();
    assert_eq!((sent(&replaced), sent(&outdated)), ("Bearer token-2", "Bearer token-1"));
    let again = source.after_refusal(&outdated, None).await.unwrap();
    assert_eq!(sent(&again), "Bearer token-2", "nothing is asked");
    assert_eq!(provider.reasons().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_insists_on_a_refused_credential_is_asked_at_each_refusal() {
    let provider = Scripted::new(|_| Ok(token(1)));
    let source = provider.source();
    for refusals in 1..=3 {
        let issued = source.get_or_renew().await.unwrap();
        source.after_refusal(&issued, None).await.unwrap();
        let reasons = provider.reasons();
        let told = reasons.iter().filter(|reason| reason.starts_with("Refused")).count();
        assert_eq!(told, refusals);
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_renewal_is_that_of_all_requests_that_wait_for_it() {
    let provider = Scripted::new(|number| match number {
        1 => Err("no grant for this user".into()),
        _ => Ok(token(number).valid_for(MINUTE)),
    });
    let source = provider.source();
    for failed in join_all((0..8).map(|_| source.get_or_renew())).await {
        assert_eq!(
            failed.unwrap_err().to_string(),
            "there is no credential for server `crm` and principal `ann`: no grant for this user"
        );
    }
    assert_eq!(provider.reasons().len(), 1);
    assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-2");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_lets_the_next_one_ask() {
    let provider = Scripted::new(|number| Ok(token(number).valid_for(MINUTE)));
    let source = provider.source();
    let cancelled = tokio::time::timeout(Duration::from_millis(10), source.get_or_renew());
    let (cancelled, next) = tokio::join!(cancelled, source.get_or_renew());
    assert!(cancelled.is_err());
    assert_eq!(sent(&next.unwrap()), "Bearer token-2");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_or_panics_is_a_failure_that_names_the_server() {
    struct Bad(bool);
    impl Credentials for Bad {
        fn credential<'a>(
            &'a self,
            _request: CredentialRequest<'a>,
        ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
            assert!(self.0, "a bug in the program");
            Box::pin(pending())
        }
    }
    for (hangs, words) in [(true, "did not answer within 30 s"), (false, "panicked")] {
        let source = CredentialSource::new(ServerName::parse("crm").unwrap(), None, Arc::new(Bad(hangs)));
        let started = Instant::now();
        let failures = join_all((0..3).map(|_| source.get_or_renew())).await;
        assert!(started.elapsed() <= ASK_TIMEOUT, "the requests share one question");
        for failure in failures {
            let text = failure.unwrap_err().to_string();
            assert!(text.contains("server `crm`") && text.contains(words), "{text}");
        }
    }
}

#[tokio::test]
async fn a_credential_that_cannot_be_sent_is_named_without_its_value() {
    for (credential, name) in [
        (Credential::none().header("X Key", "hunter2hunter2"), "`X Key`"),
        (
            Credential::none().header("X-Key", "hunter2hunter2\r\nHost: x"),
            "`X-Key`",
        ),
        (
            Credential::none().header("Mcp-Session-Id", "hunter2hunter2"),
            "`Mcp-Session-Id`",
        ),
        (Credential::none().header("Host", "hunter2hunter2"), "`Host`"),
        (Credential::none().env("A=B", "hunter2hunter2"), "`A=B`"),
        (Credential::none().env("TOKEN", "hunter2hunter2\0"), "`TOKEN`"),
    ] {
        let provider = Scripted::new(move |_| Ok(credential.clone()));
        let text = provider.source().get_or_renew().await.unwrap_err().to_string();
        assert!(text.contains(name) && !text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn every_value_and_its_parts_are_secrets() {
    let credential = Credential::bearer("abc.def")
        .header("X-Tenant", "blue")
        .header("Proxy-Authorization", "Basic bWU6cHc=")
        .env("DATABASE_URL", "postgres://me:s3cret@db/x");
    let provider = Scripted::new(move |_| Ok(credential.clone()));
    let issued = provider.source().get_or_renew().await.unwrap();
    let secrets: Vec<&str> = issued.secrets().iter().map(|secret| secret.expose()).collect();
    for part in ["Bearer abc.def", "abc.def", "blue", "bWU6cHc=", "me:pw", "s3cret"] {
        assert!(secrets.contains(&part), "{part} in {secrets:?}");
    }
    assert!(issued.headers().values().all(http::HeaderValue::is_sensitive));
    assert!(!format!("{issued:?}").contains("abc.def"));
}

#[cfg(feature = "oauth")]
#[tokio::test(start_paused = true)]
async fn a_credential_that_was_withdrawn_is_not_sent_in_place_of_a_refused_one() {
    let provider = Scripted::new(|number| match number {
        1 | 4 => Ok(Credential::none().valid_for(MINUTE)),
        3 => Ok(token(number).valid_for(MINUTE)),
        _ => Err("nobody has signed in".into()),
    });
    let source = provider.source();
    let nothing = source.get_or_renew().await.unwrap();
    assert!(source.after_refusal(&nothing, None).await.is_err());
    source.outdate();
    assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-3");
    source.outdate();
    let nothing = source.get_or_renew().await.unwrap();
    assert!(nothing.headers().is_empty());
    assert!(source.after_refusal(&nothing, None).await.is_err());
}

#[cfg(feature = "oauth")]
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_when_it_was_withdrawn_is_not_kept() {
    let provider = Scripted::new(|number| Ok(token(number).valid_for(MINUTE)));
    let source = provider.source();
    let asking = source.get_or_renew();
    let withdrawing = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        source.outdate();
    };
    let (_, ()) = tokio::join!(asking, withdrawing);
    assert_eq!(sent(&source.get_or_renew().await.unwrap()), "Bearer token-2");
}
