//! Resolves whose access tokens the gateway accepts.

use std::collections::BTreeMap;

use url::{Host, Url};

use crate::{
    fields::{
        serve as fields, serve_oauth as oauth_fields, serve_oauth_introspection as endpoint, serve_oauth_rule as rule,
    },
    from_setting::OneOrMore,
    key::Table,
    problem::{Problem, Report, Severity, join},
    serve::{JwtAlgorithm, OAuthIntrospection, OAuthRule, ServeOAuth, TokenScope},
    setting::Text,
    view::ViewConfig,
};
use pegboard_base::secret::Secret;

type OAuthTable<'a> = Table<'a, oauth_fields::In>;

/// Reports errors of the authorization servers in one source.
pub(super) fn check(serve: Table<'_, fields::In>, path: &str, report: &mut Report) {
    let (Some(found), Some(table)) = (serve.find(&fields::OAUTH), serve.table(&fields::OAUTH)) else {
        return;
    };
    let path = join(path, &found.key);
    check_urls(table, &path, report);
    let issuers = table.get(&oauth_fields::ISSUER).0;
    if issuers.is_empty() {
        let hint = "write `issuer = \"https://login.example.com\"`, as the tokens name it in `iss`";
        report.error_with(found.at, &join(&path, oauth_fields::ISSUER.name), "is needed", hint);
    }
    if let Some(jwks) = table.get(&oauth_fields::JWKS_URL)
        && issuers.len() > 1
    {
        let hint = "leave it out: the metadata of each issuer names its own";
        let message = "is for one issuer, and there are several";
        report.error_with(jwks.at, &join(&path, oauth_fields::JWKS_URL.name), message, hint);
    }
    if table.get(&oauth_fields::AUDIENCE).0.is_empty() && serve.get(&fields::PUBLIC_URL).is_none() {
        let hint = "set `serve.public_url`, or what the authorization server writes into `aud`; a token for another service must not open this one";
        report.error_with(found.at, &join(&path, oauth_fields::AUDIENCE.name), "is needed", hint);
    }
    if let Some(found) = table.find(&oauth_fields::ALGORITHMS)
        && table.get(&oauth_fields::ALGORITHMS).is_empty()
    {
        report.error(found.at, &join(&path, &found.key), "needs at least one algorithm");
    }
    check_rules(table, &path, found.at, report);
    check_introspection(table, &path, report);
}

fn check_urls(table: OAuthTable<'_>, path: &str, report: &mut Report) {
    for text in table.get(&oauth_fields::ISSUER).0 {
        if !is_endpoint(&text.value) || text.value.contains('?') {
            wrong_url(&text, &join(path, oauth_fields::ISSUER.name), report);
        }
    }
    if let Some(text) = table.get(&oauth_fields::JWKS_URL)
        && !is_endpoint(&text.value)
    {
        wrong_url(&text, &join(path, oauth_fields::JWKS_URL.name), report);
    }
}

fn wrong_url(text: &Text, path: &str, report: &mut Report) {
    let message = "must be an https URL without user and fragment";
    let hint = "http is for a server on this machine only";
    report.error_with(text.at, path, message, hint);
}

fn check_rules(table: OAuthTable<'_>, path: &str, at: crate::tree::Place, report: &mut Report) {
    let rules = table.list(&oauth_fields::RULES);
    let path = join(path, oauth_fields::RULES.name);
    if rules.is_empty() {
        let hint = "write `[[serve.oauth.rules]]`, with `claim` and `has` for some tokens, or without them for all";
        report.error_with(at, &path, "without a rule every token is refused", hint);
    }
    for (index, entry) in rules.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        if let Some(found) = entry.find(&rule::SCOPES)
            && entry.get(&rule::SCOPES).is_empty()
        {
            let message = "a rule needs at least one of read, call and admin";
            report.error(found.at, &join(&path, &found.key), message);
        }
        if let Some(found) = entry.find(&rule::HAS)
            && entry.get(&rule::CLAIM).is_none()
        {
            report.error(
                found.at,
                &join(&path, &found.key),
                "needs `claim`, which says where it is looked for",
            );
        }
        if let Some(found) = entry.find(&rule::HAS)
            && entry.get(&rule::HAS).0.is_empty()
        {
            report.error(found.at, &join(&path, &found.key), "needs at least one value");
        }
    }
}

fn check_introspection(table: OAuthTable<'_>, path: &str, report: &mut Report) {
    let (Some(found), Some(entry)) = (
        table.find(&oauth_fields::INTROSPECTION),
        table.table(&oauth_fields::INTROSPECTION),
    ) else {
        return;
    };
    let path = join(path, &found.key);
    if let Some(url) = entry.get(&endpoint::URL)
        && !is_endpoint(&url.value)
    {
        wrong_url(&url, &join(&path, endpoint::URL.name), report);
    }
    let given = [
        entry.get(&endpoint::URL).is_some(),
        entry.get(&endpoint::CLIENT_ID).is_some(),
        entry.get(&endpoint::CLIENT_SECRET).is_some(),
    ];
    if given.contains(&false) {
        report.error(found.at, &path, "needs `url`, `client_id` and `client_secret`");
    }
    if table.get(&oauth_fields::ISSUER).0.len() > 1 {
        report.error(found.at, &path, "is for one issuer, and there are several");
    }
}

/// The settings of the authorization servers; `None` if there are none. With errors they accept no token.
pub(super) fn oauth(
    serve: Table<'_, fields::In>,
    views: &BTreeMap<String, ViewConfig>,
) -> (Option<ServeOAuth>, Vec<Problem>) {
    if serve.find(&fields::OAUTH).is_none() {
        return (None, Vec::new());
    }
    let Some(table) = serve.table(&fields::OAUTH) else {
        return (Some(ServeOAuth::default()), Vec::new());
    };
    let problems = unknown_views(table, views);
    if !problems.is_empty() {
        return (Some(ServeOAuth::default()), problems);
    }
    let oauth = ServeOAuth {
        issuers: values(table.get(&oauth_fields::ISSUER)),
        audiences: values(table.get(&oauth_fields::AUDIENCE)),
        jwks_url: table.get(&oauth_fields::JWKS_URL).map(|text| text.value),
        algorithms: match table.find(&oauth_fields::ALGORITHMS) {
            Some(_) => table.get(&oauth_fields::ALGORITHMS).into_iter().collect(),
            None => JwtAlgorithm::ALL.into(),
        },
        clock_skew: table.get(&oauth_fields::CLOCK_SKEW),
        required_scopes: table.get(&oauth_fields::REQUIRED_SCOPES),
        scopes_supported: table.get(&oauth_fields::SCOPES_SUPPORTED),
        principal: table
            .get(&oauth_fields::PRINCIPAL)
            .unwrap_or_else(|| ServeOAuth::PRINCIPAL.to_owned()),
        id_tokens: table.get(&oauth_fields::ID_TOKENS),
        rules: table.list(&oauth_fields::RULES).into_iter().map(one_rule).collect(),
        introspection: table.table(&oauth_fields::INTROSPECTION).and_then(introspection),
    };
    (Some(oauth), Vec::new())
}

fn values(texts: OneOrMore) -> Vec<String> {
    texts.0.into_iter().map(|text| text.value).collect()
}

fn one_rule(entry: Table<'_, rule::In>) -> OAuthRule {
    OAuthRule {
        claim: entry.get(&rule::CLAIM).map(|text| text.value),
        has: values(entry.get(&rule::HAS)),
        view: entry.get(&rule::VIEW).map(|text| text.value),
        scopes: match entry.find(&rule::SCOPES) {
            Some(_) => entry.get(&rule::SCOPES).into_iter().collect(),
            None => TokenScope::of_a_client(),
        },
        rate: entry.get(&rule::RATE),
        concurrent: entry.get(&rule::CONCURRENT),
    }
}

fn introspection(entry: Table<'_, endpoint::In>) -> Option<OAuthIntrospection> {
    Some(OAuthIntrospection::new(
        entry.get(&endpoint::URL)?.value,
        entry.get(&endpoint::CLIENT_ID)?.value,
        Secret::from(entry.get(&endpoint::CLIENT_SECRET)?.value),
    ))
}

/// The errors of rules whose view does not exist or has errors.
fn unknown_views(table: OAuthTable<'_>, views: &BTreeMap<String, ViewConfig>) -> Vec<Problem> {
    let rules = table.list(&oauth_fields::RULES).into_iter().enumerate();
    let unknown = rules.filter_map(|(index, entry)| {
        let (found, view) = (entry.find(&rule::VIEW)?, entry.get(&rule::VIEW)?);
        if views.contains_key(&view.value) {
            return None;
        }
        let known: Vec<&str> = views.keys().map(String::as_str).collect();
        Some(Problem {
            severity: Severity::Error,
            file: found.file.to_string(),
            line: Some(found.at.line),
            field: format!("serve.oauth.rules[{index}].{}", found.key),
            message: format!("there is no view `{}`", view.value.escape_debug()),
            hint: Some(match known.as_slice() {
                [] => "no view is configured, or all have errors".to_owned(),
                known => format!("the views are {}", known.join(", ")),
            }),
        })
    });
    unknown.collect()
}

/// The URL under which clients reach the gateway, without a slash at its end.
pub(super) fn public_url(text: &str) -> Option<String> {
    let url = plain_url(text)?;
    (matches!(url.scheme(), "http" | "https") && url.query().is_none())
        .then(|| url.as_str().trim_end_matches('/').to_owned())
}

/// Returns `true` for an https URL, and for an http one on this machine.
pub(super) fn is_endpoint(text: &str) -> bool {
    plain_url(text).is_some_and(|url| match url.scheme() {
        "https" => true,
        "http" => match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        },
        _ => false,
    })
}

/// A URL with a host, and without user and fragment.
fn plain_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.has_host() && url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_plain.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_on_https_or_on_this_machine() {
        for (text, expected) in [
            ("https://login.example.com", true),
            ("https://login.example.com/realms/a", true),
            ("http://127.0.0.1:8080/a", true),
            ("http://localhost", true),
            ("http://[::1]:1", true),
            ("http://login.example.com", false),
            ("http://10.0.0.1", false),
            ("https://user@login.example.com", false),
            ("https://login.example.com/keys?app=b", true),
            ("https://login.example.com#a", false),
            ("file:///etc/passwd", false),
            ("login.example.com", false),
            ("", false),
        ] {
            assert_eq!(is_endpoint(text), expected, "{text}");
        }
    }

    #[test]
    fn the_public_url_has_no_slash_at_its_end() {
        for (text, expected) in [
            ("https://mcp.example.com/", Some("https://mcp.example.com")),
            ("https://MCP.example.com", Some("https://mcp.example.com")),
            ("http://gateway:7337/a/", Some("http://gateway:7337/a")),
            ("ftp://mcp.example.com", None),
            ("https://mcp.example.com?x", None),
        ] {
            assert_eq!(public_url(text).as_deref(), expected, "{text}");
        }
    }
}
