//! The URL of a remote server, and what is sent to it.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use super::Resolve;
use crate::{
    config::{
        Auth, ClientCert, Endpoint, Tls, Transport,
        problem::join,
        setting::{Found, Setting, Text, Values},
        suspect,
        tree::Place,
    },
    secret::{SafeUrl, Secret},
};

pub(super) fn transport(
    resolve: &mut Resolve<'_>,
    values: &Values,
    kind: Option<&str>,
    at: Place,
) -> Option<Transport> {
    let url = url(resolve, values.text("url")?);
    let headers = headers(resolve, values);
    let auth = auth(resolve, values);
    let tls = tls(resolve, values);
    let (url, mut headers) = (url?, headers?);
    let (auth, key_header) = auth?;
    headers.extend(key_header);
    if auth != Auth::None && headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        let at = values.at("headers").unwrap_or(at);
        return resolve.refuse(at, "headers", "`Authorization` is set here and by `auth`; keep one");
    }
    warn_of_open_credentials(resolve, &url, &auth, at);
    let endpoint = Endpoint {
        url,
        headers,
        auth,
        tls: tls?,
        session_gone: session_gone(values),
    };
    let scheme = endpoint.url.expose().scheme().to_owned();
    let is_socket = matches!(scheme.as_str(), "ws" | "wss");
    match kind {
        Some("websocket") if !is_socket => resolve.refuse(at, "url", "a websocket URL starts with `ws://` or `wss://`"),
        Some("http" | "sse") if is_socket => {
            resolve.refuse(at, "url", "a URL of this type starts with `http://` or `https://`")
        }
        Some("http") => Some(Transport::Http(endpoint)),
        Some("sse") => Some(Transport::Sse(endpoint)),
        _ if is_socket => Some(Transport::WebSocket(endpoint)),
        _ if endpoint.url.expose().path().trim_end_matches('/').ends_with("/sse") => Some(Transport::Sse(endpoint)),
        _ => Some(Transport::Auto(endpoint)),
    }
}

fn session_gone(values: &Values) -> Vec<u16> {
    let Some(Setting::List(statuses)) = values.get("session_gone_status") else {
        return Vec::new();
    };
    let status = |setting: &Setting| match setting {
        Setting::Count(status) => u16::try_from(*status).ok(),
        _ => None,
    };
    statuses.iter().filter_map(status).collect()
}

fn url(resolve: &mut Resolve<'_>, text: &Text) -> Option<SafeUrl> {
    // What was written is shown, never what the variables in it hold.
    let shown = suspect::shown_url(&text.written);
    let refuse = |resolve: &mut Resolve<'_>, what: &str| resolve.refuse(text.at, "url", &format!("`{shown}` {what}"));
    if let Some(scheme) = missing_scheme(text.value.trim()) {
        return refuse(resolve, &format!("has no scheme; write `{scheme}://{shown}`"));
    }
    let url = match SafeUrl::parse(text.value.trim()) {
        Ok(url) => url,
        Err(error) => return refuse(resolve, &format!("is not a URL: {error}")),
    };
    if !matches!(url.expose().scheme(), "http" | "https" | "ws" | "wss") {
        return refuse(resolve, "must start with http://, https://, ws:// or wss://");
    }
    if suspect::secret_in_url(&text.written) {
        resolve.report.warn_with(
            text.at,
            &join(resolve.path, "url"),
            "a secret is written in the URL",
            "use `auth` or `headers` with `${NAME}`",
        );
    }
    Some(if text.is_from_variable() {
        url.shown_as(shown)
    } else {
        url
    })
}

/// The scheme that an address without one most likely needs: `localhost:8080/mcp`, `mcp.example.com/mcp`.
fn missing_scheme(text: &str) -> Option<&'static str> {
    let (place, _) = text.split_once('/').unwrap_or((text, ""));
    let (host, port) = place.split_once(':').unwrap_or((place, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_host = !host.is_empty() && host.chars().all(is_name) && (host.contains('.') || host == "localhost");
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if text.contains("://") || !(is_host || is_port(port)) || !(port.is_empty() || is_port(port)) {
        return None;
    }
    let is_here = host == "localhost" || host.starts_with("127.");
    Some(if is_here { "http" } else { "https" })
}

fn headers(resolve: &mut Resolve<'_>, values: &Values) -> Option<BTreeMap<String, Secret>> {
    let mut headers = BTreeMap::new();
    let mut good = true;
    let path = join(resolve.path, "headers");
    for (name, text) in values.map("headers") {
        // A variable that is there but empty means: no such header.
        if !(text.value.is_empty() && text.is_from_variable()) {
            good &= header(resolve, &mut headers, &path, (name, &text.value), text.at);
        }
    }
    let path = join(resolve.path, "env_headers");
    for (name, variable) in values.map("env_headers") {
        match resolve.env.get(&variable.value) {
            Some(value) if value.is_empty() => {}
            Some(value) => good &= header(resolve, &mut headers, &path, (name, &value), variable.at),
            None => {
                good = false;
                let message = format!("variable `{}` is not set", variable.written);
                resolve.report.error(variable.at, &join(&path, name), message);
            }
        }
    }
    good.then_some(headers)
}

fn header(
    resolve: &mut Resolve<'_>,
    headers: &mut BTreeMap<String, Secret>,
    path: &str,
    (name, value): (&str, &str),
    at: Place,
) -> bool {
    let problem = if HeaderName::from_bytes(name.as_bytes()).is_err() {
        "is not a header name"
    } else if HeaderValue::from_str(value).is_err() {
        "its value cannot be sent in a header"
    } else if headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
        "the header is there twice"
    } else {
        headers.insert(name.to_owned(), Secret::new(value));
        return true;
    };
    resolve.report.error(at, &join(path, name), problem);
    false
}

/// The credentials, and the header that carries an API key if that is how we say who we are.
type Credentials = (Auth, Option<(String, Secret)>);

fn auth(resolve: &mut Resolve<'_>, values: &Values) -> Option<Credentials> {
    let nothing = Values::default();
    let table = values.table("auth").unwrap_or(&nothing);
    let kind = values.word("auth").or(values.word("auth_type")).or(table.word("type"));
    let at = values.at("auth").or(values.at("bearer_token")).unwrap_or(resolve.at);
    let bearer = match (values.text("bearer_token"), table.text("bearer")) {
        (Some(_), Some(_)) => {
            return resolve.refuse(at, "auth", "`bearer_token` and `auth.bearer` are the same; keep one");
        }
        (one, other) => one.or(other),
    };
    let secret = |text: &Text| Secret::new(text.value.as_str());
    if bearer
        .or(table.text("api_key"))
        .is_some_and(|text| HeaderValue::from_str(&text.value).is_err())
    {
        return resolve.refuse(at, "auth", "its value cannot be sent in a header");
    }
    let basic = table.text("user").map(|user| Auth::Basic {
        user: user.value.clone(),
        password: table.text("password").map_or_else(|| Secret::new(""), secret),
    });
    let key = table.text("api_key").map(|key| {
        let header = table.value("header").unwrap_or_else(|| "X-API-Key".into());
        (header, secret(key))
    });
    if key
        .as_ref()
        .is_some_and(|(header, _)| HeaderName::from_bytes(header.as_bytes()).is_err())
    {
        return resolve.refuse(at, "auth.header", "is not a header name");
    }
    let has_header = values
        .map("headers")
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let is_known = has_header || bearer.is_some() || basic.is_some() || key.is_some();
    if let Some(found) = sign_in(values, table)
        && (kind == Some("oauth") || (kind != Some("none") && !is_known))
    {
        resolve.report.error_with(
            found.at,
            &join(resolve.path, &found.key),
            "signing in with OAuth is not built in yet, so that the server would be asked without credentials",
            "give it a token: `auth = { bearer = \"${TOKEN}\" }`",
        );
        return None;
    }
    match (kind, bearer, basic, key) {
        (Some("none"), ..) | (None, None, None, None) => Some((Auth::None, None)),
        (Some("bearer") | None, Some(token), None, None) => Some((Auth::Bearer(secret(token)), None)),
        (Some("basic") | None, None, Some(basic), None) => Some((basic, None)),
        (Some("api_key") | None, None, None, Some(key)) => Some((Auth::None, Some(key))),
        // A key may also be written where a token would be.
        (Some("api_key"), Some(token), None, None) => Some((Auth::None, Some(("X-API-Key".into(), secret(token))))),
        (None, ..) => resolve.refuse(at, "auth", "names more than one way to say who we are"),
        (Some(kind), ..) => resolve.refuse(at, "auth", &format!("does not hold what `{kind}` needs")),
    }
}

/// The setting that asks for a sign-in with OAuth.
fn sign_in<'a>(values: &'a Values, auth: &Values) -> Option<&'a Found> {
    let is_on = |values: &Values| match values.get("oauth") {
        Some(Setting::Bool(on)) => *on,
        Some(Setting::Table(table)) => table.bool("enabled").unwrap_or(true),
        _ => false,
    };
    let by_word = ["auth", "auth_type"]
        .into_iter()
        .find(|name| values.word(name) == Some("oauth"));
    let in_table = || (auth.word("type") == Some("oauth") || is_on(auth)).then_some("auth");
    let beside = || is_on(values).then_some("oauth");
    values.find(by_word.or_else(in_table).or_else(beside)?)
}

fn tls(resolve: &mut Resolve<'_>, values: &Values) -> Option<Tls> {
    let nothing = Values::default();
    let table = values.table("tls").unwrap_or(&nothing);
    let path = |name: &str| table.text(name).map(|text| resolve.resolve_path(&text.value));
    let (ca, cert, key) = (path("ca"), path("cert"), path("key"));
    let insecure = values.bool("insecure").unwrap_or(false) || table.bool("insecure").unwrap_or(false);
    let at = values.at("tls").or(values.at("insecure")).unwrap_or(resolve.at);
    if insecure {
        let field = join(resolve.path, "tls.insecure");
        resolve
            .report
            .warn(at, &field, "the server's certificate is not checked");
    }
    let client_cert = match (cert, key) {
        (Some(cert), Some(key)) => Some(ClientCert { cert, key }),
        (None, None) => None,
        _ => return resolve.refuse(at, "tls", "`cert` and `key` belong together"),
    };
    Some(Tls {
        ca,
        client_cert,
        insecure,
    })
}

fn warn_of_open_credentials(resolve: &mut Resolve<'_>, url: &SafeUrl, auth: &Auth, at: Place) {
    let url = url.expose();
    let open = matches!(url.scheme(), "http" | "ws");
    let host = url.host_str().unwrap_or("");
    let local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]";
    if open && !local && *auth != Auth::None {
        resolve.report.warn_with(
            at,
            &join(resolve.path, "url"),
            "credentials are sent without encryption",
            "use https:// or wss://",
        );
    }
}
