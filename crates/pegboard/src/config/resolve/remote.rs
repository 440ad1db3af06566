//! Resolves the endpoint of a remote server: URL, headers, credentials and TLS.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use super::context::Context;
use crate::{
    config::{
        choice::{AuthKind, TransportKind},
        fields::{API_KEY_HEADER, ServerTable, auth, oauth, server, tls},
        from_setting::FromSetting as _,
        header_template,
        key::{Key, Table},
        problem::join,
        secret_detection,
        setting::{Found, Setting, Text, Values},
        transport::{Auth, ClientCert, Endpoint, Tls, Transport},
        tree::Place,
    },
    secret::{SafeUrl, Secret},
};

pub(super) fn transport(
    context: &mut Context<'_>,
    values: ServerTable<'_>,
    kind: Option<TransportKind>,
    at: Place,
) -> Option<Transport> {
    let url = url(context, &values.get(&server::URL)?);
    let headers = headers(context, values);
    let credentials = auth(context, values);
    let tls = tls(context, values);
    let (url, mut headers) = (url?, headers?);
    let (auth, key_header) = credentials?;
    headers.extend(key_header);
    if auth != Auth::None && headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        let at = values.at(&server::HEADERS).unwrap_or(at);
        return context.refuse(at, "headers", "`Authorization` is set here and by `auth`; keep one");
    }
    warn_of_open_credentials(context, &url, &auth, at);
    let endpoint = Endpoint {
        url,
        headers,
        auth,
        tls: tls?,
        session_gone_status: values.get(&server::SESSION_GONE_STATUS),
    };
    let scheme = endpoint.url.expose().scheme().to_owned();
    let is_socket = matches!(scheme.as_str(), "ws" | "wss");
    match kind {
        Some(TransportKind::WebSocket) if !is_socket => {
            context.refuse(at, "url", "a websocket URL starts with `ws://` or `wss://`")
        }
        Some(TransportKind::Http | TransportKind::Sse) if is_socket => {
            context.refuse(at, "url", "a URL of this type starts with `http://` or `https://`")
        }
        Some(TransportKind::Http) => Some(Transport::Http(endpoint)),
        Some(TransportKind::Sse) => Some(Transport::Sse(endpoint)),
        _ if is_socket => Some(Transport::WebSocket(endpoint)),
        _ if endpoint.url.expose().path().trim_end_matches('/').ends_with("/sse") => Some(Transport::Sse(endpoint)),
        _ => Some(Transport::Auto(endpoint)),
    }
}

fn url(context: &mut Context<'_>, text: &Text) -> Option<SafeUrl> {
    // Messages show the URL as written, never the values of variables.
    let shown = secret_detection::shown_url(&text.written);
    let refuse = |context: &mut Context<'_>, what: &str| context.refuse(text.at, "url", &format!("`{shown}` {what}"));
    if let Some(scheme) = missing_scheme(text.value.trim()) {
        return refuse(context, &format!("has no scheme; write `{scheme}://{shown}`"));
    }
    let url = match SafeUrl::parse(text.value.trim()) {
        Ok(url) => url,
        Err(error) => return refuse(context, &format!("is not a URL: {}", error.reason())),
    };
    if !matches!(url.expose().scheme(), "http" | "https" | "ws" | "wss") {
        return refuse(context, "must start with http://, https://, ws:// or wss://");
    }
    if secret_detection::secret_in_url(&text.written) {
        context.report.warn_with(
            text.at,
            &join(context.path, "url"),
            "a secret is written in the URL",
            "use `auth` or `headers` with `${NAME}`",
        );
    }
    Some(url.shown_as(shown))
}

/// The most likely scheme of a URL without one: `localhost:8080/mcp`, `mcp.example.com/mcp`.
fn missing_scheme(text: &str) -> Option<&'static str> {
    let (authority, _) = text.split_once('/').unwrap_or((text, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_host = !host.is_empty() && host.chars().all(is_name) && (host.contains('.') || host == "localhost");
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if text.contains("://") || !(is_host || is_port(port)) || !(port.is_empty() || is_port(port)) {
        return None;
    }
    let is_local = host == "localhost" || host.starts_with("127.");
    Some(if is_local { "http" } else { "https" })
}

fn headers(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<BTreeMap<String, Secret>> {
    let mut headers = BTreeMap::new();
    let mut good = true;
    let path = join(context.path, "headers");
    for (name, text) in values.get(&server::HEADERS) {
        // A variable that is set but empty omits the header.
        if !(text.value.is_empty() && text.is_from_variable()) {
            good &= header(context, &mut headers, &path, (&name, &text.value), text.at);
        }
    }
    let path = join(context.path, "env_headers");
    for (name, variable) in values.get(&server::ENV_HEADERS) {
        match context.env.get(&variable.value) {
            Some(value) if value.is_empty() => {}
            Some(value) => good &= header(context, &mut headers, &path, (&name, &value), variable.at),
            None => {
                good = false;
                let message = format!("variable `{}` is not set", variable.written);
                context.report.error(variable.at, &join(&path, &name), message);
            }
        }
    }
    good.then_some(headers)
}

fn header(
    context: &mut Context<'_>,
    headers: &mut BTreeMap<String, Secret>,
    path: &str,
    (name, value): (&str, &str),
    at: Place,
) -> bool {
    let problem = if HeaderName::from_bytes(name.as_bytes()).is_err() {
        "is not a header name".to_owned()
    } else if HeaderValue::from_str(value).is_err() {
        "its value cannot be sent in a header".to_owned()
    } else if headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
        "the header is there twice".to_owned()
    } else if let Err(error) = header_template::check(value) {
        error.to_string()
    } else {
        headers.insert(name.to_owned(), Secret::new(value));
        return true;
    };
    context.report.error(at, &join(path, name), problem);
    false
}

/// The credentials, and the header with the API key if there is one.
type Credentials = (Auth, Option<(String, Secret)>);

fn auth(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Credentials> {
    let nothing = Values::default();
    let table = values.table(&server::AUTH).unwrap_or(Table::new(&nothing));
    let short = values.find(&server::AUTH);
    let short = short.and_then(|found| AuthKind::from_setting(&found.setting));
    let kind = short.or(values.get(&server::AUTH_TYPE)).or(table.get(&auth::TYPE));
    let at = values
        .at(&server::AUTH)
        .or(values.at(&server::BEARER_TOKEN))
        .unwrap_or(context.at);
    let bearer = match (values.get(&server::BEARER_TOKEN), table.get(&auth::BEARER)) {
        (Some(_), Some(_)) => {
            return context.refuse(at, "auth", "`bearer_token` and `auth.bearer` are the same; keep one");
        }
        (one, other) => one.or(other),
    };
    let api_key = table.get(&auth::API_KEY);
    let secret = |text: Text| Secret::new(text.value);
    if bearer
        .as_ref()
        .or(api_key.as_ref())
        .is_some_and(|text| HeaderValue::from_str(&text.value).is_err())
    {
        return context.refuse(at, "auth", "its value cannot be sent in a header");
    }
    let basic = table.get(&auth::USER).map(|user| Auth::Basic {
        user,
        password: table.get(&auth::PASSWORD).map_or_else(|| Secret::new(""), secret),
    });
    let key = api_key.map(|key| {
        let header = table.get(&auth::HEADER).unwrap_or_else(|| API_KEY_HEADER.into());
        (header, secret(key))
    });
    if key
        .as_ref()
        .is_some_and(|(header, _)| HeaderName::from_bytes(header.as_bytes()).is_err())
    {
        return context.refuse(at, "auth.header", "is not a header name");
    }
    let has_header = values
        .get(&server::HEADERS)
        .keys()
        .any(|name| name.eq_ignore_ascii_case("authorization"));
    let is_known = has_header || bearer.is_some() || basic.is_some() || key.is_some();
    if let Some(found) = oauth_setting(values, table)
        && (kind == Some(AuthKind::OAuth) || (kind != Some(AuthKind::None) && !is_known))
    {
        context.report.error_with(
            found.at,
            &join(context.path, &found.key),
            "signing in with OAuth is not built in yet, so that the server would be asked without credentials",
            "give it a token: `auth = { bearer = \"${TOKEN}\" }`",
        );
        return None;
    }
    match (kind, bearer, basic, key) {
        (Some(AuthKind::None), ..) | (None, None, None, None) => Some((Auth::None, None)),
        (Some(AuthKind::Bearer) | None, Some(token), None, None) => Some((Auth::Bearer(secret(token)), None)),
        (Some(AuthKind::Basic) | None, None, Some(basic), None) => Some((basic, None)),
        (Some(AuthKind::ApiKey) | None, None, None, Some(key)) => Some((Auth::None, Some(key))),
        // An API key may also be written as `bearer`.
        (Some(AuthKind::ApiKey), Some(token), None, None) => {
            Some((Auth::None, Some((API_KEY_HEADER.into(), secret(token)))))
        }
        (None, ..) => context.refuse(at, "auth", "names more than one way to say who we are"),
        (Some(kind), ..) => {
            let message = format!("does not hold what `{}` needs", kind.word());
            context.refuse(at, "auth", &message)
        }
    }
}

/// The setting that requests sign-in with OAuth.
fn oauth_setting<'a>(values: ServerTable<'a>, table: Table<'a, auth::In>) -> Option<&'a Found> {
    let is_on = |found: Option<&Found>| match found.map(|found| &found.setting) {
        Some(Setting::Bool(on)) => *on,
        Some(Setting::Table(table)) => Table::<oauth::In>::new(table).get(&oauth::ENABLED),
        _ => false,
    };
    let names_oauth = |found: &&Found| AuthKind::from_setting(&found.setting) == Some(AuthKind::OAuth);
    let in_table = table.get(&auth::TYPE) == Some(AuthKind::OAuth) || is_on(table.find(&auth::OAUTH));
    values
        .find(&server::AUTH)
        .filter(names_oauth)
        .or_else(|| values.find(&server::AUTH_TYPE).filter(names_oauth))
        .or_else(|| values.find(&server::AUTH).filter(|_| in_table))
        .or_else(|| values.find(&server::OAUTH).filter(|found| is_on(Some(found))))
}

fn tls(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Tls> {
    let nothing = Values::default();
    let table = values.table(&server::TLS).unwrap_or(Table::new(&nothing));
    let path = |key: &Key<tls::In, Option<String>>| table.get(key).map(|path| context.resolve_path(&path));
    let (ca, cert, key) = (path(&tls::CA), path(&tls::CERT), path(&tls::KEY));
    let insecure = values.get(&server::INSECURE) || table.get(&tls::INSECURE);
    let at = values
        .at(&server::TLS)
        .or(values.at(&server::INSECURE))
        .unwrap_or(context.at);
    if insecure {
        let field = join(context.path, "tls.insecure");
        context
            .report
            .warn(at, &field, "the server's certificate is not checked");
    }
    let client_cert = match (cert, key) {
        (Some(cert), Some(key)) => Some(ClientCert { cert, key }),
        (None, None) => None,
        _ => return context.refuse(at, "tls", "`cert` and `key` belong together"),
    };
    Some(Tls {
        ca,
        client_cert,
        insecure,
    })
}

/// Warns about credentials that are sent unencrypted to another host.
fn warn_of_open_credentials(context: &mut Context<'_>, url: &SafeUrl, auth: &Auth, at: Place) {
    let url = url.expose();
    let open = matches!(url.scheme(), "http" | "ws");
    let host = url.host_str().unwrap_or("");
    let local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]";
    if open && !local && *auth != Auth::None {
        context.report.warn_with(
            at,
            &join(context.path, "url"),
            "credentials are sent without encryption",
            "use https:// or wss://",
        );
    }
}
