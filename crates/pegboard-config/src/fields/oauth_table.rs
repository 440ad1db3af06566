//! The tables of sign-in with OAuth.

use crate::{
    choice::GrantKind,
    field::{DefaultValue, Kind},
    from_setting::{Scopes, Single},
    key::{
        Nested, TEXTS, choice, either, flag, located, nested, optional_choice, optional_count, secret, section, text,
    },
    oauth::{Dpop, SigningAlg},
    setting::Text,
};

section! {
    oauth = "oauth" {
        ENABLED: bool = flag("enabled", true, "Whether to sign in with OAuth. With `false`, nobody is asked to sign in even if the server requests it.");
        // The client.
        CLIENT_ID: Option<String> = text("client_id", "The id of a client that was registered at the authorization server by hand. Without it, `client_metadata_url` is used, or a client is registered automatically.");
        CLIENT_SECRET: Option<Text> = secret("client_secret", "The secret of that client.");
        CLIENT_SECRET_FILE: Option<Text> = located("client_secret_file", "A file that contains the client secret, relative to the config file.");
        CLIENT_METADATA_URL: Option<Text> = located("client_metadata_url", "The URL of a client-id metadata document. It is the client id at authorization servers that support such documents.")
            .aka(&["client_id_metadata_url", "client_id_metadata_document"]);
        PRIVATE_KEY: Option<Text> = secret("private_key", "The private key of the client in PEM. It authenticates the client with `private_key_jwt` instead of a secret.")
            .aka(&["private_key_pem"]);
        PRIVATE_KEY_FILE: Option<Text> = located("private_key_file", "A PEM file with that key, relative to the config file.");
        KEY_ID: Option<String> = text("key_id", "The id of the private key, if the authorization server knows several.").aka(&["kid"]);
        ALGORITHM: Option<SigningAlg> = optional_choice("algorithm", "The algorithm of signatures with the private key; by default the one that fits the key.")
            .aka(&["alg", "signing_algorithm"]);
        // The request.
        SCOPES: Scopes = either("scopes", &[Kind::Text, TEXTS], Scopes(Vec::new()), DefaultValue::EmptyList, "The scopes to request: a list, or a text with spaces between them. With none, the server says which it needs.")
            .aka(&["scope", "oauth_scopes"]);
        GRANT: Option<GrantKind> = optional_choice("grant", "How a token is obtained: a person signs in, the client's own credentials are enough, or another token is exchanged for it.")
            .aka(&["grant_type"])
            .shown(DefaultValue::Text("authorization_code"));
        RESOURCE: Option<String> = text("resource", "The resource indicator of token requests; by default the resource that the server names, or its URL.");
        AUDIENCE: Single = either("audience", &[Kind::Text, TEXTS], Single(None), DefaultValue::None, "The `audience` of token requests, for authorization servers that need one.")
            .aka(&["audiences"]);
        DPOP: Dpop = choice("dpop", "Whether tokens are bound to a key of this program (DPoP), so that a stolen token is of no use: `auto` if the server and the authorization server support it, `required` to refuse other tokens, `off` never.");
        // The authorization server.
        ISSUER: Option<Text> = located("issuer", "The issuer of the authorization server, or the URL of its metadata. Without it, the server names its authorization server.")
            .aka(&["authorization_server", "auth_server_metadata_url"]);
        TOKEN_URL: Option<Text> = located("token_url", "The token endpoint, in place of that in the metadata.").aka(&["token_endpoint"]);
        AUTHORIZATION_URL: Option<Text> = located("authorization_url", "The authorization endpoint, where a person signs in, in place of that in the metadata.")
            .aka(&["authorization_endpoint", "auth_url"]);
        // Where the browser returns to.
        REDIRECT_URI: Option<Text> = located("redirect_uri", "The URL on this machine that the browser is redirected to after the sign-in, such as `http://127.0.0.1:8976/callback`; without a port, any free one.")
            .aka(&["redirect_url", "callback_url"]);
        CALLBACK_HOST: Option<Text> = located("callback_host", "The host of the redirect URL: `127.0.0.1`, `localhost` or `[::1]`.")
            .aka(&["redirect_host"])
            .shown(DefaultValue::Text("127.0.0.1"));
        CALLBACK_PORT: Option<u16> = optional_count("callback_port", (1, 65_535), "The local port that receives the redirect; by default 47471, or another free one if that is in use.")
            .aka(&["redirect_port"]);
        CALLBACK_PATH: Option<Text> = located("callback_path", "The path of the redirect URL.")
            .aka(&["redirect_path"])
            .shown(DefaultValue::Text("/callback"));
        // What is exchanged.
        SUBJECT_TOKEN: Option<Text> = secret("subject_token", "The token that `token_exchange` exchanges. Without it and `subject_token_file`, that of the caller of the gateway, which needs `issuer` or `token_url`.");
        SUBJECT_TOKEN_FILE: Option<String> = text("subject_token_file", "A file with that token, relative to the config file. It is read for every exchange, so that the platform may replace it.");
        SUBJECT_TOKEN_TYPE: Option<String> = text("subject_token_type", "The type of that token; by default `urn:ietf:params:oauth:token-type:access_token`.");
        REQUESTED_TOKEN_TYPE: Option<String> = text("requested_token_type", "The type of the token that is requested; the authorization server chooses by default.");
        ASSERTION: Option<Text> = secret("assertion", "The assertion that `jwt_bearer` sends. Without it and `assertion_file`, the token of the caller of the gateway.");
        ASSERTION_FILE: Option<String> = text("assertion_file", "A file with the assertion, relative to the config file, such as the projected token of a Kubernetes service account. It is read for every request.");
        IDENTITY_PROVIDER: Nested<identity_provider::In> = nested("identity_provider", Kind::Table(&identity_provider::SECTION), "The identity provider that exchanges the identity token of `jwt_bearer` for an assertion.")
            .aka(&["idp"]);
    }
}

section! {
    identity_provider = "identity_provider" {
        TOKEN_URL: Option<Text> = located("token_url", "The token endpoint of the identity provider.").aka(&["token_endpoint"]);
        CLIENT_ID: Option<String> = text("client_id", "The client id at the identity provider.");
        CLIENT_SECRET: Option<Text> = secret("client_secret", "The client secret at the identity provider.");
        CLIENT_SECRET_FILE: Option<Text> = located("client_secret_file", "A file that contains that secret, relative to the config file.");
    }
}
