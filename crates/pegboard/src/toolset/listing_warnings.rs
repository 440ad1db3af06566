//! The warnings of a listing.

use std::sync::Arc;

use super::{open_view::OpenView, snapshot::Snapshot};
use crate::{
    call::{Route, Visibility},
    server::{Phase, Server},
};
use pegboard_tools::{
    catalog::{
        Tool,
        sanitize::{has_invisible, is_invisible},
    },
    filter::{Selection, fits},
};

/// Collects the warnings about a view's selection, its servers and its tools.
pub(super) fn collect_warnings(open: &OpenView) -> Vec<String> {
    let routes = open.table();
    let mut warnings = routes.quarantined().to_vec();
    warn_of_selection(open, &mut warnings);
    warnings.extend(routes.routes().iter().filter_map(|route| warn_of_invisible(route)));
    for server in open.selected_servers() {
        warn_of_server(&server, &mut warnings);
    }
    warnings
}

/// Warnings about the selection and about tools that could impersonate others.
fn warn_of_selection(open: &OpenView, warnings: &mut Vec<String>) {
    let servers = open.servers();
    warnings.extend_from_slice(Visibility::new(&open.view, &servers).warnings());
    if let Err(failure) = open.check_selection() {
        warnings.push(failure.message);
    }
    let selected = open.view.rules.selection().map(Selection::servers).unwrap_or_default();
    for selected in selected {
        let server = servers.iter().find(|server| server.name().as_str() == selected.name);
        let Some(catalog) = server.and_then(Server::catalog) else {
            continue;
        };
        let is_absent = |glob: &&String| !catalog.tools.iter().any(|tool| fits(glob, &tool.name));
        for absent in selected.tools.iter().filter(is_absent) {
            warnings.push(format!(
                "the selection names `{}.{}`, and the server has no such tool",
                selected.name,
                absent.escape_debug()
            ));
        }
    }
    warnings.extend_from_slice(&open.read_snapshot(Snapshot::shadows));
}

fn warn_of_server(server: &Server, warnings: &mut Vec<String>) {
    let flagged = server.definition_warnings().into_iter();
    warnings.extend(flagged.map(|warning| format!("{}: {warning}", server.name())));
    let Phase::Ready(live) = server.phase() else {
        return;
    };
    if live.catalog().is_empty() && server.held_tools().is_empty() {
        warnings.push(format!(
            "{}: the server offers no tools, and nothing else",
            server.name()
        ));
    }
    let unchecked = |tool: &Arc<Tool>| tool.unchecked();
    warnings.extend(
        live.catalog()
            .warnings
            .iter()
            .cloned()
            .chain(live.catalog().tools.iter().filter_map(unchecked))
            .map(|warning| format!("{}: {warning}", server.name())),
    );
}

/// A warning about a tool whose name has invisible characters, with which it could impersonate another tool.
fn warn_of_invisible(route: &Route) -> Option<String> {
    let name = &route.tool.name;
    if !has_invisible(name) {
        return None;
    }
    let shown: String = name
        .chars()
        .flat_map(|c| {
            let (plain, escaped) = match is_invisible(c) {
                true => (None, Some(c.escape_unicode())),
                false => (Some(c), None),
            };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    Some(format!(
        "{}: the name of the tool `{shown}` has invisible characters; it is called as `{}`",
        route.tool.server, route.name
    ))
}
