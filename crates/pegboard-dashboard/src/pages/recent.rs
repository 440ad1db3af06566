//! What has happened lately, as several pages list it: calls that were recorded, and changes of servers.

use std::sync::Arc;

use maud::{Markup, html};
use pegboard::{Event, ServerName, config::DashboardCalls, recent::RecentCall};
use pegboard_gateway::Scope;

use crate::{
    layout,
    text::{bytes, clock, count_of, line, millis, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// The recorded calls that a visitor sees, the newest first: its own, and with the scope `admin` and without a view all of them.
pub(super) fn seen_calls(ui: &Ui, visitor: &Visitor) -> Vec<Arc<RecentCall>> {
    let mut calls = ui.api.board().recent_calls().all();
    calls.retain(|call| sees_call(visitor, call));
    calls
}

/// Whether a visitor sees a call, as it sees the event of its end.
pub(super) fn sees_call(visitor: &Visitor, call: &RecentCall) -> bool {
    let is_own = call.principal.as_ref() == visitor.caller.principal();
    let sees_others = visitor.may(Scope::Admin) && visitor.sees_all();
    // Clients without a token are all the user's own, whatever the view.
    is_own && (visitor.sees_all() || call.principal.is_some()) || sees_others
}

/// What is said in place of calls.
pub(super) fn nothing(ui: &Ui, words: &str) -> Markup {
    match ui.recording() {
        DashboardCalls::Off => {
            layout::empty("Calls are not recorded: the config says `serve.dashboard_calls = \"off\"`.")
        }
        _ => layout::empty(words),
    }
}

/// Calls, a row for each.
pub(super) fn table(calls: &[Arc<RecentCall>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Calls" { table.calls.stack {
            thead { tr { th { "Time" } th { "Tool" } th { "Result" } th.n { "Took" } th.n { "Queued" } th.n { "Size" } th { "For" } } }
            tbody { @for call in calls { (row(call)) } }
        } }
    }
}

fn row(call: &RecentCall) -> Markup {
    let millis_of = |time: std::time::Duration| millis(time.as_secs_f64() * 1000.0);
    html! {
        tr id={ "call-" (call.number) } {
            td data-label="Time" { (clock(call.at)) }
            th scope="row" { a data-row href={ "/ui/calls/" (call.number) } { (line(&call.name)) } }
            td data-label="Result" { (layout::outcome(call.kind.as_str(), call.is_error)) @if call.cached { " " span.soft { "cached" } } @if call.attempts > 1 { " " span.soft { (call.attempts) " attempts" } } }
            td.n data-label="Took" { (millis_of(call.parts.total)) }
            td.n data-label="Queued" { @if call.parts.queued.as_micros() > 50 { (millis_of(call.parts.queued)) } @else { "–" } }
            td.n data-label="Size" { (bytes(call.original_bytes)) }
            td data-label="For" { (agent(call)) }
        }
    }
}

/// For whom a call was made.
pub(super) fn agent(call: &RecentCall) -> String {
    let principal = call.principal.as_ref().map(ToString::to_string);
    match (principal.as_deref(), call.view.as_deref()) {
        (Some(principal), Some(view)) => line(&format!("{principal} · {view}")),
        (Some(one), None) | (None, Some(one)) => line(one),
        (None, None) => "–".to_owned(),
    }
}

/// The changes of servers that a visitor sees, the newest first.
pub(super) fn seen_changes(ui: &Ui, visitor: &Visitor, of: Option<&ServerName>) -> Vec<Event> {
    let mut changes = ui.api.board().recent_changes();
    changes.reverse();
    changes
        .retain(|event| of.is_none_or(|of| server_of(event) == Some(of)) && ui.api.sees_event(&visitor.caller, event));
    changes
}

fn server_of(event: &Event) -> Option<&ServerName> {
    match event {
        Event::ServerChanged { server, .. }
        | Event::CatalogChanged { server, .. }
        | Event::DefinitionsFlagged { server, .. } => Some(server),
        _ => None,
    }
}

/// Changes of servers as a line of time.
pub(super) fn timeline(changes: &[Event], names_servers: bool) -> Markup {
    html! {
        ol.timeline { @for event in changes { li { (change(event, names_servers)) } } }
    }
}

fn change(event: &Event, names_servers: bool) -> Markup {
    let name = |server: &ServerName| {
        html! { @if names_servers { a href={ "/ui/servers/" (segment(server.as_str())) } { (shown(server.as_str())) } " " } }
    };
    let of = |view: &Option<String>, principal: &Option<pegboard::Principal>| {
        let whose = principal.as_ref().map(ToString::to_string).or_else(|| view.clone());
        html! { @if let Some(whose) = whose { span.soft { "of " (line(&whose)) } " " } }
    };
    match event {
        Event::ServerChanged {
            server,
            view,
            principal,
            state,
            reason,
            ready_after_ms,
            at,
            ..
        } => html! {
            (clock(*at)) " " (name(server)) (of(view, principal)) (layout::state(*state))
            @if let Some(ms) = ready_after_ms { span.soft { " after " (millis(*ms)) } }
            @if let Some(reason) = reason { p.hint { (line(reason)) } }
        },
        Event::CatalogChanged {
            server,
            view,
            principal,
            added,
            removed,
            changed,
            at,
        } => html! {
            (clock(*at)) " " (name(server)) (of(view, principal)) "catalogue: " (count_of(*added)) " new, " (count_of(*removed)) " removed, " (count_of(*changed)) " changed"
        },
        Event::DefinitionsFlagged {
            server,
            view,
            principal,
            changed,
            suspicious,
            held,
            at,
        } => html! {
            (clock(*at)) " " (name(server)) (of(view, principal)) (layout::badge("wait", "definitions flagged")) " "
            (count_of(*changed)) " changed, " (count_of(*suspicious)) " suspicious, " (count_of(*held)) " held"
        },
        other => html! { (other.kind().replace('_', " ")) },
    }
}
