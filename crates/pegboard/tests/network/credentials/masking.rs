//! Credentials are masked like the secrets of a config, and kept from other servers.

use pegboard::{Credential, Pegboard, config::OnCrossing};
use pegboard_testkit::{Era, Fault, Tool, When};
use serde_json::json;

use crate::{credentials::fixtures::*, support::*};

#[tokio::test]
async fn credentials_are_masked_in_results_errors_and_status() {
    for place in PLACES {
        let issuer = Issuer::new(|number| {
            let credential = Credential::bearer(token(number)).header("X-Key", format!("k3y-{}", token(number)));
            Ok(credential.valid_for(HOUR))
        });
        let server = fake(place.era())
            .bearer(&token(1))
            .tool(Tool::new("says").answers_text(format!("you sent {}", token(1))))
            .tool(Tool::new("fails").fails_with(format!("Bearer {}", token(1))))
            .tool(Tool::new("errs").refuses(-32000, format!("k3y-{}", token(1))));
        let (_fake, board) = place.board(&server, &issuer).await;
        let tools = board.toolset();
        let mut seen = format!("{board:?} {issuer:?}", issuer = Credential::bearer(token(1)));
        for tool in ["fx.says", "fx.fails", "fx.errs"] {
            let reply = call(&tools, tool, json!({})).await;
            assert_contains(&reply.text(), &["[MASKED"]);
            seen += &format!("{reply:?} {}", serde_json::to_string(&reply).unwrap());
        }
        seen += &format!(
            "{:?} {}",
            board.status(),
            serde_json::to_string(&board.status()).unwrap()
        );
        assert!(!seen.contains("t0ken-"), "{place:?} {seen}");
    }
}

#[tokio::test]
async fn a_credential_in_the_body_of_an_error_response_is_masked() {
    let fault = Fault::Status {
        status: 403,
        headers: Vec::new(),
        body: format!("{} may not do that", token(1)),
    };
    let server = fake(Era::Modern).fault_on(When::tool("hello"), fault);
    let (_fake, board) = Place::Http(Era::Modern).board(&server, &Issuer::counting()).await;
    let text = assert_needs_auth(&hello(&board.toolset()).await);
    assert!(text.contains("[MASKED_SECRET] may not do that"), "{text}");
}

#[tokio::test]
async fn a_credential_that_was_replaced_is_still_masked() {
    let issuer = Issuer::counting();
    let server = fake(Era::Modern)
        .bearer(&token(1))
        .tool(Tool::new("both").answers_text(format!("{} {}", token(1), token(2))));
    let (fake, board) = Place::Http(Era::Modern).board(&server, &issuer).await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    accept_only(&fake, &token(2));
    let reply = call(&tools, "fx.both", json!({})).await;
    assert_eq!(reply.text(), "[MASKED_SECRET] [MASKED_SECRET]");
}

#[tokio::test]
async fn a_credential_is_not_sent_to_another_server() {
    let issuer = Issuer::new(|_| Ok(Credential::bearer(token(1)).valid_for(HOUR)));
    let (owner, other) = (
        fake(Era::Modern).serve_http().await.unwrap(),
        fake(Era::Modern)
            .tool(Tool::new("echo").echoes())
            .serve_http()
            .await
            .unwrap(),
    );
    let mut config = pegboard::Config::default();
    config
        .servers
        .insert(name("fx"), Place::Http(Era::Modern).config(&owner.url()));
    struct OnlyFx(Issuer);
    impl pegboard::Credentials for OnlyFx {
        fn covers(&self, server: &pegboard::ServerName, _is_process: bool) -> bool {
            server.as_str() == "fx"
        }

        fn credential<'a>(
            &'a self,
            request: pegboard::credential::CredentialRequest<'a>,
        ) -> std::pin::Pin<
            Box<dyn Future<Output = Result<Credential, pegboard::credential::CredentialError>> + Send + 'a>,
        > {
            self.0.credential(request)
        }
    }
    let mut elsewhere = Place::Http(Era::Modern).config(&other.url());
    elsewhere.policy.crossing = OnCrossing::Block;
    config.servers.insert(name("other"), elsewhere);
    let board = Pegboard::builder(config).credentials(OnlyFx(issuer)).open();
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    let reply = call(&tools, "other.echo", json!({"text": format!("use {}", token(1))})).await;
    assert!(reply.is_error(), "{reply:?}");
    assert_contains(&reply.text(), &["`fx`", "must not get"]);
    assert_eq!(other.count("tools/call"), 0);
    assert!(authorizations(&other).iter().all(|header| header == "none"));
}
