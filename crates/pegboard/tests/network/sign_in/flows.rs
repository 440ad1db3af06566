//! Each way to get a token.

use pegboard::{
    Config, Pegboard, Secret, ServerConfig, View,
    config::{Auth, ClientKey, JwtBearer, OAuthConfig, OAuthGrant, SafeUrl, TokenExchange, TokenInput, Transport},
};
use pegboard_testkit::oauth::{Algorithm, AuthFault, AuthorizationServer, Client, MetadataPlace, SigningKey};
use serde_json::json;

use crate::{
    sign_in::fixtures::{Site, accepted_subjects, assert_greeted, assert_needs_auth, hello, sign_in},
    support::{endpoint, name},
};

#[tokio::test]
async fn a_person_signs_in_and_calls() {
    let site = Site::new().await;
    let board = site.board();
    let tools = board.toolset();
    assert_needs_auth(&hello(&tools).await);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    assert_eq!(accepted_subjects(&site.server), ["alice"]);
    assert_eq!(site.issuer.count("/register"), 1);

    let asked = site.issuer.requests();
    let authorize = asked.iter().find(|request| request.path == "/authorize").unwrap();
    assert_eq!(authorize.parameter("code_challenge_method"), Some("S256"));
    assert_eq!(authorize.parameter("resource"), Some(site.server.url().as_str()));
    let token = asked.iter().find(|request| request.path == "/token").unwrap();
    assert_eq!(token.parameter("resource"), Some(site.server.url().as_str()));
    board.shutdown().await;
}

#[tokio::test]
async fn metadata_is_found_at_each_of_its_places() {
    for place in [
        MetadataPlace::OAuth,
        MetadataPlace::OpenIdInserted,
        MetadataPlace::OpenIdAppended,
    ] {
        for path in ["", "/tenant"] {
            let site = Site::with(AuthorizationServer::new().path(path).metadata_at(&[place])).await;
            let board = site.signed_in("alice").await;
            assert_greeted(&hello(&board.toolset()).await);
            board.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_sends_no_challenge_is_asked_for_its_metadata() {
    let site = Site::with(AuthorizationServer::new().fault(AuthFault::NoChallenge)).await;
    let board = site.board();
    assert_needs_auth(&hello(&board.toolset()).await);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    board.shutdown().await;
}

#[tokio::test]
async fn a_client_that_was_registered_by_hand_is_used_as_it_is() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let client = Client::new("by-hand").secret("s3cret+/ %&").method(method);
        let site = Site::with(AuthorizationServer::new().without_registration().client(client)).await;
        let mut settings = OAuthConfig::default();
        settings.client_id = Some("by-hand".to_owned());
        settings.client_secret = Some(Secret::from("s3cret+/ %&"));
        let board = site.board_with(settings);
        if method == "client_secret_post" {
            // The metadata offers both, and this client may use the second only.
            site.issuer.add_client(Client::new("by-hand").secret("s3cret+/ %&"));
        }
        sign_in(&board, "alice").await;
        assert_greeted(&hello(&board.toolset()).await);
        assert_eq!(site.issuer.count("/register"), 0);
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_client_metadata_document_comes_before_registration() {
    let site = Site::new().await;
    let url = "https://pegboard.example/client.json";
    let document =
        json!({"client_id": url, "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"});
    site.issuer.add_document(url, document);
    let mut settings = OAuthConfig::default();
    settings.client_metadata_url = Some(SafeUrl::parse(url).unwrap());
    let board = site.board_with(settings);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    assert_eq!(site.issuer.count("/register"), 0);
    board.shutdown().await;
}

#[tokio::test]
async fn a_client_metadata_document_is_not_used_where_none_are_supported() {
    let site = Site::with(AuthorizationServer::new().without_documents()).await;
    let mut settings = OAuthConfig::default();
    settings.client_metadata_url = Some(SafeUrl::parse("https://pegboard.example/client.json").unwrap());
    let board = site.board_with(settings);
    sign_in(&board, "alice").await;
    assert_eq!(site.issuer.count("/register"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn client_credentials_need_no_person() {
    let client = Client::new("robot").secret("hunter2");
    let site = Site::with(AuthorizationServer::new().client(client)).await;
    let mut settings = OAuthConfig::default();
    settings.grant = OAuthGrant::ClientCredentials;
    settings.client_id = Some("robot".to_owned());
    settings.client_secret = Some(Secret::from("hunter2"));
    let board = site.board_with(settings);
    assert_greeted(&hello(&board.toolset()).await);
    assert_eq!(accepted_subjects(&site.server), ["robot"]);
    assert_eq!(site.issuer.token_requests("client_credentials"), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_client_signs_with_its_private_key() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let key = SigningKey::generate(algorithm, "k1");
        let client = Client::new("signer").key(key.public_jwk());
        let site = Site::with(AuthorizationServer::new().client(client)).await;
        let mut settings = OAuthConfig::default();
        settings.grant = OAuthGrant::ClientCredentials;
        settings.client_id = Some("signer".to_owned());
        let mut private = ClientKey::new(Secret::from(key.private_pem()));
        private.kid = Some("k1".to_owned());
        settings.private_key = Some(private);
        let board = site.board_with(settings);
        assert_greeted(&hello(&board.toolset()).await);
        assert_eq!(accepted_subjects(&site.server), ["signer"], "{algorithm:?}");
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_token_is_exchanged_for_one_of_the_same_subject() {
    let idp = SigningKey::generate(Algorithm::Es256, "idp");
    let issuer = AuthorizationServer::new()
        .trusts(idp.public_jwk())
        .client(Client::new("gate").secret("s"));
    let site = Site::with(issuer).await;
    let subject = idp.sign("JWT", &site.issuer.claims("carol", site.issuer.url()));
    for grant in [
        OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::Value(Secret::from(subject.clone())))),
        OAuthGrant::JwtBearer(JwtBearer::new(TokenInput::Value(Secret::from(subject.clone())))),
    ] {
        let mut settings = OAuthConfig::default();
        settings.client_id = Some("gate".to_owned());
        settings.client_secret = Some(Secret::from("s"));
        settings.issuer = Some(site.issuer.url().to_owned());
        settings.grant = grant;
        let board = site.board_with(settings);
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
    }
    assert_eq!(accepted_subjects(&site.server), ["carol"]);
    assert!(
        site.server
            .seen()
            .iter()
            .all(|seen| seen.token.as_ref() != Some(&subject))
    );
}

#[tokio::test]
async fn a_workload_token_is_read_from_its_file_for_every_exchange() {
    let platform = SigningKey::generate(Algorithm::Rs256, "cluster");
    let issuer = AuthorizationServer::new()
        .trusts(platform.public_jwk())
        .client(Client::new("pod"));
    let site = Site::with(issuer).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("projected");
    let token_of = |subject: &str| platform.sign("JWT", &site.issuer.claims(subject, site.issuer.url()));
    for (grant, subjects) in [
        (
            OAuthGrant::JwtBearer(JwtBearer::new(TokenInput::File(file.clone()))),
            ["first", "second"],
        ),
        (
            OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::File(file.clone()))),
            ["third", "fourth"],
        ),
    ] {
        std::fs::write(&file, token_of(subjects[0])).unwrap();
        let mut settings = OAuthConfig::default();
        settings.client_id = Some("pod".to_owned());
        settings.issuer = Some(site.issuer.url().to_owned());
        settings.grant = grant;
        let board = site.board_with(settings);
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        std::fs::write(&file, token_of(subjects[1])).unwrap();
        site.issuer.expire_access_tokens();
        assert_greeted(&hello(&tools).await);
        board.shutdown().await;
    }
    assert_eq!(accepted_subjects(&site.server), ["first", "second", "third", "fourth"]);
}

#[tokio::test]
async fn a_sign_out_revokes_and_forgets() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    let token = site.server.seen().pop().unwrap().token.unwrap();
    board.sign_out(&name("fx")).await.unwrap();
    assert!(site.issuer.count("/revoke") >= 1);
    assert_needs_auth(&hello(&tools).await);
    // Nothing of the session is left on the disk either.
    assert!(!crate::sign_in::canary::is_in_files(site.folder.path(), &token));
    board.shutdown().await;
}

#[tokio::test]
async fn a_token_of_the_config_that_is_refused_names_its_setting_for_a_principal_too() {
    let site = Site::new().await;
    let mut endpoint = endpoint(&site.server.url());
    endpoint.auth = Auth::Bearer(Secret::new("wrong"));
    let mut config = Config::default();
    config
        .servers
        .insert(name("fx"), ServerConfig::new(Transport::http(endpoint)));
    let board = Pegboard::builder(config).open();
    for view in [View::new(), View::new().principal("alice")] {
        let reply = hello(&board.toolset_with(view)).await;
        assert_needs_auth(&reply);
        let hint = reply.outcome.hint().unwrap();
        assert!(hint.contains("`auth.bearer`"), "{hint}");
    }
    board.shutdown().await;
}

#[tokio::test]
async fn the_hint_for_a_principal_names_the_command_with_the_principal() {
    let site = Site::new().await;
    let board = site.board();
    let tools = board.toolset_with(View::new().principal("alice b"));
    let reply = hello(&tools).await;
    assert_needs_auth(&reply);
    let hint = reply.outcome.hint().unwrap();
    assert_eq!(hint, "sign in with `pegboard login fx --principal 'alice b'`");
    board.shutdown().await;
}
