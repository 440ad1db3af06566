//! The tables of the gateway.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    field::{DefaultValue, Kind},
    from_setting::OneOrMore,
    key::{
        Nested, TEXTS, count, duration, either, flag, limit, list, located, located_texts, map, nested, optional_count,
        parsed, secret, section, size, text, texts, words,
    },
    policy::Rate,
    serve::{JwtAlgorithm, ServeConfig, ServeOAuth, TokenScope},
    setting::Text,
};

section! {
    serve = "serve" {
        LISTEN: Vec<Text> = located_texts("listen", "The addresses that the gateway listens on. Beyond loopback it needs tokens.")
            .shown(DefaultValue::Texts(&[ServeConfig::LISTEN_TEXT]));
        HOSTS: Vec<Text> = located_texts("hosts", "Further names that clients may use for the gateway in `Host`, such as `gateway.example.com`.").aka(&["allowed_hosts"]);
        ORIGINS: Vec<Text> = located_texts("origins", "Web origins whose pages may use the gateway, such as `https://app.example.com`.").aka(&["allowed_origins"]);
        MAX_CONNECTIONS: usize = count("max_connections", (1, 1_000_000), ServeConfig::MAX_CONNECTIONS, "The most open connections; further ones wait.");
        MAX_IN_FLIGHT: usize = count("max_in_flight", (1, 1_000_000), ServeConfig::MAX_IN_FLIGHT, "The most requests that are handled at once; further ones are refused with `Retry-After`. Streams on which a client only listens do not count.");
        MAX_BODY: usize = size("max_body", (1024, 1 << 30), ServeConfig::MAX_BODY, "The largest body of a request.");
        MAX_SESSIONS: usize = count("max_sessions", (1, 1_000_000), ServeConfig::MAX_SESSIONS, "The most sessions of clients with a handshake; further ones are refused.");
        SESSION_IDLE: Duration = limit("session_idle", ServeConfig::SESSION_IDLE, "How long a session without a request or a stream is kept.");
        STATE_KEY: Option<Text> = secret("state_key", "32 random bytes in base64, such as `openssl rand -base64 32` prints: the key that seals what clients keep between two requests. Replicas of a gateway need the same one; without it each process has its own.");
        ALLOW_NEW_SERVERS: bool = flag("allow_new_servers", false, "Whether clients with the scope `admin` may add servers, and change their settings, over the HTTP API. Such a client can start any program as the gateway's user.");
        LINKS_IN_TEXT: bool = flag("links_in_text", true, "Whether a client that cannot open pages for its user gets the one-time link to a sign-in page in the text of a result or an error, which a model reads. With `false` the text says how to get the link, and only clients with URL elicitation and the HTTP API get links.");
        TLS: Nested<serve_tls::In> = nested("tls", Kind::Table(&serve_tls::SECTION), "The certificate with which the gateway speaks HTTPS. Without it, it speaks HTTP.");
        PUBLIC_URL: Option<Text> = located("public_url", "The URL under which clients reach the gateway, such as `https://mcp.example.com`, if a proxy stands before it. Its host counts as one of `hosts`.")
            .aka(&["external_url", "base_url"]);
        OAUTH: Nested<serve_oauth::In> = nested("oauth", Kind::Table(&serve_oauth::SECTION), "Whose access tokens (OAuth 2.0) the gateway accepts besides its own tokens.");
        TOKENS: BTreeMap<String, Nested<token::In>> = map(
            "tokens",
            &Kind::Table(&token::SECTION),
            "The tokens of clients, by name. As soon as there is one, every request needs one.",
        )
        .shown(DefaultValue::EmptyTable);
    }
}

section! {
    serve_tls = "serve.tls" {
        CERT: Option<Text> = located("cert", "A PEM file with the certificate chain of the gateway, its own certificate first, relative to the config file.")
            .aka(&["cert_file", "certificate"]);
        KEY: Option<Text> = located("key", "A PEM file with the private key of the certificate. Only the user that runs the gateway should be able to read it.")
            .aka(&["key_file", "private_key"]);
    }
}

section! {
    serve_oauth = "serve.oauth" {
        ISSUER: OneOrMore = either("issuer", ONE_OR_MORE, OneOrMore(Vec::new()), DefaultValue::None, "The authorization server whose tokens are accepted, exactly as they name it in `iss`, or a list of several.")
            .aka(&["issuers"]);
        AUDIENCE: OneOrMore = either("audience", ONE_OR_MORE, OneOrMore(Vec::new()), DefaultValue::None, "What tokens must name in `aud`: one value, or a list of which they must name one. Without it, the URLs of the gateway under `serve.public_url`.")
            .aka(&["audiences"]);
        JWKS_URL: Option<Text> = located("jwks_url", "The URL of the issuer's keys (JWKS). Without it, the issuer's metadata names it.").aka(&["jwks_uri"]);
        ALGORITHMS: Vec<JwtAlgorithm> = list("algorithms", &words::<JwtAlgorithm>(), "The algorithms that tokens may be signed with.")
            .shown(DefaultValue::Texts(&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]));
        CLOCK_SKEW: Duration = duration("clock_skew", SKEW, ServeOAuth::CLOCK_SKEW, "By how much the clocks of the issuer and of the gateway may differ.").aka(&["leeway"]);
        REQUIRED_SCOPES: Vec<String> = texts("required_scopes", "The scopes that every token must have.");
        SCOPES_SUPPORTED: Vec<String> = texts("scopes_supported", "The scopes that clients are told to request. Without it, `required_scopes` and those that rules name.");
        PRINCIPAL: Option<String> = text("principal", "The claim that identifies a client. Its principal is the issuer, `#` and this claim, so that equal names of two issuers differ. A token without it is refused.")
            .aka(&["principal_claim"])
            .shown(DefaultValue::Text(ServeOAuth::PRINCIPAL));
        ID_TOKENS: bool = flag("id_tokens", false, "Whether ID tokens of OpenID Connect are accepted like access tokens, for issuers that make no others, such as Dex. An ID token is meant for the program that asked for it, so set it only if `audience` names none but the gateway.");
        RULES: Vec<Nested<serve_oauth_rule::In>> = list("rules", &Kind::Table(&serve_oauth_rule::SECTION), "What holders of tokens may do. The first rule that matches decides; a token that no rule matches is refused.")
            .aka(&["rule"])
            .shown(DefaultValue::EmptyList);
        INTROSPECTION: Nested<serve_oauth_introspection::In> = nested("introspection", Kind::Table(&serve_oauth_introspection::SECTION), "Where tokens are checked that are no JWT (RFC 7662).");
    }
}

/// One text, or a list of texts.
const ONE_OR_MORE: &[Kind] = &[Kind::Text, TEXTS];

/// Ten minutes at most: a larger difference is a wrong clock.
const SKEW: Kind = Kind::Duration { min: 0, max: 600_000 };

section! {
    serve_oauth_rule = "serve.oauth.rule" {
        CLAIM: Option<Text> = located("claim", "The claim of the token that the rule looks at, such as `groups`; dots lead into objects, as in `realm_access.roles`. A rule without it matches every token.");
        HAS: OneOrMore = either("has", ONE_OR_MORE, OneOrMore(Vec::new()), DefaultValue::None, "The value that the claim must have or contain, or a list of which one is enough. Without it, any value will do.")
            .aka(&["contains", "value"]);
        VIEW: Option<Text> = located("view", "The view that holders of such tokens use. Without it, they use the whole board, every server and every view.");
        SCOPES: Vec<TokenScope> = list("scopes", &words::<TokenScope>(), "What holders of such tokens may do: `read`, `call`, `admin`. No scope includes another.")
            .shown(DefaultValue::Texts(&["read", "call"]));
        RATE: Option<Rate> = parsed("rate", "How often each holder of such tokens may call tools, such as `60/min`.").aka(&["rate_limit"]);
        CONCURRENT: Option<usize> = optional_count("concurrent", (1, 1_000_000), "The most calls of each holder of such tokens in flight at once; further ones are refused.")
            .aka(&["max_concurrent", "concurrency"]);
    }
}

section! {
    serve_oauth_introspection = "serve.oauth.introspection" {
        URL: Option<Text> = located("url", "The introspection endpoint of the authorization server.").aka(&["endpoint"]);
        CLIENT_ID: Option<Text> = located("client_id", "The id of the gateway at the authorization server.");
        CLIENT_SECRET: Option<Text> = secret("client_secret", "The secret that belongs to `client_id`.");
    }
}

section! {
    token = "token" {
        SHA256: Option<Text> = located("sha256", "The SHA-256 digest of the token; `pegboard token new` prints both.").aka(&["hash"]);
        VIEW: Option<Text> = located("view", "The view that its holder uses. Without it, its holder uses the whole board, every server and every view.");
        SCOPES: Vec<TokenScope> = list("scopes", &words::<TokenScope>(), "What its holder may do: `read` lists tools and shows the state of servers, `call` calls tools, `admin` changes what runs. No scope includes another.")
            .shown(DefaultValue::Texts(&["read", "call"]));
        RATE: Option<Rate> = parsed("rate", "How often its holder may call tools, such as `60/min`.").aka(&["rate_limit"]);
        CONCURRENT: Option<usize> = optional_count("concurrent", (1, 1_000_000), "The most calls of its holder in flight at once; further ones are refused.")
            .aka(&["max_concurrent", "concurrency"]);
        EXPIRES: Option<Text> = located("expires", "When it expires, such as `2027-01-31T12:00:00Z`.").aka(&["expires_at"]);
    }
}
