//! `/ui/agents`: who uses the board, with which rights, and what they did.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{extract::State, response::Response};
use maud::{Markup, html};
use pegboard::{Timestamp, config::TokenConfig};
use pegboard_gateway::Scope;

use super::recent;
use crate::{
    layout::{self, Page},
    live::{self, Fragment, Wake},
    text::{ago, count_of, line, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// `GET /ui/agents`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    ui.note_visit();
    let body = html! {
        header.page { h1 { "Agents" } }
        @for (_, fragment) in fragments(&ui, &visitor) { (fragment) }
    };
    let page = Page {
        title: "Agents",
        section: "/ui/agents",
        live: Some("/ui/live/agents".to_owned()),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/agents`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    live::stream(ui, visitor, Wake::Calls, fragments)
}

fn fragments(ui: &Ui, visitor: &Visitor) -> Vec<Fragment> {
    vec![
        ("sessions", sessions(ui, visitor)),
        ("activity", activity(ui, visitor)),
        ("tokens", tokens(ui, visitor)),
    ]
}

fn sessions(ui: &Ui, visitor: &Visitor) -> Markup {
    let gateway = ui.api.gateway_metrics();
    html! {
        section #sessions aria-label="Clients" {
            @if visitor.sees_all() {
                dl.facts {
                    div { dt { "Client sessions" } dd { (count_of(gateway.sessions)) } }
                    div { dt { "Connections" } dd { (count_of(gateway.connections.open)) } }
                    div { dt { "Requests in flight" } dd { (count_of(gateway.in_flight)) } }
                    div { dt { "Open views" } dd { (ui.api.board().metrics().views_open) } }
                }
            }
        }
    }
}

/// What an agent did.
#[derive(Default)]
struct Activity {
    calls: usize,
    failed: usize,
    refused: usize,
    untrusted: usize,
    servers: BTreeSet<String>,
    last: Option<Timestamp>,
}

/// What each agent did, by the calls that were recorded.
fn activity(ui: &Ui, visitor: &Visitor) -> Markup {
    let mut agents: BTreeMap<String, Activity> = BTreeMap::new();
    for call in recent::seen_calls(ui, visitor) {
        let of = agents.entry(recent::agent(&call)).or_default();
        of.calls += 1;
        of.failed += usize::from(call.is_error);
        of.refused += usize::from(call.kind.as_str() == "not_permitted" || call.kind.as_str() == "limit_exceeded");
        of.untrusted += usize::from(call.untrusted && !call.is_error);
        of.servers.extend(call.server.as_ref().map(ToString::to_string));
        of.last = of.last.max(Some(call.at));
    }
    html! {
        section #activity aria-labelledby="activity-title" {
            h2 #activity-title { "What they did" }
            @if agents.is_empty() { (recent::nothing(ui, "No call was recorded yet.")) } @else {
                div.scroll tabindex="0" role="group" aria-label="What they did" { table {
                    thead { tr { th { "Agent" } th.n { "Calls" } th.n { "Failed" } th.n { "Refused" } th.n { "Untrusted texts read" } th { "Servers" } th { "Last call" } } }
                    tbody { @for (agent, of) in &agents {
                        tr {
                            th scope="row" { a href={ "/ui/calls?q=" (segment(agent)) } { (agent) } }
                            td.n { (count_of(of.calls)) }
                            td.n { (count_of(of.failed)) }
                            td.n { (count_of(of.refused)) }
                            td.n { (count_of(of.untrusted)) }
                            td.words { (line(&of.servers.iter().map(String::as_str).collect::<Vec<_>>().join(", "))) }
                            td { @if let Some(last) = of.last { (ago(last)) } }
                        }
                    } }
                } }
            }
        }
    }
}

/// The tokens of the config. Who may change what runs sees all of them, others their own.
fn tokens(ui: &Ui, visitor: &Visitor) -> Markup {
    let settings = ui.api.board().gateway_settings();
    let sees_others = visitor.may(Scope::Admin) && visitor.sees_all();
    let own = visitor.caller.principal().map(ToString::to_string);
    let shown_ones: Vec<(&String, &TokenConfig)> = settings
        .serve
        .tokens
        .iter()
        .filter(|(name, _)| sees_others || own.as_ref() == Some(name))
        .collect();
    html! {
        section #tokens aria-labelledby="tokens-title" {
            h2 #tokens-title { "Tokens" }
            @if settings.serve.tokens.is_empty() {
                (layout::empty("No tokens are configured: programs of this user are served without one. `pegboard token new NAME` makes one."))
            } @else if shown_ones.is_empty() {
                (layout::empty("Tokens of the config are shown with the scope `admin`."))
            } @else {
                div.scroll tabindex="0" role="group" aria-label="Tokens" { table {
                    thead { tr { th { "Token" } th { "Scopes" } th { "View" } th { "Rate" } th.n { "At once" } th { "Expires" } } }
                    tbody { @for (name, token) in shown_ones { (token_row(name, token)) } }
                } }
            }
        }
    }
}

fn token_row(name: &str, token: &TokenConfig) -> Markup {
    let scopes: Vec<&str> = token
        .scopes
        .iter()
        .filter_map(|scope| Scope::from_config(*scope))
        .map(Scope::as_str)
        .collect();
    html! {
        tr {
            th scope="row" { (shown(name)) }
            td { (scopes.join(", ")) }
            td { (token.view.as_deref().map_or_else(|| "whole board".to_owned(), line)) }
            td { (token.rate.map_or_else(|| "no limit".to_owned(), |rate| rate.to_string())) }
            td.n { (token.concurrent.map_or_else(|| "no limit".to_owned(), count_of)) }
            td { @match token.expires {
                None => { "never" }
                Some(at) if at <= Timestamp::now() => { (layout::badge("bad", "expired")) }
                Some(at) => { (at) }
            } }
        }
    }
}
