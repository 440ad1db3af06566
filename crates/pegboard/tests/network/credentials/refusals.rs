//! Credentials that the server refuses with 401.

use futures_util::future::join_all;
use pegboard::Credential;
use pegboard_testkit::Era;
use serde_json::json;

use crate::{credentials::fixtures::*, support::*};

#[tokio::test]
async fn a_refused_request_is_sent_once_more_with_another_credential() {
    for place in REQUESTS {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger");
        let issuer = Issuer::counting();
        let server = fake(place.era()).bearer(&token(1)).ledger(&ledger);
        let (fake, board) = place.board(&server, &issuer).await;
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        accept_only(&fake, &token(2));
        let reply = call(&tools, "fx.hello", json!({"nonce": "once"})).await;
        assert_greeted(&reply);
        assert_eq!(reply.attempts, 1, "{place:?}");
        assert_eq!(issuer.asked(), [Asked::FirstUse, refused_with_challenge()], "{place:?}");
        assert_greeted(&hello(&tools).await);
        assert_eq!(issuer.asked().len(), 2, "{place:?}");
        assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "executed once\n");
    }
}

#[tokio::test]
async fn the_first_request_of_a_connection_is_sent_once_more_too() {
    for place in PLACES {
        let issuer = Issuer::counting();
        let (fake, board) = place.board(&fake(place.era()).bearer(&token(2)), &issuer).await;
        assert_greeted(&hello(&board.toolset()).await);
        assert_eq!(issuer.asked(), [Asked::FirstUse, refused_with_challenge()], "{place:?}");
        let sent = authorizations(&fake);
        assert_eq!(sent[..2], [1, 2].map(|number| format!("Bearer {}", token(number))));
    }
}

#[tokio::test]
async fn a_second_refusal_is_the_failure_and_the_provider_is_not_asked_again() {
    for place in REQUESTS {
        for is_same in [true, false] {
            let issuer = Issuer::new(move |number| {
                let number = if is_same { 1 } else { number };
                Ok(Credential::bearer(token(number)).valid_for(HOUR))
            });
            let (fake, board) = place.board(&fake(place.era()).bearer(&token(1)), &issuer).await;
            let tools = board.toolset();
            assert_greeted(&hello(&tools).await);
            accept_only(&fake, "another");
            let text = assert_needs_auth(&hello(&tools).await);
            assert_contains(&text, &["HTTP 401"]);
            assert!(!text.contains("t0ken-"), "{text}");
            assert_eq!(issuer.asked(), [Asked::FirstUse, refused_with_challenge()], "{place:?}");
            // The next request asks for itself.
            accept_only(&fake, &token(if is_same { 1 } else { 3 }));
            assert_greeted(&hello(&tools).await);
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_credential_at_its_start_is_tried_again_by_a_later_call() {
    for place in PLACES {
        let issuer = Issuer::counting();
        let (fake, board) = place.board(&fake(place.era()).bearer("another"), &issuer).await;
        let tools = board.toolset();
        let text = assert_needs_auth(&hello(&tools).await);
        assert_contains(&text, &["has no valid credentials"]);
        assert_eq!(issuer.asked().len(), 2, "{place:?}");
        issuer.answers(|_| Ok(Credential::bearer("another").valid_for(HOUR)));
        until_greeted(&tools).await;
        drop(fake);
    }
}

#[tokio::test]
async fn concurrent_requests_that_are_refused_ask_once() {
    for place in REQUESTS {
        for is_reused in [true, false] {
            let accepted = std::sync::Arc::new(pegboard_base::sync::Mutex::new(token(1)));
            let current = accepted.clone();
            let issuer = Issuer::counting();
            if !is_reused {
                // The provider returns the old token until it is asked because of a refusal.
                issuer.answers(move |_| Ok(Credential::bearer(current.lock().clone())));
            }
            let (fake, board) = place.board(&fake(place.era()).bearer(&token(1)), &issuer).await;
            let tools = board.toolset();
            assert_greeted(&hello(&tools).await);
            let before = issuer.asked().len();
            if is_reused {
                accept_only(&fake, &token(2));
            } else {
                accept_only(&fake, "another");
                let (all, asked) = (accepted.clone(), issuer.clone());
                issuer.answers(move |number| {
                    let is_refusal = matches!(asked.asked()[number - 1], Asked::Refused(_));
                    if is_refusal {
                        "another".clone_into(&mut all.lock());
                    }
                    Ok(Credential::bearer(all.lock().clone()))
                });
            }
            for reply in join_all((0..32).map(|_| hello(&tools))).await {
                assert_greeted(&reply);
            }
            let refusals = issuer.asked()[before..]
                .iter()
                .filter(|asked| matches!(asked, Asked::Refused(_)))
                .count();
            assert_eq!(refusals, 1, "{place:?} {:?}", issuer.asked());
        }
    }
}

#[tokio::test]
async fn a_status_other_than_401_is_no_reason_to_ask() {
    let issuer = Issuer::counting();
    let fault = pegboard_testkit::Fault::Status {
        status: 403,
        headers: Vec::new(),
        body: "not yours".to_owned(),
    };
    let server = fake(Era::Modern).fault_on(pegboard_testkit::When::tool("hello"), fault);
    let (_fake, board) = Place::Http(Era::Modern).board(&server, &issuer).await;
    assert_needs_auth(&hello(&board.toolset()).await);
    assert_eq!(issuer.asked(), [Asked::FirstUse]);
}
