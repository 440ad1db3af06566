//! The tables of a server with a URL: credentials and TLS.

use crate::config::{
    choice::AuthKind,
    field::{DefaultValue, Kind, Via},
    key::{Nested, TEXTS, flag, nested, optional_choice, plain, secret, section, text},
    setting::Text,
};

section! {
    auth = "auth" {
        TYPE: Option<AuthKind> = optional_choice("type", "Which way is meant; it is told by what is set here.").aka(&["auth_type", "kind"]);
        BEARER: Option<Text> = secret("bearer", "Sent as `Authorization: Bearer …`.")
            .aka(&["bearer_token", "token"])
            .converted(&[("bearer_token_env_var", Via::VariableName)]);
        USER: Option<String> = text("user", "The user's name, for `Authorization: Basic …`.").aka(&["username"]);
        PASSWORD: Option<Text> = secret("password", "The user's password.");
        API_KEY: Option<Text> = secret("api_key", "Sent in the header that `header` names.").aka(&["key"]);
        HEADER: Option<String> = text("header", "The header that carries `api_key`.")
            .aka(&["header_name"])
            .shown(DefaultValue::Text(API_KEY_HEADER));
        OAUTH: Nested<oauth::In> = nested("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&oauth::SECTION)]), "How to sign in with OAuth.").later();
    }
    unkeyed {
        plain("client_id", Kind::Text, "Our identity for OAuth; short for `oauth.client_id`.").later();
        plain("client_secret", Kind::Secret, "What proves it; short for `oauth.client_secret`.").later();
        plain("scopes", TEXTS, "Scopes to ask for; short for `oauth.scopes`.").later();
        plain("bearer_file", Kind::Text, "A file that holds the bearer token.").aka(&["token_file"]).later();
    }
}

/// The header that carries an API key, unless the config names another.
pub(in crate::config) const API_KEY_HEADER: &str = "X-API-Key";

section! {
    oauth = "oauth" {
        ENABLED: bool = flag("enabled", true, "Whether to sign in with OAuth.");
    }
    unkeyed {
        plain("client_id", Kind::Text, "Our identity at the authorization server.");
        plain("client_secret", Kind::Secret, "What proves it.");
        plain("scopes", TEXTS, "Scopes to ask for.").aka(&["scope"]);
        plain("grant", Kind::Text, "`authorization_code` or `client_credentials`.").aka(&["grant_type"]);
        plain("token_url", Kind::Text, "Where tokens are given out.").aka(&["token_endpoint"]);
        plain("authorization_url", Kind::Text, "Where a person signs in.").aka(&["authorization_endpoint", "auth_url"]);
        plain("issuer", Kind::Text, "The authorization server.").aka(&["authorization_server", "auth_server_metadata_url"]);
        plain("redirect_uri", Kind::Text, "Where the person is sent back to.").aka(&["redirect_url", "callback_url"]);
        plain("callback_port", Kind::Count { min: 1, max: 65_535 }, "The port that is listened on meanwhile.");
        plain("resource", Kind::Text, "The resource indicator.").aka(&["audience"]);
    }
}

section! {
    tls = "tls" {
        CA: Option<String> = text("ca", "A PEM file with certificate authorities to trust besides the system's, relative to the config file.")
            .aka(&["ca_file", "ca_cert", "ca_bundle"]);
        CERT: Option<String> = text("cert", "A PEM file with our certificate chain.").aka(&["client_cert", "cert_file"]);
        KEY: Option<String> = text("key", "A PEM file with its private key.").aka(&["client_key", "key_file"]);
        INSECURE: bool = flag("insecure", false, "Do not check the server's certificate.")
            .converted(&[("verify", Via::Negated), ("verify_ssl", Via::Negated)]);
    }
}
