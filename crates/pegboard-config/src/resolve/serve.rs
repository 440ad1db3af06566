//! Resolves the settings of the gateway and of its tokens.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use jiff::Timestamp;

use super::{gateway, serve_oauth};
use crate::{
    expand::Env,
    fields::{TopTable, serve as fields, serve_tls, token, top},
    from_setting::FromSetting as _,
    key::Table,
    problem::{Problem, Report, Severity, join},
    relative_path,
    serve::{ServeConfig, ServeTls, TokenConfig},
    setting::{Setting, Values},
    view::ViewConfig,
};

/// Makes the paths of the certificate and its key absolute: they are relative to the file that sets them.
pub(crate) fn anchor(values: &mut Values, base: Option<&Path>, env: &Env<'_>) {
    if let Some(Setting::Table(table)) = values.find_mut(&top::serve).map(|found| &mut found.setting)
        && let Some(Setting::Table(files)) = table.find_mut(&fields::tls).map(|found| &mut found.setting)
    {
        for field in [&*serve_tls::cert, &*serve_tls::key] {
            if let Some(Setting::Text(text)) = files.find_mut(field).map(|found| &mut found.setting)
                && !text.value.trim().is_empty()
            {
                let path = relative_path::resolve(&text.value, base, env);
                text.value = path.to_string_lossy().into_owned();
            }
        }
    }
}

/// Reports errors of the gateway's settings in one source.
pub(super) fn check(values: &Values, report: &mut Report) {
    let values = TopTable::new(values);
    let (Some(found), Some(table)) = (values.find(&top::serve), values.table(&top::serve)) else {
        return;
    };
    check_listen(table, &found.key, report);
    if let Some(found_tls) = table.find(&fields::tls)
        && tls(table).is_none()
    {
        let message = "needs both `cert` and `key`";
        report.error(found_tls.at, &join(&found.key, &found_tls.key), message);
    }
    check_public_url(table, &found.key, report);
    serve_oauth::check(table, &found.key, report);
    let Some(tokens) = table.find(&fields::tokens) else {
        return;
    };
    let path = join(&found.key, &tokens.key);
    let tables = table.tables(&fields::tokens);
    gateway::check_names(tables.iter().map(|(name, _)| *name), tokens, &path, report);
    for (name, entry) in tables {
        check_token(entry, &join(&path, name), tokens.at, report);
    }
}

fn check_listen(table: Table<'_, fields::In>, path: &str, report: &mut Report) {
    if let Some(found) = table.find(&fields::listen)
        && table.texts(&fields::listen).is_empty()
    {
        let message = "the gateway needs an address to listen on";
        report.error(found.at, &join(path, &found.key), message);
    }
}

fn check_public_url(table: Table<'_, fields::In>, path: &str, report: &mut Report) {
    if let Some(found) = table.find(&fields::public_url)
        && table
            .get(&fields::public_url)
            .is_some_and(|url| !serve_oauth::is_endpoint(&url))
    {
        let hint = "name the `https` URL of the gateway; without one, people sign in with `pegboard login NAME --principal WHO` on its machine";
        let message = "is not `https`, so the gateway has no page on which people sign in to servers";
        report.warn_with(found.at, &join(path, &found.key), message, hint);
    }
}

/// The names of `hosts` that are valid.
pub(crate) fn hosts(setting: &Setting) -> Option<Vec<String>> {
    valid(setting, is_host)
}

/// The values of `origins` that are valid.
pub(crate) fn origins(setting: &Setting) -> Option<Vec<String>> {
    valid(setting, is_origin)
}

fn valid(setting: &Setting, is_valid: fn(&str) -> bool) -> Option<Vec<String>> {
    let texts = Vec::<String>::from_setting(setting)?.into_iter();
    Some(texts.filter(|text| is_valid(text)).collect())
}

/// The URL under which clients reach the gateway, if it is valid.
pub(crate) fn public_url<T: From<String>>(setting: &Setting) -> Option<T> {
    let text = String::from_setting(setting)?;
    serve_oauth::parse_public_url(&text).map(T::from)
}

/// A name or an address, with or without a port. A wildcard would let in every page that rebinds its name to this machine.
pub(crate) fn is_host(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    !text.is_empty() && text.len() <= 255 && text.chars().all(is_part)
}

/// A scheme and a host, as browsers send them: without a path, and without a slash at the end.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && is_host(host)
}

/// The files of the certificate, if both are named.
fn tls(table: Table<'_, fields::In>) -> Option<ServeTls> {
    let files = table.table(&fields::tls)?;
    let path = |text: crate::setting::Text| Some(text.value).filter(|path| !path.trim().is_empty());
    let (cert, key) = (files.get(&serve_tls::cert)?, files.get(&serve_tls::key)?);
    Some(ServeTls::new(path(cert)?, path(key)?))
}

fn check_token(entry: Table<'_, token::In>, path: &str, at: crate::tree::Place, report: &mut Report) {
    if entry.find(&token::sha256).is_none() {
        let hint = "`pegboard token new` prints a token and its digest";
        report.error_with(at, &join(path, token::sha256.name), "a token needs its digest", hint);
    }
    if let Some(found) = entry.find(&token::expires)
        && entry
            .get(&token::expires)
            .is_some_and(|expires| expires <= Timestamp::now())
    {
        let hint = "remove the token, or make another one with `pegboard token new`";
        let message = "has passed: no client can use this token";
        report.warn_with(found.at, &join(path, &found.key), message, hint);
    }
    if let Some(found) = entry.find(&token::scopes)
        && entry.get(&token::scopes).is_empty()
    {
        let message = "a token needs at least one of read, call and admin";
        report.error(found.at, &join(path, &found.key), message);
    }
}

/// The settings of the gateway. A token that names no view of `views` is unusable.
pub(crate) fn serve(values: TopTable<'_>, views: &BTreeMap<String, ViewConfig>) -> (ServeConfig, Vec<Problem>) {
    let Some(table) = values.table(&top::serve) else {
        return (ServeConfig::default(), Vec::new());
    };
    let (mut tokens, mut unusable, mut problems) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    if let Some(Setting::Map(entries)) = table.find(&fields::tokens).map(|found| &found.setting) {
        unusable.extend(entries.keys().cloned());
    }
    for (name, entry) in table.tables(&fields::tokens) {
        problems.extend(unknown_view(name, entry, views));
        if let Some(token) = usable(entry, views) {
            unusable.remove(name);
            tokens.insert(name.clone(), token);
        }
    }
    let (oauth, of_oauth) = serve_oauth::oauth(table, views);
    problems.extend(of_oauth);
    let mut serve = ServeConfig {
        tls: tls(table),
        tokens,
        unusable_tokens: unusable,
        oauth,
        ..ServeConfig::default().overlay(table)
    };
    if serve.listen.is_empty() {
        serve.listen = fields::listen.default();
    }
    (serve, problems)
}

fn usable(entry: Table<'_, token::In>, views: &BTreeMap<String, ViewConfig>) -> Option<TokenConfig> {
    let token = TokenConfig::new(entry.get(&token::sha256)?.value.parse().ok()?).overlay(entry);
    let has_view = token.view.as_ref().is_none_or(|view| views.contains_key(view));
    let has_expiry = token.expires.is_some() || entry.find(&token::expires).is_none();
    (has_view && has_expiry).then_some(token)
}

/// The error of a token whose view does not exist or has errors.
fn unknown_view(name: &str, entry: Table<'_, token::In>, views: &BTreeMap<String, ViewConfig>) -> Option<Problem> {
    let (found, view) = (entry.find(&token::view)?, entry.get(&token::view)?);
    if views.contains_key(&view) {
        return None;
    }
    let known: Vec<&str> = views.keys().map(String::as_str).collect();
    Some(Problem {
        severity: Severity::Error,
        file: found.file.to_string(),
        line: Some(found.at.line),
        field: format!("serve.tokens.{name}.{}", found.key),
        message: format!("there is no view `{}`", view.escape_debug()),
        hint: Some(match known.as_slice() {
            [] => "no view is configured, or all have errors".to_owned(),
            known => format!("the views are {}", known.join(", ")),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_setting::address;

    #[test]
    fn addresses_hosts_and_origins_are_recognised() {
        for (text, expected) in [
            ("127.0.0.1:7337", Some("127.0.0.1:7337")),
            ("[::1]:80", Some("[::1]:80")),
            ("localhost:0", Some("127.0.0.1:0")),
            ("0.0.0.0:7337", Some("0.0.0.0:7337")),
            ("127.0.0.1", None),
            ("example.com:80", None),
            (":7337", None),
            ("localhost:99999", None),
        ] {
            assert_eq!(
                address(text).map(|found| found.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
        for host in ["gateway", "gateway.example.com:8443", "[::1]", "10.0.0.1"] {
            assert!(is_host(host), "{host}");
            assert!(is_origin(&format!("https://{host}")), "{host}");
        }
        for bad in ["", "*", "*.example.com", "a b", "a/b", "https://a"] {
            assert!(!is_host(bad), "{bad}");
        }
        for bad in ["", "null", "*", "https://", "https://a/", "a.example.com"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
