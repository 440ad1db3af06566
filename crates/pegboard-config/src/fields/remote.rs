//! The tables of a server with a URL: credentials and TLS.

use super::oauth_table::oauth;
use crate::{
    choice::AuthKind,
    field::{DefaultValue, Kind, Via},
    key::{Nested, flag, nested, optional_choice, secret, section, text},
    setting::Text,
};

section! {
    auth = "auth" {
        TYPE: Option<AuthKind> = optional_choice("type", "The kind of credentials; inferred from the other fields when not set.").aka(&["auth_type", "kind"]);
        BEARER: Option<Text> = secret("bearer", "The token that is sent as `Authorization: Bearer …`.")
            .aka(&["bearer_token", "token"])
            .converted(&[("bearer_token_env_var", Via::VariableName)]);
        BEARER_FILE: Option<String> = text("bearer_file", "A file that contains the bearer token, relative to the config file. It is read again when it changes, and when the server refuses the token.")
            .aka(&["token_file", "bearer_token_file"]);
        USER: Option<String> = text("user", "The user name that is sent as `Authorization: Basic …`.").aka(&["username"]);
        PASSWORD: Option<Text> = secret("password", "The password that belongs to `user`.");
        API_KEY: Option<Text> = secret("api_key", "The key that is sent in the header named by `header`.").aka(&["key"]);
        HEADER: Option<String> = text("header", "The header that carries `api_key`.")
            .aka(&["header_name"])
            .shown(DefaultValue::Text(API_KEY_HEADER));
        OAUTH: Nested<oauth::In> = nested("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&oauth::SECTION)]), "How to sign in with OAuth; the same as `oauth` of the server.");
    }
    unkeyed {
        oauth::CLIENT_ID.field.doc("Short for `oauth.client_id`.");
        oauth::CLIENT_SECRET.field.doc("Short for `oauth.client_secret`.");
        oauth::CLIENT_SECRET_FILE.field.doc("Short for `oauth.client_secret_file`.");
        oauth::PRIVATE_KEY.field.doc("Short for `oauth.private_key`.");
        oauth::PRIVATE_KEY_FILE.field.doc("Short for `oauth.private_key_file`.");
        oauth::KEY_ID.field.doc("Short for `oauth.key_id`.");
        oauth::ALGORITHM.field.doc("Short for `oauth.algorithm`.");
        oauth::SCOPES.field.doc("Short for `oauth.scopes`.");
        oauth::GRANT.field.doc("Short for `oauth.grant`.");
        oauth::TOKEN_URL.field.doc("Short for `oauth.token_url`.");
        oauth::AUTHORIZATION_URL.field.doc("Short for `oauth.authorization_url`.");
        oauth::ISSUER.field.doc("Short for `oauth.issuer`.");
        oauth::RESOURCE.field.doc("Short for `oauth.resource`.");
        oauth::AUDIENCE.field.doc("Short for `oauth.audience`.");
        oauth::SUBJECT_TOKEN.field.doc("Short for `oauth.subject_token`.");
        oauth::SUBJECT_TOKEN_FILE.field.doc("Short for `oauth.subject_token_file`.");
        oauth::ASSERTION.field.doc("Short for `oauth.assertion`.");
        oauth::ASSERTION_FILE.field.doc("Short for `oauth.assertion_file`.");
    }
}

/// The header that carries an API key, unless the config names another.
pub(crate) const API_KEY_HEADER: &str = "X-API-Key";

section! {
    tls = "tls" {
        CA: Option<String> = text("ca", "A PEM file with certificate authorities to trust besides the system's, relative to the config file. It is read again when it changes.")
            .aka(&["ca_file", "ca_cert", "ca_bundle"]);
        CERT: Option<String> = text("cert", "A PEM file with the client certificate chain. It is read again with `key` when they change.").aka(&["client_cert", "cert_file"]);
        KEY: Option<String> = text("key", "A PEM file with the private key of the client certificate.").aka(&["client_key", "key_file"]);
        SERVER_ID: Option<String> = text("server_id", "The SPIFFE id that the server's certificate must have, such as `spiffe://example.org/search`, in place of the host name. Only the authorities in `ca` are trusted then.")
            .aka(&["spiffe_id"]);
        INSECURE: bool = flag("insecure", false, "Whether the server's certificate is accepted without verification.")
            .converted(&[("verify", Via::Negated), ("verify_ssl", Via::Negated)]);
    }
}
