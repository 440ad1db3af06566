//! The tables of a server with a URL: credentials and TLS.

use super::oauth_table::oauth;
use crate::{
    choice::AuthKind,
    field::{DefaultValue, ValueKind, Via},
    key::{Nested, flag, optional_choice, secret, table, text},
    setting::Text,
    settings::settings,
};

settings! {
    auth = "auth" {
        /// The kind of credentials; inferred from the other fields when not set.
        kind: Option<AuthKind> = optional_choice().called("type").aka(&["auth_type", "kind"]);
        /// The token that is sent as `Authorization: Bearer …`.
        bearer: Option<Text> = secret().aka(&["bearer_token", "token"]).converted(&[("bearer_token_env_var", Via::VariableName)]);
        /// A file that contains the bearer token, relative to the config file. It is read again when it changes, and when the server refuses the
        /// token.
        bearer_file: Option<String> = text().aka(&["token_file", "bearer_token_file"]);
        /// The user name that is sent as `Authorization: Basic …`.
        user: Option<String> = text().aka(&["username"]);
        /// The password that belongs to `user`.
        password: Option<Text> = secret();
        /// The key that is sent in the header named by `header`.
        api_key: Option<Text> = secret().aka(&["key"]);
        /// The header that carries `api_key`.
        header: Option<String> = text().aka(&["header_name"]).shown(DefaultValue::Text(API_KEY_HEADER));
        /// How to sign in with OAuth; the same as `oauth` of the server.
        oauth: Nested<oauth::In> = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&oauth::SECTION)]));
    }
    short_for oauth {
        client_id client_secret client_secret_file private_key private_key_file key_id algorithm scopes grant
        token_url authorization_url issuer resource audience subject_token subject_token_file assertion
        assertion_file
    }
}

/// The header that carries an API key, unless the config names another.
pub(crate) const API_KEY_HEADER: &str = "X-API-Key";

settings! {
    tls = "tls" {
        /// A PEM file with certificate authorities to trust besides the system's, relative to the config file. It is read again when it changes.
        ca: Option<String> = text().aka(&["ca_file", "ca_cert", "ca_bundle"]);
        /// A PEM file with the client certificate chain. It is read again with `key` when they change.
        cert: Option<String> = text().aka(&["client_cert", "cert_file"]);
        /// A PEM file with the private key of the client certificate.
        key: Option<String> = text().aka(&["client_key", "key_file"]);
        /// The SPIFFE id that the server's certificate must have, such as `spiffe://example.org/search`, in place of the host name. Only the
        /// authorities in `ca` are trusted then.
        server_id: Option<String> = text().aka(&["spiffe_id"]);
        /// Whether the server's certificate is accepted without verification.
        insecure: bool = flag(false).converted(&[("verify", Via::Negated), ("verify_ssl", Via::Negated)]);
    }
}
