//! The warnings of a listing.

use super::{open_view::OpenView, snapshot::Snapshot};
use crate::{
    call::{Route, Visibility},
    server::{Phase, Server},
};
use pegboard_base::diagnosis::Code;
use pegboard_tools::{
    catalog::{
        ListWarning,
        sanitize::{has_invisible, is_invisible},
    },
    filter::{Selection, fits},
};

/// Collects the warnings about a view's selection, its servers and its tools.
pub(super) fn collect_warnings(open: &OpenView) -> Vec<ListWarning> {
    let routes = open.table();
    let refused = routes.quarantined().iter();
    let mut warnings: Vec<ListWarning> = refused
        .map(|warning| ListWarning::new(Code::SchemaRefused, warning.as_str()))
        .collect();
    warn_of_selection(open, &mut warnings);
    warnings.extend(routes.routes().iter().filter_map(|route| warn_of_invisible(route)));
    for server in open.selected_servers() {
        let of_server = warn_of_server(&server);
        warnings.extend(of_server.map(|warning| warning.for_server(server.name())));
    }
    warnings
}

/// Warnings about the selection and about tools that could impersonate others.
fn warn_of_selection(open: &OpenView, warnings: &mut Vec<ListWarning>) {
    let servers = open.servers();
    let warning = |message: String| ListWarning::new(Code::ListWarning, message);
    let of_rules = Visibility::new(&open.view, &servers).warnings().to_vec();
    warnings.extend(of_rules.into_iter().map(warning));
    if let Err(failure) = open.check_selection() {
        warnings.push(warning(failure.message));
    }
    let selected = open.view.rules.selection().map(Selection::servers).unwrap_or_default();
    for selected in selected {
        let server = servers.iter().find(|server| server.name().as_str() == selected.name);
        let Some(catalog) = server.and_then(Server::catalog) else {
            continue;
        };
        let is_absent = |glob: &&String| !catalog.tools.iter().any(|tool| fits(glob, &tool.name));
        for absent in selected.tools.iter().filter(is_absent) {
            warnings.push(warning(format!(
                "the selection names `{}.{}`, and the server has no such tool",
                selected.name,
                absent.escape_debug()
            )));
        }
    }
    warnings.extend_from_slice(&open.read_snapshot(Snapshot::shadows));
}

/// The warnings about one server's listing.
fn warn_of_server(server: &Server) -> impl Iterator<Item = ListWarning> + use<> {
    let mut warnings = server.listing().warnings();
    if let Phase::Ready(live) = server.phase() {
        let catalog = live.catalog();
        if catalog.is_empty() && server.listing().held_tools().is_empty() {
            let message = "the server offers no tools, and nothing else";
            warnings.push(ListWarning::new(Code::OffersNothing, message));
        }
        warnings.extend(catalog.warnings.iter().cloned());
        let unchecked = catalog.tools.iter().filter_map(|tool| tool.unchecked_warning());
        warnings.extend(unchecked.map(|message| ListWarning::new(Code::ToolLeftOut, message)));
    }
    warnings.into_iter()
}

/// A warning about a tool whose name has invisible characters, with which it could impersonate another tool.
fn warn_of_invisible(route: &Route) -> Option<ListWarning> {
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
    let message = format!(
        "the name of the tool `{shown}` has invisible characters; it is called as `{}`",
        route.name
    );
    Some(ListWarning::new(Code::ListWarning, message).for_server(&route.tool.server))
}
