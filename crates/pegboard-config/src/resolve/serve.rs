//! Resolves the settings of the gateway and of its tokens.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use pegboard_base::timestamp::Timestamp;

use super::{gateway, serve_oauth, views};
use crate::{
    expand::Env,
    fields::{TopTable, serve as fields, serve_telemetry, serve_tls, token, top},
    key::Table,
    problem::{Problem, Report, join},
    relative_path,
    serve::{
        ServeConfig, ServeMetrics, ServeReplicas, ServeTelemetry, ServeTls, TokenConfig, access_log,
        web_address::is_endpoint,
    },
    setting::{Setting, Values},
    view::ViewConfig,
};

/// Makes the paths of the access log, of the certificate and of its key absolute: they are relative to the file that sets them.
pub(crate) fn anchor(values: &mut Values, base: Option<&Path>, env: &Env<'_>) {
    let Some(Setting::Table(table)) = values.find_mut(&top::serve).map(|found| &mut found.setting) else {
        return;
    };
    let anchor = |setting: &mut Setting| {
        if let Setting::Text(text) = setting
            && !text.value.trim().is_empty()
        {
            let path = relative_path::resolve(&text.value, base, env);
            text.value = path.to_string_lossy().into_owned();
        }
    };
    if let Some(found) = table.find_mut(&fields::access_log)
        && matches!(&found.setting, Setting::Text(text) if access_log::is_path(&text.value))
    {
        anchor(&mut found.setting);
    }
    if let Some(Setting::Table(files)) = table.find_mut(&fields::tls).map(|found| &mut found.setting) {
        for field in [&*serve_tls::cert, &*serve_tls::key] {
            if let Some(found) = files.find_mut(field) {
                anchor(&mut found.setting);
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
        && table.get(&fields::public_url).is_some_and(|url| !is_endpoint(&url))
    {
        let hint = "name the `https` URL of the gateway; without one, people sign in with `pegboard login NAME --principal WHO` on its machine";
        let message = "is not `https`, so the gateway has no page on which people sign in to servers";
        report.warn_with(found.at, &join(path, &found.key), message, hint);
    }
}

/// The files of the certificate, if both are named.
fn tls(table: Table<'_, fields::In>) -> Option<ServeTls> {
    let files = table.table(&fields::tls)?;
    let path = |text: crate::setting::Text| Some(text.value).filter(|path| !path.trim().is_empty());
    let (cert, key) = (files.get(&serve_tls::cert)?, files.get(&serve_tls::key)?);
    Some(ServeTls::new(path(cert)?, path(key)?))
}

fn check_token(entry: Table<'_, token::In>, path: &str, at: crate::tree::Location, report: &mut Report) {
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
        let view = entry.find(&token::view).zip(entry.get(&token::view));
        problems.extend(
            view.and_then(|(found, view)| views::check_known(views, &view, found, &format!("serve.tokens.{name}"))),
        );
        if let Some(token) = resolve_token(entry, views) {
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
        telemetry: telemetry(table),
        metrics: metrics(table),
        replicas: replicas(table),
        store: table.get(&fields::store).map(|store| store.value.into()),
        ..ServeConfig::default().overlay(table)
    };
    if serve.listen.is_empty() {
        serve.listen = fields::listen.default();
    }
    (serve, problems)
}

/// Where telemetry is sent.
fn telemetry(serve: Table<'_, fields::In>) -> ServeTelemetry {
    let Some(table) = serve.table(&fields::telemetry) else {
        return ServeTelemetry::default();
    };
    let headers = table.get(&serve_telemetry::headers).into_iter();
    ServeTelemetry {
        headers: headers.map(|(name, value)| (name, value.value.into())).collect(),
        ..ServeTelemetry::default().overlay(table)
    }
}

/// What the metrics count by name.
fn metrics(serve: Table<'_, fields::In>) -> ServeMetrics {
    let table = serve.table(&fields::metrics);
    table.map_or_else(ServeMetrics::default, |table| ServeMetrics::default().overlay(table))
}

/// How replicas send requests to each other.
fn replicas(serve: Table<'_, fields::In>) -> ServeReplicas {
    let table = serve.table(&fields::replicas);
    table.map_or_else(ServeReplicas::default, |table| ServeReplicas::default().overlay(table))
}

fn resolve_token(entry: Table<'_, token::In>, views: &BTreeMap<String, ViewConfig>) -> Option<TokenConfig> {
    let token = TokenConfig::new(entry.get(&token::sha256)?.value.parse().ok()?).overlay(entry);
    let has_view = token.view.as_ref().is_none_or(|view| views.contains_key(view));
    let has_expiry = token.expires.is_some() || entry.find(&token::expires).is_none();
    (has_view && has_expiry).then_some(token)
}
