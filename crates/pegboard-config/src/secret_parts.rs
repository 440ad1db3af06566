//! Finds the secrets in a value: the whole value, or parts of it such as the password of a connection string.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

use pegboard_base::secret::{Secret, is_random, is_secret, is_token_like, names_secret};

/// The most secrets that are taken from one value. The parts of a larger one are searched as lines of the whole value.
const MAX_PARTS: usize = 512;
/// How deeply values within values are searched: JSON in a variable, a connection string in the JSON.
const MAX_DEPTH: usize = 4;
/// The shortest line of a PEM block that is searched by itself.
const MIN_PEM_LINE: usize = 8;
/// The shortest word of a longer text that is searched by itself.
const MIN_WORD: usize = 8;
/// Schemes of credentials in headers.
const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "token",
    "apikey",
    "api-key",
    "key",
    "negotiate",
    "digest",
];

/// Parameters of a credential that prove it, although their names say little: `sig=…`, `mac="…"`, the `response` of a digest.
const PROOFS: &[&str] = &[
    "sig",
    "signature",
    "oauth_signature",
    "mac",
    "hmac",
    "response",
    "auth",
    "assertion",
    "proof",
];
/// Parameters of a credential that anybody may know.
const PUBLIC: &[&str] = &[
    "realm",
    "username",
    "user",
    "uri",
    "url",
    "qop",
    "nc",
    "nonce",
    "cnonce",
    "opaque",
    "algorithm",
    "headers",
    "signedheaders",
    "credential",
    "keyid",
    "id",
    "ts",
    "timestamp",
    "created",
    "expires",
    "sr",
    "se",
    "skn",
    "sv",
    "sp",
    "oauth_nonce",
    "oauth_timestamp",
    "oauth_consumer_key",
    "oauth_signature_method",
    "oauth_version",
];

/// Returns the secrets in the value under a name. The name is that of a variable, header, query parameter or JSON key.
pub fn secrets_in(name: &str, value: &str) -> Vec<Secret> {
    let mut found = SecretParts::default();
    found.search(name, value, 0);
    found.0.truncate(MAX_PARTS);
    found.0
}

/// Returns the secrets in a URL: user info, query values, and parts of its path that look like tokens.
pub(super) fn secrets_in_url(url: &str) -> Vec<Secret> {
    let mut found = SecretParts::default();
    found.url(url.trim(), 0);
    found.0
}

/// Whether a value is nothing but a URL, or several of them.
pub(super) fn is_urls(value: &str) -> bool {
    let is_url = |word: &str| {
        word.split_once("://").is_some_and(|(scheme, _)| {
            let is_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.:".contains(&b);
            !scheme.is_empty() && scheme.len() <= 40 && scheme.bytes().all(is_scheme)
        })
    };
    value.contains("://") && value.split_whitespace().all(is_url)
}

/// Splits a URL into its authority (`user@host:port`), path, query and fragment. It may contain variables, so a URL parser might reject it.
pub(super) fn url_parts(written: &str) -> UrlParts<'_> {
    let after_scheme = written.split_once("://").map_or(written, |(_, rest)| rest);
    // A password may contain any of these characters, written by hand.
    let host_from = after_scheme.split(['?', '#']).next().and_then(|part| part.rfind('@'));
    let from = host_from.unwrap_or(0);
    let end = after_scheme[from..]
        .find(['/', '?', '#'])
        .map_or(after_scheme.len(), |end| from + end);
    let (authority, rest) = after_scheme.split_at(end);
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    UrlParts {
        user_info: authority.rsplit_once('@').map(|(user, _)| user),
        path,
        query,
        fragment,
    }
}

/// The parts of a URL that may hold secrets.
pub(super) struct UrlParts<'u> {
    pub(super) user_info: Option<&'u str>,
    pub(super) path: &'u str,
    pub(super) query: &'u str,
    pub(super) fragment: &'u str,
}

#[derive(Default)]
struct SecretParts(Vec<Secret>);

impl SecretParts {
    fn push(&mut self, value: &str) {
        let secret = Secret::new(value.trim());
        if !value.trim().is_empty() && !self.0.contains(&secret) && self.0.len() < MAX_PARTS {
            self.0.push(secret);
        }
    }

    /// Adds a value from a URL as it is, and percent-decoded.
    fn push_encoded(&mut self, value: &str) {
        self.push(value);
        self.push(&decode(value));
    }

    fn search(&mut self, name: &str, value: &str, depth: usize) {
        let value = value.trim();
        if value.is_empty() || depth > MAX_DEPTH {
            return;
        }
        if value.contains("-----BEGIN ") {
            return self.pem(value);
        }
        if is_urls(value) {
            return value.split_whitespace().for_each(|url| self.url(url, depth));
        }
        if let Some((scheme, credentials)) = scheme_of(value) {
            return self.credentials(name, scheme, credentials);
        }
        let before = self.0.len();
        if self.structure(name, value, depth) {
            if names_secret(name) && self.0.len() == before {
                self.push(value);
            }
            return;
        }
        if is_secret(name, value) {
            self.push(value);
            self.words(value);
        }
        if names_secret(name) {
            self.parameters(value);
        }
        self.pairs(value, depth);
        self.data_source(value);
    }

    /// Searches the items of JSON, the lines of a text and the cookies of a header. Returns whether the value has such a structure.
    fn structure(&mut self, name: &str, value: &str, depth: usize) -> bool {
        if value.starts_with(['{', '['])
            && let Ok(json) = serde_json::from_str::<Json>(value)
        {
            self.json(name, &json, depth);
            return true;
        }
        if value.contains('\n') {
            value.lines().for_each(|line| self.search(name, line, depth + 1));
            return true;
        }
        let name = name.trim_start_matches('-').to_ascii_lowercase();
        if matches!(name.as_str(), "cookie" | "set-cookie" | "cookies") && value.contains('=') {
            for (name, value) in value.split(';').filter_map(|pair| pair.split_once('=')) {
                self.search(name.trim(), value, depth + 1);
            }
            return true;
        }
        false
    }

    fn json(&mut self, name: &str, json: &Json, depth: usize) {
        match json {
            Json::String(text) => self.search(name, text, depth + 1),
            Json::Number(number) if names_secret(name) && is_secret(name, &number.to_string()) => {
                self.push(&number.to_string());
            }
            Json::Array(items) => items.iter().for_each(|item| self.json(name, item, depth)),
            Json::Object(entries) => {
                // `{"name": "DB_PASSWORD", "value": …}`
                let label = entries.get("name").or(entries.get("key")).and_then(Json::as_str);
                for (key, value) in entries {
                    let name = match label {
                        Some(label) if key == "value" => label,
                        _ => key.as_str(),
                    };
                    self.json(name, value, depth);
                }
            }
            Json::Number(_) | Json::Bool(_) | Json::Null => {}
        }
    }

    /// Adds a private key and each of its lines. A certificate or a public key is no secret.
    fn pem(&mut self, value: &str) {
        let is_private = value.contains("PRIVATE") || value.contains("KEY BLOCK");
        if !is_private {
            return;
        }
        // In a variable, line breaks are often written as `\n`.
        let unescaped = value.replace("\\n", "\n");
        for line in unescaped.lines().map(str::trim) {
            if line.len() >= MIN_PEM_LINE && !line.contains("-----") && !line.contains(": ") {
                self.push(line);
            }
        }
    }

    fn credentials(&mut self, name: &str, scheme: &str, credentials: &str) {
        // Other text may start with such a word too: `token bucket`.
        if !names_secret(name) && !is_secret("", credentials) {
            return;
        }
        self.push(credentials);
        self.parameters(credentials);
        if scheme == "basic"
            && let Ok(decoded) = STANDARD.decode(credentials)
            && let Ok(decoded) = String::from_utf8(decoded)
            && let Some((_, password)) = decoded.split_once(':')
        {
            self.push(password);
            self.push(&decoded);
        }
    }

    /// Adds the secret parameters of a credential, as in `Token token="…"`, `Digest username="…", response="…"`,
    /// `AWS4-HMAC-SHA256 Credential=…, Signature=…` and `SharedAccessSignature sr=…&sig=…`.
    fn parameters(&mut self, value: &str) {
        let is_scheme = |word: &str| !word.contains(['=', '"', ',']);
        let list = match value.split_once(' ') {
            Some((scheme, list)) if is_scheme(scheme) => list,
            _ => value,
        };
        for (name, value) in parameters(list) {
            let lower = name.to_ascii_lowercase();
            let is_public = PUBLIC.contains(&lower.as_str());
            let is_named = PROOFS.contains(&lower.as_str()) || names_secret(name);
            if !is_public && (is_named || is_secret("", value)) {
                self.push_encoded(value);
            }
        }
    }

    fn url(&mut self, url: &str, depth: usize) {
        let parts = url_parts(url);
        match parts.user_info.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            Some((user, "")) if is_secret("", user) => self.push_encoded(user),
            Some((user, password)) if !password.is_empty() => {
                self.push_encoded(password);
                // `https://TOKEN:x-oauth-basic@host`
                if is_token_like(user) {
                    self.push_encoded(user);
                }
            }
            Some(_) | None => {}
        }
        for pair in parts.query.split('&').chain(parts.fragment.split('&')) {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            let plain = decode(value);
            let before = self.0.len();
            self.search(&decode(name), &plain, depth + 1);
            if self.0.len() > before && plain != value {
                self.push(value);
            }
        }
        // A package at a commit is no secret.
        if !url.starts_with("git+") {
            parts
                .path
                .split('/')
                .filter(|part| is_random(part))
                .for_each(|part| self.push_encoded(part));
        }
    }

    /// Searches `name=value` pairs, as in `Server=db;Password=…` or `host=db password=…`.
    fn pairs(&mut self, value: &str, depth: usize) {
        let separator = if value.contains(';') { ';' } else { ' ' };
        if !value.contains('=') {
            return;
        }
        for (name, value) in value.split([separator, '\t']).filter_map(|pair| pair.split_once('=')) {
            let value = value.trim().trim_matches(['"', '\'']);
            if names_secret(name.trim()) {
                self.search(name.trim(), value, depth + 1);
            }
        }
    }

    /// Adds the password of `user:password@host`, as in `me:pw@tcp(db:3306)/app`.
    fn data_source(&mut self, value: &str) {
        if let Some((user_info, _)) = value.rsplit_once('@')
            && let Some((user, password)) = user_info.split_once(':')
            && !user.is_empty()
            && !user.contains([' ', '/', '='])
            && !password.contains(' ')
        {
            self.push(password);
        }
    }

    /// Adds the words of a longer text that are secrets by themselves.
    fn words(&mut self, value: &str) {
        if value.contains(' ') {
            let words = value
                .split_whitespace()
                .map(|word| word.trim_matches([',', ';', '"', '\'']));
            words
                .filter(|word| word.len() >= MIN_WORD && is_secret("", word))
                .for_each(|word| self.push(word));
        }
    }
}

/// Splits `Bearer abc` into the scheme in lower case and the credentials.
fn scheme_of(value: &str) -> Option<(&'static str, &str)> {
    let (scheme, credentials) = value.split_once(' ')?;
    let scheme = SCHEMES.iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
    let credentials = credentials.trim();
    (!credentials.contains(' ')).then_some((*scheme, credentials))
}

/// The parameters `name=value` and `name="value"` of a list with commas, semicolons, ampersands or spaces between them.
fn parameters(list: &str) -> Vec<(&str, &str)> {
    let mut rest = list;
    let mut found = Vec::new();
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&');
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim().rsplit(is_separator).next().unwrap_or_default();
        let (value, next) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => {
                let end = after.find(is_separator).unwrap_or(after.len());
                after.split_at(end)
            }
        };
        // The padding of base64 is no parameter.
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if is_name && !value.trim_matches('=').is_empty() {
            found.push((name, value));
        }
        rest = next;
    }
    found
}

/// Decodes percent escapes; a `+` stays.
fn decode(text: &str) -> String {
    let encoded = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(encoded.as_bytes())
        .next()
        .map_or_else(|| text.to_owned(), |(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests;
