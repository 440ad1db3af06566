//! Resolves the endpoint of a remote server: URL, headers, credentials and TLS.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use super::{context::Context, credentials};
use crate::{
    choice::TransportKind,
    fields::{ServerTable, server, tls},
    header_template,
    key::{Key, Table},
    problem::join,
    secret_detection, session_cleanup,
    setting::{Text, Values},
    spiffe_id::SpiffeId,
    transport::{Auth, ClientCert, Endpoint, Tls, Transport},
    tree::Location,
};
use pegboard_base::{
    diagnosis::{Code, Edit},
    secret::{SafeUrl, Secret},
};

pub(super) fn transport(
    context: &mut Context<'_>,
    values: ServerTable<'_>,
    kind: Option<TransportKind>,
    at: Location,
) -> Option<Transport> {
    let url = url(context, &values.get(&server::url)?);
    let headers = headers(context, values);
    let credentials = credentials::resolve(context, values);
    let tls = tls(context, values);
    let cleanup = values.get(&server::session_cleanup_url);
    let cleanup = cleanup.map(|text| session_cleanup_url(context, &text));
    let (url, mut headers, tls) = (url?, headers?, tls?);
    let session_cleanup_url = match cleanup {
        Some(url) => Some(url?),
        None => None,
    };
    if tls.server_id.is_some() && matches!(url.expose().scheme(), "http" | "ws") {
        return context.refuse(at, "tls.server_id", "needs a URL with https:// or wss://");
    }
    let (auth, key_header) = credentials?;
    headers.extend(key_header);
    if !matches!(auth, Auth::None | Auth::Anonymous | Auth::HeadersHelper(_))
        && headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    {
        let at = values.at(&server::headers).unwrap_or(at);
        return context.refuse(at, "headers", "`Authorization` is set here and by `auth`; keep one");
    }
    warn_of_open_credentials(context, &url, &auth, at);
    let endpoint = Endpoint {
        url,
        headers,
        auth,
        tls,
        session_cleanup_url,
        session_gone_status: values.get(&server::session_gone_status),
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
        Some(TransportKind::Http) => Some(Transport::http(endpoint)),
        Some(TransportKind::Sse) => Some(Transport::sse(endpoint)),
        _ if is_socket => Some(Transport::websocket(endpoint)),
        _ if endpoint.url.expose().path().trim_end_matches('/').ends_with("/sse") => Some(Transport::sse(endpoint)),
        _ => Some(Transport::auto(endpoint)),
    }
}

fn url(context: &mut Context<'_>, text: &Text) -> Option<SafeUrl> {
    // Messages show the URL as written, never the values of variables.
    let shown = secret_detection::redact_url(&text.written);
    let refuse = |context: &mut Context<'_>, what: &str| context.refuse(text.at, "url", &format!("`{shown}` {what}"));
    if let Some(scheme) = missing_scheme(text.value.trim()) {
        let refused = refuse(context, &format!("has no scheme; write `{scheme}://{shown}`"));
        let prefix = Edit::Prefix {
            key: join(context.path, "url"),
            text: format!("{scheme}://"),
        };
        context.report.name_last(Code::UrlIncomplete, Some(prefix));
        return refused;
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
        context.report.name_last(Code::SecretInClear, None);
    }
    Some(url.shown_as(shown))
}

fn session_cleanup_url(context: &mut Context<'_>, text: &Text) -> Option<SafeUrl> {
    let shown = secret_detection::redact_url(&text.written);
    let refuse = |context: &mut Context<'_>, what: &str| {
        context.refuse(text.at, "session_cleanup_url", &format!("`{shown}` {what}"))
    };
    let url = match SafeUrl::parse(text.value.trim()) {
        Ok(url) => url,
        Err(error) => return refuse(context, &format!("is not a URL: {}", error.reason())),
    };
    match session_cleanup::check(&url) {
        Ok(()) => Some(url.shown_as(shown)),
        Err(error) => refuse(context, &error.to_string()),
    }
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
    for (name, text) in values.get(&server::headers) {
        // A variable that is set but empty omits the header.
        if !(text.value.is_empty() && text.is_from_variable()) {
            good &= header(context, &mut headers, &path, (&name, &text.value), text.at);
        }
    }
    let path = join(context.path, "env_headers");
    for (name, variable) in values.get(&server::env_headers) {
        match context.env.get(&variable.value) {
            Some(value) if value.is_empty() => {}
            Some(value) => good &= header(context, &mut headers, &path, (&name, &value), variable.at),
            None => {
                good = false;
                let message = format!("variable `{}` is not set", variable.written);
                context.report.error(variable.at, &join(&path, &name), message);
                context.report.name_variable(&variable.written);
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
    at: Location,
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

fn tls(context: &mut Context<'_>, values: ServerTable<'_>) -> Option<Tls> {
    let nothing = Values::default();
    let table = values.table(&server::tls).unwrap_or(Table::new(&nothing));
    let path = |key: &Key<tls::In, Option<String>>| table.get(key).map(|path| context.resolve_path(&path));
    let (ca, cert, key) = (path(&tls::ca), path(&tls::cert), path(&tls::key));
    let insecure = values.get(&server::insecure) || table.get(&tls::insecure);
    let at = values
        .at(&server::tls)
        .or(values.at(&server::insecure))
        .unwrap_or(context.at);
    if insecure {
        let field = join(context.path, "tls.insecure");
        context
            .report
            .warn(at, &field, "the server's certificate is not checked");
        context.report.name_last(Code::CertificateUnchecked, None);
    }
    let client_cert = match (cert, key) {
        (Some(cert), Some(key)) => Some(ClientCert { cert, key }),
        (None, None) => None,
        _ => return context.refuse(at, "tls", "`cert` and `key` belong together"),
    };
    let server_id = match table.get(&tls::server_id).map(|id| SpiffeId::parse(id.trim())) {
        None => None,
        Some(Err(error)) => return context.refuse(at, "tls.server_id", &format!("is no SPIFFE id: {error}")),
        Some(Ok(_)) if insecure => {
            return context.refuse(at, "tls.server_id", "cannot be checked with `insecure`; keep one");
        }
        Some(Ok(_)) if ca.is_none() => {
            let problem = "needs `tls.ca`, the file with the authorities of its trust domain";
            return context.refuse(at, "tls.server_id", problem);
        }
        Some(Ok(id)) => Some(id),
    };
    Some(Tls {
        ca,
        client_cert,
        server_id,
        insecure,
    })
}

/// Warns about credentials that are sent unencrypted to another host.
fn warn_of_open_credentials(context: &mut Context<'_>, url: &SafeUrl, auth: &Auth, at: Location) {
    let url = url.expose();
    let open = matches!(url.scheme(), "http" | "ws");
    let host = url.host_str().unwrap_or("");
    let local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]";
    if open && !local && !matches!(auth, Auth::None | Auth::Anonymous) {
        context.report.warn_with(
            at,
            &join(context.path, "url"),
            "credentials are sent without encryption",
            "use https:// or wss://",
        );
    }
}
