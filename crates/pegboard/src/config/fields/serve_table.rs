//! The tables of the gateway.

use std::{collections::BTreeMap, time::Duration};

use crate::config::{
    field::{DefaultValue, Kind},
    key::{
        Nested, count, flag, limit, list, located, located_texts, map, nested, optional_count, parsed, secret, section,
        size, words,
    },
    policy::Rate,
    serve::{ServeConfig, TokenScope},
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
        TLS: Nested<serve_tls::In> = nested("tls", Kind::Table(&serve_tls::SECTION), "The certificate with which the gateway speaks HTTPS. Without it, it speaks HTTP.");
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
