//! The rows of servers, and what a visitor can do with one.

use maud::{Markup, html};
use pegboard::{State, status::ServerStatus};
use pegboard_gateway::Scope;

use crate::{
    layout::{self, button},
    text::{ago, count, count_of, line, millis, segment, shown},
    who::Who,
};

/// The buttons of a server, in a place of the page that gives them ids of their own.
pub(super) fn actions(who: &Who<'_>, row: &ServerStatus, place: &str) -> Markup {
    let path = |change: &str| format!("/ui/servers/{}/{change}", segment(row.name.as_str()));
    let id = |change: &str| format!("{place}-{change}-{}", key(row));
    html! {
        @if row.state == State::NeedsAuth {
            (button(who, Scope::Call, &path("signin"), "Sign in", &id("signin")))
        }
        @if row.state == State::Disabled {
            (button(who, Scope::Admin, &path("enable"), "Enable", &id("enable")))
        } @else {
            (button(who, Scope::Admin, &path("reconnect"), "Reconnect", &id("reconnect")))
            (button(who, Scope::Admin, &path("disable"), "Disable", &id("disable")))
        }
    }
}

/// What tells the instances of servers apart.
pub(super) fn key(row: &ServerStatus) -> String {
    let of = |one: Option<&str>| one.map(|one| format!("-{}", segment(one))).unwrap_or_default();
    let principal = row.principal.as_ref().map(ToString::to_string);
    format!(
        "{}{}{}",
        segment(row.name.as_str()),
        of(row.view.as_deref()),
        of(principal.as_deref())
    )
}

/// Whose instance of a server it is; `None` for one that all share.
pub(super) fn owner(row: &ServerStatus) -> Option<String> {
    let principal = row.principal.as_ref().map(|principal| format!("of {principal}"));
    principal.or_else(|| row.view.as_ref().map(|view| format!("of view {view}")))
}

/// A table of servers.
pub(super) fn table(who: &Who<'_>, rows: &[&ServerStatus]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Servers" { table.servers.stack {
            thead { tr {
                th { "Server" } th { "State" } th { "Speaks" } th.n { "Tools" } th.n { "Calls" } th.n { "Failed" } th.n { "Mean" } th.n { "Restarts" }
                th { span.hidden { "Actions" } }
            } }
            tbody { @for row in rows { (line_of(who, row)) } }
        } }
    }
}

fn line_of(who: &Who<'_>, row: &ServerStatus) -> Markup {
    let error = row
        .last_error
        .as_ref()
        .filter(|_| row.is_troubled() || row.state == State::NeedsAuth);
    html! {
        tr id={ "row-" (key(row)) } class=[error.map(|_| "with-more")] {
            th scope="row" {
                a data-row href={ "/ui/servers/" (segment(row.name.as_str())) } { (shown(row.name.as_str())) }
                @if let Some(owner) = owner(row) { " " span.soft { (line(&owner)) } }
                @if row.required { " " span.tag { "required" } }
                @if row.draining { " " span.tag { "leaving" } }
            }
            td data-label="State" { (layout::state(row.state)) " " span.soft { (ago(row.since)) } }
            td data-label="Speaks" { (row.transport) @if let Some(era) = row.era { " · " (era.as_str()) } }
            td.n data-label="Tools" { (count_of(row.tools)) @if row.held > 0 { span.soft { " + " (count_of(row.held)) " held" } } }
            td.n data-label="Calls" { (count(row.calls.total)) }
            td.n data-label="Failed" { (count(row.calls.failed)) }
            td.n data-label="Mean" { @if row.calls.total > 0 { (millis(row.calls.avg_ms)) } @else { "–" } }
            td.n data-label="Restarts" { (row.restarts) }
            td.wide { div.actions { (actions(who, row, "row")) } }
        }
        @if let Some(error) = error {
            tr.more id={ "more-" (key(row)) } { td colspan="9" {
                p { (line(&error.message)) }
                @if let Some(hint) = &error.hint { p.hint { (line(hint)) } }
            } }
        }
    }
}
