//! Resolves whose access tokens the gateway accepts.

use std::collections::BTreeMap;

use super::views;
use crate::{
    fields::{
        serve as fields, serve_oauth as oauth_fields, serve_oauth_introspection as endpoint, serve_oauth_rule as rule,
    },
    key::Table,
    problem::{Problem, Report, join},
    serve::{OAuthIntrospection, OAuthRule, ServeOAuth},
    view::ViewConfig,
};
use pegboard_base::secret::Secret;

type OAuthTable<'a> = Table<'a, oauth_fields::In>;

/// Reports errors of the authorization servers in one source.
pub(super) fn check(serve: Table<'_, fields::In>, path: &str, report: &mut Report) {
    let (Some(found), Some(table)) = (serve.find(&fields::oauth), serve.table(&fields::oauth)) else {
        return;
    };
    let path = join(path, &found.key);
    let issuers = table.get(&oauth_fields::issuers);
    if issuers.is_empty() {
        let hint = "write `issuer = \"https://login.example.com\"`, as the tokens name it in `iss`";
        report.error_with(found.at, &join(&path, oauth_fields::issuers.name), "is needed", hint);
    }
    if let Some(jwks) = table.text(&oauth_fields::jwks_url)
        && issuers.len() > 1
    {
        let hint = "leave it out: the metadata of each issuer names its own";
        let message = "is for one issuer, and there are several";
        report.error_with(jwks.at, &join(&path, oauth_fields::jwks_url.name), message, hint);
    }
    if table.get(&oauth_fields::audiences).is_empty() && serve.get(&fields::public_url).is_none() {
        let hint = "set `serve.public_url`, or what the authorization server writes into `aud`; a token for another service must not open this one";
        report.error_with(found.at, &join(&path, oauth_fields::audiences.name), "is needed", hint);
    }
    if let Some(found) = table.find(&oauth_fields::algorithms)
        && table.get(&oauth_fields::algorithms).is_empty()
    {
        report.error(found.at, &join(&path, &found.key), "needs at least one algorithm");
    }
    check_rules(table, &path, found.at, report);
    check_introspection(table, &path, report);
}

fn check_rules(table: OAuthTable<'_>, path: &str, at: crate::tree::Location, report: &mut Report) {
    let rules = table.list(&oauth_fields::rules);
    let path = join(path, oauth_fields::rules.name);
    if rules.is_empty() {
        let hint = "write `[[serve.oauth.rules]]`, with `claim` and `has` for some tokens, or without them for all";
        report.error_with(at, &path, "without a rule every token is refused", hint);
    }
    for (index, entry) in rules.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        if let Some(found) = entry.find(&rule::scopes)
            && entry.get(&rule::scopes).is_empty()
        {
            let message = "a rule needs at least one of read, call and admin";
            report.error(found.at, &join(&path, &found.key), message);
        }
        if let Some(found) = entry.find(&rule::has)
            && entry.get(&rule::claim).is_none()
        {
            report.error(
                found.at,
                &join(&path, &found.key),
                "needs `claim`, which says where it is looked for",
            );
        }
        if let Some(found) = entry.find(&rule::has)
            && entry.get(&rule::has).is_empty()
        {
            report.error(found.at, &join(&path, &found.key), "needs at least one value");
        }
    }
}

fn check_introspection(table: OAuthTable<'_>, path: &str, report: &mut Report) {
    let (Some(found), Some(entry)) = (
        table.find(&oauth_fields::introspection),
        table.table(&oauth_fields::introspection),
    ) else {
        return;
    };
    let path = join(path, &found.key);
    let given = [
        entry.get(&endpoint::url).is_some(),
        entry.get(&endpoint::client_id).is_some(),
        entry.get(&endpoint::client_secret).is_some(),
    ];
    if given.contains(&false) {
        report.error(found.at, &path, "needs `url`, `client_id` and `client_secret`");
    }
    if table.get(&oauth_fields::issuers).len() > 1 {
        report.error(found.at, &path, "is for one issuer, and there are several");
    }
}

/// The settings of the authorization servers; `None` if there are none. With errors they accept no token.
pub(super) fn oauth(
    serve: Table<'_, fields::In>,
    views: &BTreeMap<String, ViewConfig>,
) -> (Option<ServeOAuth>, Vec<Problem>) {
    if serve.find(&fields::oauth).is_none() {
        return (None, Vec::new());
    }
    let Some(table) = serve.table(&fields::oauth) else {
        return (Some(ServeOAuth::default()), Vec::new());
    };
    let problems = unknown_views(table, views);
    if !problems.is_empty() {
        return (Some(ServeOAuth::default()), problems);
    }
    let oauth = ServeOAuth {
        rules: table.list(&oauth_fields::rules).into_iter().map(one_rule).collect(),
        introspection: table.table(&oauth_fields::introspection).and_then(introspection),
        ..ServeOAuth::default().overlay(table)
    };
    (Some(oauth), Vec::new())
}

fn one_rule(entry: Table<'_, rule::In>) -> OAuthRule {
    OAuthRule {
        claim: entry.get(&rule::claim),
        has: entry.get(&rule::has),
        view: entry.get(&rule::view),
        scopes: entry.get(&rule::scopes),
        rate: entry.get(&rule::rate),
        concurrent: entry.get(&rule::concurrent),
    }
}

fn introspection(entry: Table<'_, endpoint::In>) -> Option<OAuthIntrospection> {
    Some(OAuthIntrospection::new(
        entry.get(&endpoint::url)?.value,
        entry.get(&endpoint::client_id)?.value,
        Secret::from(entry.get(&endpoint::client_secret)?.value),
    ))
}

/// The errors of rules whose view does not exist or has errors.
fn unknown_views(table: OAuthTable<'_>, views: &BTreeMap<String, ViewConfig>) -> Vec<Problem> {
    let rules = table.list(&oauth_fields::rules).into_iter().enumerate();
    let unknown = rules.filter_map(|(index, entry)| {
        let (found, view) = (entry.find(&rule::view)?, entry.get(&rule::view)?);
        views::check_known(views, &view, found, &format!("serve.oauth.rules[{index}]"))
    });
    unknown.collect()
}
