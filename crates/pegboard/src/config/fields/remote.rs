//! The tables of a server with a URL: credentials and TLS.

use crate::config::{
    choice::AuthKind,
    field::{DefaultValue, Kind, Via},
    key::{Nested, TEXTS, flag, nested, optional_choice, plain, secret, section, text},
    setting::Text,
};

section! {
    auth = "auth" {
        TYPE: Option<AuthKind> = optional_choice("type", "The kind of credentials; inferred from the other fields when not set.").aka(&["auth_type", "kind"]);
        BEARER: Option<Text> = secret("bearer", "The token that is sent as `Authorization: Bearer …`.")
            .aka(&["bearer_token", "token"])
            .converted(&[("bearer_token_env_var", Via::VariableName)]);
        USER: Option<String> = text("user", "The user name that is sent as `Authorization: Basic …`.").aka(&["username"]);
        PASSWORD: Option<Text> = secret("password", "The password that belongs to `user`.");
        API_KEY: Option<Text> = secret("api_key", "The key that is sent in the header named by `header`.").aka(&["key"]);
        HEADER: Option<String> = text("header", "The header that carries `api_key`.")
            .aka(&["header_name"])
            .shown(DefaultValue::Text(API_KEY_HEADER));
        OAUTH: Nested<oauth::In> = nested("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&oauth::SECTION)]), "How to sign in with OAuth.").later();
    }
    unkeyed {
        plain("client_id", Kind::Text, "The OAuth client id; short for `oauth.client_id`.").later();
        plain("client_secret", Kind::Secret, "The OAuth client secret; short for `oauth.client_secret`.").later();
        plain("scopes", TEXTS, "OAuth scopes to request; short for `oauth.scopes`.").later();
        plain("bearer_file", Kind::Text, "A file that contains the bearer token.").aka(&["token_file"]).later();
    }
}

/// The header that carries an API key, unless the config names another.
pub(in crate::config) const API_KEY_HEADER: &str = "X-API-Key";

section! {
    oauth = "oauth" {
        ENABLED: bool = flag("enabled", true, "Whether to sign in with OAuth.");
    }
    unkeyed {
        plain("client_id", Kind::Text, "The client id at the authorization server.");
        plain("client_secret", Kind::Secret, "The client secret at the authorization server.");
        plain("scopes", TEXTS, "Scopes to request.").aka(&["scope"]);
        plain("grant", Kind::Text, "The grant type: `authorization_code` or `client_credentials`.").aka(&["grant_type"]);
        plain("token_url", Kind::Text, "The token endpoint.").aka(&["token_endpoint"]);
        plain("authorization_url", Kind::Text, "The authorization endpoint, where a person signs in.").aka(&["authorization_endpoint", "auth_url"]);
        plain("issuer", Kind::Text, "The issuer URL of the authorization server.").aka(&["authorization_server", "auth_server_metadata_url"]);
        plain("redirect_uri", Kind::Text, "The URL that the browser is redirected to after sign-in.").aka(&["redirect_url", "callback_url"]);
        plain("callback_port", Kind::Count { min: 1, max: 65_535 }, "The local port that receives the redirect.");
        plain("resource", Kind::Text, "The resource indicator to request tokens for.").aka(&["audience"]);
    }
}

section! {
    tls = "tls" {
        CA: Option<String> = text("ca", "A PEM file with certificate authorities to trust besides the system's, relative to the config file.")
            .aka(&["ca_file", "ca_cert", "ca_bundle"]);
        CERT: Option<String> = text("cert", "A PEM file with the client certificate chain.").aka(&["client_cert", "cert_file"]);
        KEY: Option<String> = text("key", "A PEM file with the private key of the client certificate.").aka(&["client_key", "key_file"]);
        INSECURE: bool = flag("insecure", false, "Whether the server's certificate is accepted without verification.")
            .converted(&[("verify", Via::Negated), ("verify_ssl", Via::Negated)]);
    }
}
