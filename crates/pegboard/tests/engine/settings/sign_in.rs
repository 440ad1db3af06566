//! The settings of sign-in with OAuth, from the text of a file.

use std::path::PathBuf;

use pegboard::{
    Config, Env, Format,
    config::{Auth, Dpop, OAuthConfig, OAuthGrant, SigningAlg, TokenInput},
};
use serde_json::{Value, json};

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nzz\n-----END PRIVATE KEY-----";

fn load(settings: &Value) -> (Option<OAuthConfig>, Vec<String>) {
    let mut server = settings.clone();
    server["url"] = json!("https://mcp.example.com/mcp");
    let text = json!({"servers": {"x": server}}).to_string();
    let loaded = Config::from_text(&text, Format::Json, &Env::new(|_| None));
    let problems = loaded.problems.iter().map(ToString::to_string).collect();
    let server = loaded.config.servers.into_values().next();
    let auth = server.and_then(|server| Some(server.transport.endpoint()?.auth.clone()));
    let settings = match auth {
        Some(Auth::OAuth(settings)) => Some((*settings).clone()),
        _ => None,
    };
    (settings, problems)
}

/// The settings of a table `oauth`, which must have no problem.
fn oauth(table: &Value) -> OAuthConfig {
    let (settings, problems) = load(&json!({"oauth": table}));
    assert_eq!(problems, Vec::<String>::new(), "{table}");
    settings.unwrap()
}

/// The same with a grant.
fn with_grant(table: &Value, grant: &str) -> OAuthGrant {
    let mut table = table.clone();
    table["grant"] = json!(grant);
    table["issuer"] = json!("https://as.example");
    oauth(&table).grant
}

#[test]
fn the_settings_of_sign_in_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (secret_file, key_file) = (file("secret", "from-file\n"), file("key.pem", PEM));

    let client = oauth(&json!({"client_id": "me", "client_secret": "s3cret", "scopes": "a b", "audience": "api"}));
    assert_eq!(client.client_id.as_deref(), Some("me"));
    assert_eq!(client.client_secret.unwrap().expose(), "s3cret");
    assert_eq!(
        (client.scopes.join(" "), client.audience.unwrap()),
        ("a b".to_owned(), "api".to_owned())
    );
    let client = oauth(&json!({"client_id": "me", "client_secret_file": secret_file, "resource": "https://r.example"}));
    assert_eq!(client.client_secret.unwrap().expose(), "from-file");
    assert_eq!(client.resource.as_deref(), Some("https://r.example"));
    for (name, value) in [("private_key", json!(PEM)), ("private_key_file", json!(key_file))] {
        let mut table = json!({"client_id": "me", "key_id": "k1", "algorithm": "es256"});
        table[name] = value;
        let key = oauth(&table).private_key.unwrap();
        assert_eq!(
            (key.pem.expose(), key.kid.as_deref(), key.alg),
            (PEM, Some("k1"), Some(SigningAlg::Es256))
        );
    }
    for (word, dpop) in [("auto", Dpop::Auto), ("required", Dpop::Required), ("off", Dpop::Off)] {
        assert_eq!(oauth(&json!({"dpop": word})).dpop, dpop);
    }
    let document = oauth(&json!({"client_metadata_url": "https://me.example/client.json"}));
    assert_eq!(
        document.client_metadata_url.unwrap().to_string(),
        "https://me.example/client.json"
    );

    let server = oauth(&json!({
        "issuer": "https://as.example/realm",
        "token_url": "https://as.example/token",
        "authorization_url": "http://127.0.0.1:9/authorize",
    }));
    assert_eq!(server.issuer.as_deref(), Some("https://as.example/realm"));
    assert_eq!(server.token_url.unwrap().to_string(), "https://as.example/token");
    assert_eq!(
        server.authorization_url.unwrap().to_string(),
        "http://127.0.0.1:9/authorize"
    );
    for table in [
        json!({"redirect_uri": "http://localhost:8976/done"}),
        json!({"callback_host": "localhost", "callback_port": 8976, "callback_path": "/done"}),
    ] {
        let redirect = oauth(&table).redirect;
        assert_eq!(
            (redirect.host.as_str(), redirect.port, redirect.path.as_str()),
            ("localhost", Some(8976), "/done")
        );
    }

    let credentials = json!({"client_id": "me", "client_secret": "s"});
    assert_eq!(
        with_grant(&credentials, "client_credentials"),
        OAuthGrant::ClientCredentials
    );
    for (table, subject) in [
        (json!({"subject_token": "t"}), TokenInput::Value("t".into())),
        (
            json!({"subject_token_file": "/run/token"}),
            TokenInput::File(PathBuf::from("/run/token")),
        ),
        (
            json!({"subject_token_type": "urn:x", "requested_token_type": "urn:y", "issuer": "https://as.example"}),
            TokenInput::Caller,
        ),
    ] {
        let OAuthGrant::TokenExchange(exchange) = with_grant(&table, "token_exchange") else {
            panic!("{table}")
        };
        assert_eq!(
            exchange.requested_type.as_deref(),
            (subject == TokenInput::Caller).then_some("urn:y")
        );
        assert_eq!(exchange.subject_type == "urn:x", subject == TokenInput::Caller);
        assert_eq!(exchange.subject, subject);
    }
    let idp = json!({"token_url": "https://idp.example/token", "client_id": "c", "client_secret": "s"});
    let idp_file = json!({"token_url": "https://idp.example/token", "client_secret_file": secret_file});
    for (table, assertion, secret) in [
        (
            json!({"assertion": "t", "identity_provider": idp}),
            TokenInput::Value("t".into()),
            "s",
        ),
        (
            json!({"assertion_file": "/t", "identity_provider": idp_file}),
            TokenInput::File("/t".into()),
            "from-file",
        ),
    ] {
        let OAuthGrant::JwtBearer(grant) = with_grant(&table, "jwt_bearer") else {
            panic!("{table}")
        };
        assert_eq!(grant.assertion, assertion);
        let provider = grant.identity_provider.unwrap();
        assert_eq!(provider.token_url.to_string(), "https://idp.example/token");
        assert_eq!(provider.client_secret.unwrap().expose(), secret);
        assert_eq!(provider.client_id.is_some(), secret == "s");
    }
}

#[test]
fn short_forms_are_the_settings_of_sign_in() {
    let wanted = oauth(&json!({"client_id": "me", "scopes": ["a"], "resource": "https://r.example"}));
    for settings in [
        json!({"auth": {"client_id": "me", "scopes": ["a"], "resource": "https://r.example"}}),
        json!({"auth": {"oauth": {"client_id": "me", "scopes": "a", "resource": "https://r.example"}}}),
        json!({"auth": {"CLIENT_ID": "me"}, "scopes": ["a"], "oauth_resource": "https://r.example"}),
        json!({"oauth": {"clientId": "me"}, "oauth_scopes": "a", "oauthResource": "https://r.example"}),
    ] {
        let (found, problems) = load(&settings);
        assert_eq!((found.as_ref(), problems), (Some(&wanted), Vec::new()), "{settings}");
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "s3cret").unwrap();
    let full = json!({
        "client_id": "me", "client_secret": "s3cret", "token_url": "https://a.example/t",
        "issuer": "https://a.example", "audience": "api", "grant": "client_credentials",
    });
    let wanted = oauth(&full);
    let typed = json!({
        "type": "oauth_client_credentials", "client_id": "me", "client_secret_file": secret.path(),
        "token_url": "https://a.example/t", "issuer": "https://a.example", "audience": "api",
    });
    for auth in [full, typed] {
        assert_eq!(
            load(&json!({"auth": auth})),
            (Some(wanted.clone()), Vec::new()),
            "{auth}"
        );
    }
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), PEM).unwrap();
    for mut fields in [
        json!({"client_id": "me", "private_key": PEM, "key_id": "1", "algorithm": "ES256", "grant": "client_credentials"}),
        json!({"client_id": "me", "private_key_file": key.path(), "grant": "client_credentials"}),
        json!({"grant": "token_exchange", "subject_token": "s"}),
        json!({"grant": "token_exchange", "subject_token_file": "s"}),
        json!({"grant": "jwt_bearer", "assertion": "s"}),
        json!({"grant": "jwt_bearer", "assertion_file": "s"}),
    ] {
        fields["issuer"] = json!("https://a.example");
        let (found, problems) = load(&json!({"auth": fields}));
        assert_eq!(found, Some(oauth(&fields)), "{fields} {problems:?}");
    }
    let page = json!({"auth": {"authorization_url": "https://a.example/authorize", "issuer": "https://a.example"}});
    assert!(load(&page).0.unwrap().authorization_url.is_some());
    for off in [
        json!({"oauth": {"enabled": false, "client_id": "me"}}),
        json!({"oauth": false}),
    ] {
        assert_eq!(load(&off), (None, Vec::new()), "{off}");
    }
}

#[test]
fn other_programs_name_the_metadata_of_the_authorization_server() {
    for (url, issuer) in [
        (
            "https://a.example/.well-known/openid-configuration",
            "https://a.example",
        ),
        (
            "https://a.example/realm/.well-known/openid-configuration",
            "https://a.example/realm",
        ),
        (
            "https://a.example/.well-known/oauth-authorization-server/realm",
            "https://a.example/realm",
        ),
        ("https://a.example/", "https://a.example"),
    ] {
        let claude = oauth(&json!({"clientId": "me", "callbackPort": 8080, "authServerMetadataUrl": url}));
        assert_eq!(
            (claude.issuer.as_deref(), claude.redirect.port),
            (Some(issuer), Some(8080)),
            "{url}"
        );
    }
}

#[test]
fn contradictions_are_refused_with_what_to_do() {
    for (table, told) in [
        (json!({"client_secret": "s"}), "belongs to a `client_id`"),
        (
            json!({"client_id": "c", "client_metadata_url": "https://c.example/c"}),
            "leave out `client_id`",
        ),
        (
            json!({"client_id": "c", "client_secret": "s", "private_key": PEM}),
            "either a secret or a private key",
        ),
        (
            json!({"client_id": "c", "private_key": "zz"}),
            "not a private key in PEM",
        ),
        (json!({"client_id": "c", "key_id": "k"}), "belongs to a `private_key`"),
        (
            json!({"client_id": "c", "client_secret_file": "/no/such/file"}),
            "cannot be read",
        ),
        (json!({"grant": "client_credentials"}), "needs `client_id`"),
        (
            json!({"redirect_uri": "https://elsewhere.example/cb"}),
            "an address of this machine",
        ),
        (
            json!({"redirect_uri": "http://localhost/", "callback_port": 1}),
            "keep one",
        ),
        (json!({"callback_host": "0.0.0.0"}), "must be `127.0.0.1`"),
        (json!({"callback_path": "x"}), "starts with `/`"),
        (
            json!({"token_url": "http://as.example/token"}),
            "must start with https://",
        ),
        (
            json!({"grant": "token_exchange", "subject_token": "a", "subject_token_file": "b"}),
            "keep one",
        ),
        (json!({"grant": "token_exchange"}), "needs `issuer` or `token_url`"),
        (json!({"grant": "jwt_bearer"}), "needs `issuer` or `token_url`"),
        (
            json!({"grant": "jwt_bearer", "identity_provider": {}}),
            "needs `token_url`",
        ),
        (
            json!({"token_url": "http://127.evil.example/token"}),
            "must start with https://",
        ),
        (json!({"callback_host": "127.evil.example"}), "must be `127.0.0.1`"),
    ] {
        let (settings, problems) = load(&json!({"oauth": table}));
        assert_eq!(settings, None, "{table}");
        assert!(
            problems.iter().any(|problem| problem.contains(told)),
            "{table}: {problems:?}"
        );
    }
    let (_, twice) = load(&json!({"oauth": {"scopes": ["a"]}, "scopes": ["b"]}));
    assert!(twice[0].contains("set in two places"), "{twice:?}");
    let (_, both) = load(&json!({"auth": {"type": "oauth", "bearer": "t"}}));
    assert!(both[0].contains("another kind"), "{both:?}");
}

#[test]
fn no_credential_goes_where_only_the_server_says() {
    let (page, token) = ("https://as.example/authorize", "https://as.example/token");
    for (table, told) in [
        (
            json!({"grant": "token_exchange", "subject_token": "t"}),
            "`token_exchange` needs `issuer` or `token_url`",
        ),
        (json!({"grant": "token_exchange"}), "who gets the subject token"),
        (
            json!({"grant": "jwt_bearer", "assertion_file": "/t"}),
            "who gets the assertion",
        ),
        (json!({"authorization_url": page}), "needs `token_url` or `issuer`"),
        (json!({"token_url": token}), "needs `authorization_url` or `issuer`"),
    ] {
        let (settings, problems) = load(&json!({"oauth": table}));
        assert_eq!(settings, None, "{table}");
        assert!(
            problems.iter().any(|problem| problem.contains(told)),
            "{table}: {problems:?}"
        );
    }
    let idp = json!({"token_url": "https://idp.example/token"});
    for table in [
        json!({"authorization_url": page, "token_url": token}),
        json!({"authorization_url": page, "issuer": "https://as.example"}),
        json!({"token_url": token, "issuer": "https://as.example"}),
        json!({"grant": "token_exchange", "token_url": token}),
        json!({"grant": "jwt_bearer", "assertion": "t", "issuer": "https://as.example"}),
        // What an identity provider issues names the authorization server that it is for.
        json!({"grant": "jwt_bearer", "assertion": "t", "identity_provider": idp}),
        // The first authorization server that gets the secret is the only one.
        json!({"client_id": "c", "client_secret": "s"}),
    ] {
        oauth(&table);
    }
}
