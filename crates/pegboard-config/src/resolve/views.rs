//! Resolves the named views.

use std::collections::BTreeMap;

use super::{gateway, results};
use crate::{
    board::Config,
    fields::{TopTable, top, view as fields},
    from_setting::Naming,
    key::Table,
    problem::{Problem, Report, Severity, join},
    setting::Values,
    view::ViewConfig,
};

/// Reports errors of the views of one source.
pub(super) fn check(values: &Values, report: &mut Report) {
    let values = TopTable::new(values);
    let Some(found) = values.find(&top::VIEWS) else { return };
    let tables = values.tables(&top::VIEWS);
    gateway::check_names(tables.iter().map(|(name, _)| *name), found, &found.key, report);
    for (name, table) in tables {
        if let (Some(Some(Naming(Err(error)))), Some(naming)) =
            (table.set(&fields::NAMING), table.find(&fields::NAMING))
        {
            let path = join(&join(&found.key, name), &naming.key);
            report.error(naming.at, &path, error.to_string());
        }
    }
}

/// The views of all sources. Those with errors are not among them.
pub(crate) fn views(values: TopTable<'_>) -> BTreeMap<String, ViewConfig> {
    let tables = values.tables(&top::VIEWS).into_iter();
    tables.map(|(name, table)| (name.clone(), view(table))).collect()
}

fn view(table: Table<'_, fields::In>) -> ViewConfig {
    ViewConfig {
        description: table.get(&fields::DESCRIPTION),
        servers: table.get(&fields::SERVERS),
        tools: table.get(&fields::TOOLS),
        deny: table.get(&fields::DENY),
        budget: table.get(&fields::BUDGET),
        naming: table.get(&fields::NAMING).and_then(|naming| naming.0.ok()),
        approval: table.get(&fields::APPROVAL),
        grants: table.set(&fields::GRANTS),
        resource_tools: table.get(&fields::RESOURCE_TOOLS),
        result: table.table(&fields::RESULT).map(results::of_view),
    }
}

/// Warns about views that name servers which are in no source.
pub(crate) fn unknown_servers(values: TopTable<'_>, config: &Config) -> Vec<Problem> {
    let known = || config.servers.keys().chain(config.misconfigured.keys());
    let mut problems = Vec::new();
    for (name, table) in values.tables(&top::VIEWS) {
        let Some(found) = table.find(&fields::SERVERS) else {
            continue;
        };
        for server in table.get(&fields::SERVERS) {
            let is_glob = server.contains(['*', '?']) || server.eq_ignore_ascii_case("any");
            if is_glob || known().any(|known| known.as_str() == server) {
                continue;
            }
            let names: Vec<&str> = known().map(pegboard_base::name::ServerName::as_str).collect();
            problems.push(Problem {
                severity: Severity::Warning,
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
