//! The settings of a server's transport and credentials.

use std::{collections::BTreeMap, time::Duration};

use super::{
    oauth_table::oauth,
    remote::{auth, tls},
};
use crate::{
    choice::{AuthKind, TransportKind},
    field::{DefaultValue, Field, Floor, ValueKind, Via},
    floor::{at_least_default, names_others, weaker},
    from_setting,
    key::{
        LIMIT, Nested, ONE_OR_MORE, choice, either, flag, foreign, list, map, number, optional_choice,
        optional_duration, secret, table, text, texts, word_kind,
    },
    preset::Preset,
    sandbox::{SandboxLevel, sandbox},
    setting::{Setting, Text},
    settings::settings,
    transport::{EnvPolicy, rlimits},
};

settings! {
    connection of server {
        /// The transport. Without it: `command` means stdio, a `ws://` or `wss://` URL means websocket, a URL that ends in `/sse` means sse, any
        /// other URL means http.
        kind: Option<TransportKind> = optional_choice().called("type").aka(&["transport", "transport_type"]).common();
        /// The transports that the server may use; with any other one it is refused.
        transports: Vec<TransportKind> = list(&word_kind::<TransportKind>())
            .aka(&["allow_transports"])
            .protects()
            .floor(Floor::Users(|own, users| weaker(own, users, |own: Vec<TransportKind>, users: Vec<_>| names_others(&own, &users))))
            .for_all_as("The transports that servers may use; a server's own list overrides it.", &["allow_transports"])
            .live();
        /// The program to start: a path, or a name that is looked up on the child's PATH. A list is the program and its first arguments. No shell
        /// parses it.
        command: Option<Vec<Text>> = either(ONE_OR_MORE, None, DefaultValue::None)
            .aka(&["cmd", "program"])
            .via(from_setting::argv)
            .common();
        /// The arguments of the program; each element stays one argument.
        args: Vec<Text> = texts().aka(&["arguments"]).stdio().common();
        /// Environment variables that are set for the process.
        env: BTreeMap<String, Text> = map(&ValueKind::Secret).aka(&["envs", "environment"]).stdio().common();
        /// A file of `NAME=value` lines with more environment variables, relative to the config file; `env` overrides it.
        env_file: Option<Text> = text().stdio().common();
        /// Names of environment variables that the process inherits in addition to `env_policy`.
        env_pass: Vec<String> = texts().aka(&["env_vars", "env_keys"]).stdio();
        /// Which environment variables the process inherits: a short list that programs need, none, or with `inherit` all but the keys of model
        /// providers, `OTEL_*`, `PEGBOARD_*`, and those that make programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS`, …). `env` and
        /// `env_pass` add variables; `LD_*`, `NODE_OPTIONS` and the like also need `allow_loader_env`.
        env_policy: EnvPolicy = choice().protects().floor(at_least_default::<EnvPolicy>()).stdio().for_all(&[]);
        /// Whether variables that make a program load other code, such as LD_PRELOAD, may be set.
        allow_loader_env: bool = flag(false).stdio();
        /// The working directory of the process, relative to the config file; `~` is the home directory.
        cwd: Option<String> = text().aka(&["working_dir", "working_directory", "work_dir"]).stdio().common();
        /// Resource limits of its processes, on Linux.
        rlimits: Nested<rlimits::In> = table(ValueKind::Table(&rlimits::SECTION)).aka(&["ulimits"]).protects().stdio();
        /// The sandbox of its processes, on Linux: what they may access. `true` means basic; a single word is short for `level`.
        sandbox: Nested<sandbox::In> = table(ValueKind::Either(&[word_kind::<SandboxLevel>(), ValueKind::Bool, ValueKind::Table(&sandbox::SECTION)]))
            .merged(|short| match short {
                Setting::Word(_) => Some((&sandbox::level, short.clone())),
                Setting::Bool(true) => Some((&sandbox::level, Setting::Word("basic"))),
                Setting::Bool(false) => Some((&sandbox::level, Setting::Word("off"))),
                _ => None,
            })
            .protects()
            .stdio()
            .common();
        /// The URL of the server.
        url: Option<Text> = text().aka(&["server_url", "http_url", "uri", "endpoint", "base_url"]).common();
        /// Headers that are sent with every request, to this origin only. `{{NAME}}` is replaced for each view.
        headers: BTreeMap<String, Text> = map(&ValueKind::Secret)
            .aka(&["http_headers", "custom_headers", "request_headers"])
            .remote()
            .common();
        /// Headers whose values are read from the named environment variables.
        env_headers: BTreeMap<String, Text> = map(&ValueKind::Text).aka(&["env_http_headers"]).remote();
        /// The credentials that are sent to the server.
        auth: Nested<auth::In> = table(ValueKind::Either(&[ValueKind::Table(&auth::SECTION), word_kind::<AuthKind>()]))
            .aka(&["auth_config", "authentication"])
            .remote();
        /// The kind of credentials; inferred from `auth` when not set.
        auth_type: Option<AuthKind> = optional_choice().remote();
        /// Short for `auth = { bearer = … }`.
        bearer_token: Option<Text> = secret().converted(&[("bearer_token_env_var", Via::VariableName)]).remote().common();
        /// How to sign in with OAuth: a table, or `false` if nobody is to be asked to sign in.
        oauth: Nested<oauth::In> = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&oauth::SECTION)])).remote().common();
        /// A program that prints headers for the requests, as a JSON object or as lines `Name: value`: a list is the program and its arguments, a
        /// text is split at spaces, or run by a shell if it has characters of one. It is run again when the server answers 401 or 403. Its
        /// environment is that of stdio servers (`env`, `env_policy`, `cwd`), with PEGBOARD_SERVER_NAME and PEGBOARD_SERVER_URL.
        headers_helper: Option<Vec<Text>> = either(ONE_OR_MORE, None, DefaultValue::None)
            .aka(&["header_helper", "header_command"])
            .via(from_setting::argv)
            .remote();
        /// How long the headers of `headers_helper` are used; without it, until the server refuses them.
        headers_helper_ttl: Option<Duration> = optional_duration(LIMIT).remote();
        /// Short for `oauth.scopes`.
        scopes: Vec<String> = either(ONE_OR_MORE, Vec::new(), DefaultValue::EmptyList)
            .via(from_setting::scopes)
            .aka(&["oauth_scopes"])
            .remote();
        /// Short for `oauth.resource`.
        oauth_resource: Option<String> = text().remote();
        /// TLS settings of the connection.
        tls: Nested<tls::In> = table(ValueKind::Table(&tls::SECTION)).remote();
        /// Whether the server's certificate is accepted without verification.
        insecure: bool = flag(false)
            .converted(&[("verify_ssl", Via::Negated), ("verify_tls", Via::Negated), ("tls_verify", Via::Negated), ("ssl_verify", Via::Negated)])
            .remote();
        /// A URL that is sent a DELETE request when an agent's session ends. `{{NAME}}` in its path or query is replaced for each view, as in
        /// `headers`. The headers and credentials of the server go along if the URL has the same origin.
        session_cleanup_url: Option<Text> = text().remote();
        /// HTTP statuses, besides 404, with which this server reports that the session is gone; the response must mention a session.
        session_gone_status: Vec<u16> = list(&number(1, 1_000_000));
        /// The preset that provides the defaults of this server.
        preset: Preset = choice().live();
    }
}

/// Settings of other programs that share the file.
pub(super) static FOREIGN: &[&Field] = &[
    &foreign("gallery"),
    &foreign("version"),
    &foreign("source"),
    &foreign("dev"),
    &foreign("settings"),
    &foreign("icon"),
    &foreign("watch_paths"),
];
