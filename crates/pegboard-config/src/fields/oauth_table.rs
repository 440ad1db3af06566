//! The tables of sign-in with OAuth.

use crate::{
    choice::GrantKind,
    field::{DefaultValue, ValueKind},
    from_setting,
    key::{Nested, ONE_OR_MORE, choice, either, flag, optional_choice, optional_count, secret, table, text},
    oauth::{Dpop, SigningAlg},
    setting::Text,
    settings::settings,
};

settings! {
    oauth = "oauth" {
        /// Whether to sign in with OAuth. With `false`, nobody is asked to sign in even if the server requests it.
        enabled: bool = flag(true);
        // The client.
        /// The id of a client that was registered at the authorization server by hand. Without it, `client_metadata_url` is used, or a client is
        /// registered automatically.
        client_id: Option<String> = text();
        /// The secret of that client.
        client_secret: Option<Text> = secret();
        /// A file that contains the client secret, relative to the config file.
        client_secret_file: Option<Text> = text();
        /// The URL of a client-id metadata document. It is the client id at authorization servers that support such documents.
        client_metadata_url: Option<Text> = text().aka(&["client_id_metadata_url", "client_id_metadata_document"]);
        /// The private key of the client in PEM. It authenticates the client with `private_key_jwt` instead of a secret.
        private_key: Option<Text> = secret().aka(&["private_key_pem"]);
        /// A PEM file with that key, relative to the config file.
        private_key_file: Option<Text> = text();
        /// The id of the private key, if the authorization server knows several.
        key_id: Option<String> = text().aka(&["kid"]);
        /// The algorithm of signatures with the private key; by default the one that fits the key.
        algorithm: Option<SigningAlg> = optional_choice().aka(&["alg", "signing_algorithm"]);
        // The request.
        /// The scopes to request: a list, or a text with spaces between them. With none, the server says which it needs.
        scopes: Vec<String> = either(ONE_OR_MORE, Vec::new(), DefaultValue::EmptyList)
            .via(from_setting::scopes)
            .aka(&["scope", "oauth_scopes"]);
        /// How a token is obtained: a person signs in, the client's own credentials are enough, or another token is exchanged for it.
        grant: Option<GrantKind> = optional_choice().aka(&["grant_type"]).shown(DefaultValue::Text("authorization_code"));
        /// The resource indicator of token requests; by default the resource that the server names, or its URL.
        resource: Option<String> = text();
        /// The `audience` of token requests, for authorization servers that need one.
        audience: Option<String> = either(ONE_OR_MORE, None, DefaultValue::None).via(from_setting::first).aka(&["audiences"]);
        /// Whether tokens are bound to a key of this program (DPoP), so that a stolen token is of no use: `auto` if the server and the authorization
        /// server support it, `required` to refuse other tokens, `off` never.
        dpop: Dpop = choice();
        // The authorization server.
        /// The issuer of the authorization server, or the URL of its metadata. Without it, the server names its authorization server.
        issuer: Option<Text> = text().aka(&["authorization_server", "auth_server_metadata_url"]);
        /// The token endpoint, in place of that in the metadata.
        token_url: Option<Text> = text().aka(&["token_endpoint"]);
        /// The authorization endpoint, where a person signs in, in place of that in the metadata.
        authorization_url: Option<Text> = text().aka(&["authorization_endpoint", "auth_url"]);
        // Where the browser returns to.
        /// The URL on this machine that the browser is redirected to after the sign-in, such as `http://127.0.0.1:8976/callback`; without a port, any
        /// free one.
        redirect_uri: Option<Text> = text().aka(&["redirect_url", "callback_url"]);
        /// The host of the redirect URL: `127.0.0.1`, `localhost` or `[::1]`.
        callback_host: Option<Text> = text().aka(&["redirect_host"]).shown(DefaultValue::Text("127.0.0.1"));
        /// The local port that receives the redirect; by default 47471, or another free one if that is in use.
        callback_port: Option<u16> = optional_count((1, 65_535)).aka(&["redirect_port"]);
        /// The path of the redirect URL.
        callback_path: Option<Text> = text().aka(&["redirect_path"]).shown(DefaultValue::Text("/callback"));
        // What is exchanged.
        /// The token that `token_exchange` exchanges. Without it and `subject_token_file`, that of the caller of the gateway, which needs `issuer` or
        /// `token_url`.
        subject_token: Option<Text> = secret();
        /// A file with that token, relative to the config file. It is read for every exchange, so that the platform may replace it.
        subject_token_file: Option<String> = text();
        /// The type of that token; by default `urn:ietf:params:oauth:token-type:access_token`.
        subject_token_type: Option<String> = text();
        /// The type of the token that is requested; the authorization server chooses by default.
        requested_token_type: Option<String> = text();
        /// The assertion that `jwt_bearer` sends. Without it and `assertion_file`, the token of the caller of the gateway.
        assertion: Option<Text> = secret();
        /// A file with the assertion, relative to the config file, such as the projected token of a Kubernetes service account. It is read for every
        /// request.
        assertion_file: Option<String> = text();
        /// The identity provider that exchanges the identity token of `jwt_bearer` for an assertion.
        identity_provider: Nested<identity_provider::In> = table(ValueKind::Table(&identity_provider::SECTION)).aka(&["idp"]);
    }
}

settings! {
    identity_provider = "identity_provider" {
        /// The token endpoint of the identity provider.
        token_url: Option<Text> = text().aka(&["token_endpoint"]);
        /// The client id at the identity provider.
        client_id: Option<String> = text();
        /// The client secret at the identity provider.
        client_secret: Option<Text> = secret();
        /// A file that contains that secret, relative to the config file.
        client_secret_file: Option<Text> = text();
    }
}
