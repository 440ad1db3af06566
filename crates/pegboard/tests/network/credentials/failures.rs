//! Providers that fail, panic or hang: nothing is sent, and the failure says which server has no credential.

use std::time::Duration;

use pegboard::{Credential, Kind, State};
use pegboard_testkit::Era;

use crate::{credentials::fixtures::*, support::*};

#[tokio::test]
async fn a_provider_without_a_credential_fails_the_start_and_nothing_is_sent() {
    for place in PLACES {
        let issuer = Issuer::new(|_| Err("the vault is sealed".into()));
        let (fake, board) = place.board(&fake(place.era()), &issuer).await;
        let tools = board.toolset();
        let reply = hello(&tools).await;
        let text = assert_needs_auth(&reply);
        assert_contains(&text, &["there is no credential for server `fx`: the vault is sealed"]);
        assert_contains(reply.outcome.hint().unwrap(), &["`Credentials`"]);
        assert_eq!(board.status().servers[0].state, State::NeedsAuth);
        assert!(fake.requests().is_empty(), "{place:?}");
        issuer.answers(|_| Ok(Credential::none()));
        until_greeted(&tools).await;
    }
}

#[tokio::test]
async fn a_provider_that_fails_or_panics_fails_the_request_and_not_the_session() {
    for place in REQUESTS {
        let issuer = Issuer::new(|_| Ok(Credential::none()));
        let (fake, board) = place.board(&fake(place.era()), &issuer).await;
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        issuer.answers(|_| Err("the vault is sealed".into()));
        let calls = fake.count("tools/call");
        let text = assert_needs_auth(&hello(&tools).await);
        assert_contains(&text, &["server `fx`", "the vault is sealed"]);
        issuer.answers(|_| panic!("a bug in the program"));
        let text = assert_needs_auth(&hello(&tools).await);
        assert_contains(&text, &["server `fx`", "provider panicked"]);
        issuer.answers(|_| Ok(Credential::none().header("Mcp-Session-Id", "t0ken-canary")));
        let text = assert_needs_auth(&hello(&tools).await);
        assert_contains(&text, &["`Mcp-Session-Id`", "part of the protocol"]);
        assert!(!text.contains("t0ken"), "{text}");
        assert_eq!(fake.count("tools/call"), calls, "{place:?}");
        issuer.answers(|_| Ok(Credential::none()));
        assert_greeted(&hello(&tools).await);
        assert_eq!(board.status().servers[0].restarts, 0, "{place:?}");
    }
}

#[tokio::test]
async fn a_provider_that_hangs_costs_a_call_its_own_time_and_nothing_is_sent() {
    for place in REQUESTS {
        let issuer = Issuer::new(|_| Ok(Credential::none()));
        let fake = place.serve(&fake(place.era())).await;
        let config = with_limits(place.config(&fake.url()), |limits| {
            limits.call_timeout = Duration::from_millis(300)
        });
        let board = board_with(config, &issuer);
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        let calls = fake.count("tools/call");
        issuer.hangs();
        let reply = hello(&tools).await;
        assert_outcome(&reply, Kind::Timeout, false);
        assert_eq!(fake.count("tools/call"), calls, "{place:?}");
    }
}

#[tokio::test]
async fn a_provider_that_hangs_after_a_refusal_leaves_the_call_unexecuted() {
    let issuer = Issuer::counting();
    let fake = fake(Era::Modern).bearer(&token(1)).serve_http().await.unwrap();
    let config = Place::Http(Era::Modern).config(&fake.url());
    let config = with_limits(config, |limits| limits.call_timeout = Duration::from_millis(300));
    let board = board_with(config, &issuer);
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    accept_only(&fake, "another");
    issuer.hangs();
    // The 401 proves that it did not run.
    assert_outcome(&hello(&tools).await, Kind::Timeout, false);
}

#[tokio::test]
async fn a_start_does_not_wait_longer_than_its_limit_for_the_provider() {
    for place in PLACES {
        let issuer = Issuer::counting();
        issuer.hangs();
        let fake = place.serve(&fake(place.era())).await;
        let config = with_limits(place.config(&fake.url()), |limits| {
            limits.connect_timeout = Duration::from_millis(300)
        });
        let board = board_with(config, &issuer);
        let reply = hello(&board.toolset()).await;
        assert!(reply.is_error() && !reply.outcome.may_have_executed(), "{reply:?}");
        assert!(fake.requests().is_empty(), "{place:?}");
    }
}
