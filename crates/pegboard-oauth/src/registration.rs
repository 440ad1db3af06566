//! Which client this program is at an authorization server: a configured one, a metadata document, or one that it registers (RFC 7591).

use serde_json::{Map, Value, json};

use super::{
    account::OAuthAccount,
    checked_http::{CheckedHttp, ConfiguredOrigins},
    client_auth::ClientAuth,
    discovery::Discovered,
    error::{OAuthError, RETRY_AFTER, Refusal},
    metadata::{ServerMetadata, clip},
    redirect_uri::RedirectUri,
    stored::{Registration, StoredClient},
    token_store::TokenStore,
};
use pegboard_base::secret::Secret;
use pegboard_config::OAuthConfig;

/// The longest client id or secret that is used.
const MAX_CREDENTIAL: usize = 4 << 10;

/// Returns the client for sign-ins at `server`. Registers one if the config names none and none was registered before.
pub(super) async fn client(
    http: &CheckedHttp,
    store: &TokenStore,
    account: &OAuthAccount,
    found: &Discovered,
    redirect: &RedirectUri,
    scopes: &[String],
) -> Result<StoredClient, OAuthError> {
    let server = &found.server;
    if let Some(client) = find_configured(&account.settings, server) {
        return Ok(client);
    }
    let known = store.registration(&server.issuer, redirect.as_str()).await?;
    if let Some(known) = known.filter(|known| known.covers(scopes)) {
        return Ok(known.client);
    }
    let registration = register(http, account, found, redirect, scopes).await?;
    store.put_registration(&registration).await?;
    Ok(registration.client)
}

/// Forgets the client with this id, which the authorization server does not know any more.
pub(super) async fn forget(
    store: &TokenStore,
    server: &ServerMetadata,
    redirect: &RedirectUri,
    id: &str,
) -> Result<(), OAuthError> {
    let known = store.registration(&server.issuer, redirect.as_str()).await?;
    if known.is_some_and(|known| known.client.id == id) {
        store.remove_registration(&server.issuer, redirect.as_str()).await?;
    }
    Ok(())
}

/// The client that the config names. Its secret stays in the config.
pub(super) fn find_configured(settings: &OAuthConfig, server: &ServerMetadata) -> Option<StoredClient> {
    let methods = server.auth_methods.as_deref();
    let has_key = settings.private_key.is_some();
    let client = |id: String, auth| StoredClient { id, secret: None, auth };
    if let Some(id) = &settings.client_id {
        let auth = ClientAuth::choose(has_key, settings.client_secret.is_some(), methods);
        return Some(client(id.clone(), auth));
    }
    let document = settings.client_metadata_url.as_ref()?;
    server.takes_client_documents.then(|| {
        client(
            document.expose().to_string(),
            ClientAuth::choose(has_key, false, methods),
        )
    })
}

async fn register(
    http: &CheckedHttp,
    account: &OAuthAccount,
    found: &Discovered,
    redirect: &RedirectUri,
    scopes: &[String],
) -> Result<Registration, OAuthError> {
    let server = &found.server;
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(OAuthError::Registration(Refusal::new(format!(
            "the authorization server {} does not register clients by itself",
            clip(&server.issuer)
        ))));
    };
    let trust = ConfiguredOrigins::new(account);
    let methods = server.auth_methods.as_deref();
    let mut wanted = vec![wanted_auth(methods)];
    if methods.is_none() {
        // The default of the specification, for servers that do not say what they support and refuse public clients.
        wanted.push(ClientAuth::ClientSecretBasic);
    }
    let (mut refusal, mut code) = (String::new(), None);
    for auth in wanted {
        let body = request_body(redirect, scopes, auth).to_string().into_bytes();
        let response = http.post_json(&trust, endpoint, body).await?;
        if response.is_temporary() {
            return Err(OAuthError::Temporary {
                reason: format!(
                    "the authorization server {} cannot register a client now (status {})",
                    clip(&server.issuer),
                    response.status
                ),
                retry_after: RETRY_AFTER,
            });
        }
        let fields: Map<String, Value> = serde_json::from_slice(&response.body).unwrap_or_default();
        if response.is_success()
            && let Some(mut registration) = parse_registration(&fields, server, redirect, auth)
        {
            registration.scopes = scopes.to_vec();
            return Ok(registration);
        }
        if found.is_guessed && (fields.is_empty() || matches!(response.status, 401 | 404 | 405 | 410)) {
            return Err(OAuthError::NoAuthorizationServer);
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(clip);
        refusal = match (text("error"), text("error_description")) {
            (Some(error), Some(description)) => format!("{error} ({description})"),
            (Some(error), None) => error,
            (None, _) => format!("status {}", response.status),
        };
        code = text("error");
    }
    let why = format!(
        "the authorization server {} did not register this program: {refusal}",
        clip(&server.issuer)
    );
    Err(OAuthError::Registration(Refusal::new(why).code(code)))
}

/// A public client if possible: PKCE protects its codes, and a secret in a file of the user would add nothing.
fn wanted_auth(methods: Option<&[String]>) -> ClientAuth {
    let Some(methods) = methods.filter(|methods| !methods.is_empty()) else {
        return ClientAuth::None;
    };
    let order = [
        ClientAuth::None,
        ClientAuth::ClientSecretBasic,
        ClientAuth::ClientSecretPost,
    ];
    let is_supported = |auth: &ClientAuth| methods.iter().any(|name| name == auth.as_str());
    order.into_iter().find(is_supported).unwrap_or(ClientAuth::None)
}

fn request_body(redirect: &RedirectUri, scopes: &[String], auth: ClientAuth) -> Value {
    let mut body = json!({
        "client_name": "Pegboard",
        "client_uri": "https://github.com/pegboard-dev/pegboard",
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth.as_str(),
        "application_type": if redirect.is_local() { "native" } else { "web" },
    });
    if !scopes.is_empty() {
        body["scope"] = scopes.join(" ").into();
    }
    body
}

/// Reads a response. The authorization server may have chosen another method than the requested one.
fn parse_registration(
    fields: &Map<String, Value>,
    server: &ServerMetadata,
    redirect: &RedirectUri,
    wanted: ClientAuth,
) -> Option<Registration> {
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && text.len() <= MAX_CREDENTIAL)
    };
    let id = text("client_id")?.to_owned();
    let secret = text("client_secret").map(Secret::new);
    let chosen = text("token_endpoint_auth_method").and_then(ClientAuth::parse);
    let auth = match (chosen, &secret) {
        (Some(ClientAuth::ClientSecretBasic | ClientAuth::ClientSecretPost), None) => ClientAuth::None,
        (Some(chosen), _) => chosen,
        (None, None) => ClientAuth::None,
        // It gave a secret and did not say what for.
        (None, Some(_)) => match wanted {
            ClientAuth::None => ClientAuth::choose(false, true, server.auth_methods.as_deref()),
            wanted => wanted,
        },
    };
    Some(Registration {
        issuer: server.issuer.clone(),
        redirect_uri: redirect.as_str().to_owned(),
        client: StoredClient { id, secret, auth },
        secret_expires_at: fields
            .get("client_secret_expires_at")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        scopes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: Option<&[&str]>) -> ServerMetadata {
        let mut server =
            ServerMetadata::at_endpoints("https://as.example", "https://as.example/a", "https://as.example/t");
        server.auth_methods = methods.map(|methods| methods.iter().map(|name| (*name).to_owned()).collect());
        server
    }

    fn redirect() -> RedirectUri {
        RedirectUri::parse("http://127.0.0.1:1/callback").unwrap()
    }

    #[test]
    fn the_client_of_the_config_comes_before_a_document_and_that_before_a_registration() {
        let mut settings = OAuthConfig::default();
        let mut server = server(None);
        assert_eq!(find_configured(&settings, &server), None);
        settings.client_metadata_url = Some("https://me.example/client.json".parse_url());
        assert_eq!(find_configured(&settings, &server), None);
        server.takes_client_documents = true;
        assert_eq!(
            find_configured(&settings, &server).unwrap().id,
            "https://me.example/client.json"
        );
        settings.client_id = Some("mine".to_owned());
        settings.client_secret = Some(Secret::new("s3cret"));
        let client = find_configured(&settings, &server).unwrap();
        assert_eq!(
            (client.id.as_str(), client.auth),
            ("mine", ClientAuth::ClientSecretBasic)
        );
        assert_eq!(client.secret, None, "it stays in the config");
    }

    trait ParseUrl {
        fn parse_url(&self) -> pegboard_config::SafeUrl;
    }

    impl ParseUrl for str {
        fn parse_url(&self) -> pegboard_config::SafeUrl {
            pegboard_config::SafeUrl::parse(self).unwrap()
        }
    }

    #[test]
    fn a_registration_asks_for_a_public_client_where_there_are_such() {
        let check = |methods: Option<&[&str]>, expected| {
            assert_eq!(
                wanted_auth(server(methods).auth_methods.as_deref()),
                expected,
                "{methods:?}"
            );
        };
        check(None, ClientAuth::None);
        check(Some(&["client_secret_basic", "none"]), ClientAuth::None);
        check(Some(&["client_secret_post"]), ClientAuth::ClientSecretPost);
        let body = request_body(&redirect(), &["a".to_owned(), "b".to_owned()], ClientAuth::None);
        assert_eq!(body["application_type"], "native");
        assert_eq!(body["scope"], "a b");
        assert_eq!(body["grant_types"], json!(["authorization_code", "refresh_token"]));
        let page = RedirectUri::parse("https://gateway.example/callback").unwrap();
        assert_eq!(request_body(&page, &[], ClientAuth::None)["application_type"], "web");
        assert_eq!(request_body(&page, &[], ClientAuth::None).get("scope"), None);
    }

    #[test]
    fn the_response_decides_how_the_client_authenticates() {
        let check = |response: Value, methods: Option<&[&str]>, expected| {
            let fields = response.as_object().unwrap().clone();
            let found = parse_registration(&fields, &server(methods), &redirect(), ClientAuth::None).unwrap();
            assert_eq!(found.client.auth, expected, "{response}");
        };
        check(json!({"client_id": "c"}), None, ClientAuth::None);
        check(
            json!({"client_id": "c", "client_secret": "s"}),
            None,
            ClientAuth::ClientSecretBasic,
        );
        check(
            json!({"client_id": "c", "client_secret": "s"}),
            Some(&["none"]),
            ClientAuth::None,
        );
        check(
            json!({"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}),
            None,
            ClientAuth::ClientSecretPost,
        );
        check(
            json!({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}),
            None,
            ClientAuth::None,
        );
        let none = parse_registration(&Map::new(), &server(None), &redirect(), ClientAuth::None);
        assert_eq!(none, None);
    }
}
