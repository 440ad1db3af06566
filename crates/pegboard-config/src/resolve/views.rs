//! Resolves the named views.

use std::collections::BTreeMap;

use super::{gateway, results};
use crate::{
    board::Config,
    fields::{TopTable, top, view as fields},
    key::Table,
    problem::{Problem, Report, Severity},
    setting::{Found, Values},
    view::ViewConfig,
};
use pegboard_base::diagnosis::Code;

/// Reports errors in the names of the views of one source.
pub(super) fn check(values: &Values, report: &mut Report) {
    let values = TopTable::new(values);
    let Some(found) = values.find(&top::views) else { return };
    let names = values.tables(&top::views).into_iter().map(|(name, _)| name);
    gateway::check_names(names, found, &found.key, report);
}

/// The views of all sources. Those with errors are not among them.
pub(crate) fn views(values: TopTable<'_>) -> BTreeMap<String, ViewConfig> {
    let tables = values.tables(&top::views).into_iter();
    tables.map(|(name, table)| (name.clone(), view(table))).collect()
}

fn view(table: Table<'_, fields::In>) -> ViewConfig {
    ViewConfig {
        result: table.table(&fields::result).map(results::resolve_view),
        ..ViewConfig::default().overlay(table)
    }
}

/// The error of a setting that names a view which does not exist or has errors.
pub(super) fn check_known(
    views: &BTreeMap<String, ViewConfig>,
    view: &str,
    found: &Found,
    table: &str,
) -> Option<Problem> {
    if views.contains_key(view) {
        return None;
    }
    let known: Vec<&str> = views.keys().map(String::as_str).collect();
    Some(Problem {
        severity: Severity::Error,
        code: Code::ConfigError,
        edit: None,
        variable: None,
        file: found.file.to_string(),
        line: Some(found.at.line),
        field: format!("{table}.{}", found.key),
        message: format!("there is no view `{}`", view.escape_debug()),
        hint: Some(match known.as_slice() {
            [] => "no view is configured, or all have errors".to_owned(),
            known => format!("the views are {}", known.join(", ")),
        }),
    })
}

/// Warns about views that name servers which are in no source.
pub(crate) fn unknown_servers(values: TopTable<'_>, config: &Config) -> Vec<Problem> {
    let known = || config.servers.keys().chain(config.misconfigured.keys());
    let mut problems = Vec::new();
    for (name, table) in values.tables(&top::views) {
        let Some(found) = table.find(&fields::servers) else {
            continue;
        };
        for server in table.get(&fields::servers) {
            let is_glob = server.contains(['*', '?']) || server.eq_ignore_ascii_case("any");
            if is_glob || known().any(|known| known.as_str() == server) {
                continue;
            }
            let names: Vec<&str> = known().map(pegboard_base::name::ServerName::as_str).collect();
            problems.push(Problem {
                severity: Severity::Warning,
                code: Code::ConfigWarning,
                edit: None,
                variable: None,
                file: found.file.to_string(),
                line: Some(found.at.line),
                field: format!("views.{name}.{}", found.key),
                message: format!("there is no server `{}`", server.escape_debug()),
                hint: Some(match names.as_slice() {
                    [] => "no server is configured".to_owned(),
                    names => format!("the servers are {}", names.join(", ")),
                }),
            });
        }
    }
    problems
}
