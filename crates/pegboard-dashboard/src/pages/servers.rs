//! `/ui/servers`: all servers that the visitor sees.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    response::Response,
};
use maud::{Markup, html};
use pegboard::{State as ServerState, status::ServerStatus};
use serde::Deserialize;

use super::server_rows;
use crate::{
    layout::{self, Page},
    live::{self, Fragment, Wake},
    text::count_of,
    ui::Ui,
    visitor::Visitor,
};

/// How many rows a page has.
const ROWS: usize = 100;

/// Which servers are shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    /// A part of the name.
    q: String,
    /// `attention`, or a state.
    show: String,
    page: usize,
}

impl Wanted {
    fn query(&self) -> String {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.append_pair("q", &self.q).append_pair("show", &self.show);
        pairs.append_pair("page", &self.page.max(1).to_string());
        pairs.finish()
    }

    fn fits(&self, row: &ServerStatus) -> bool {
        let name = row.name.as_str().to_lowercase();
        let is_shown = match self.show.as_str() {
            "" => true,
            "attention" => needs_attention(row),
            state => row.state.as_str() == state,
        };
        is_shown && name.contains(&self.q.trim().to_lowercase())
    }
}

fn needs_attention(row: &ServerStatus) -> bool {
    row.is_troubled() || row.awaits_connect || row.held > 0 || row.breaker != "closed"
}

/// `GET /ui/servers`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    ui.note_visit();
    let body = html! {
        header.page {
            h1 { "Servers" }
            form.search role="search" method="get" action="/ui/servers" data-search {
                label.hidden for="q" { "Search by name" }
                input #q type="search" name="q" value=(wanted.q) placeholder="Search by name" autocomplete="off" title="Key: /";
                @if !wanted.show.is_empty() { input type="hidden" name="show" value=(wanted.show); }
                button.hidden type="submit" { "Search" }
            }
        }
        @for (_, fragment) in fragments(&ui, &visitor, &wanted) { (fragment) }
    };
    let page = Page {
        title: "Servers",
        section: "/ui/servers",
        live: Some(format!("/ui/live/servers?{}", wanted.query())),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/servers`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    live::stream(ui, visitor, Wake::Servers, move |ui, visitor| {
        fragments(ui, visitor, &wanted)
    })
}

fn fragments(ui: &Ui, visitor: &Visitor, wanted: &Wanted) -> Vec<Fragment> {
    let status = ui.api.status(&visitor.caller);
    let rows = &status.servers;
    let found: Vec<&ServerStatus> = rows.iter().filter(|row| wanted.fits(row)).collect();
    let page = wanted.page.clamp(1, found.len().div_ceil(ROWS).max(1));
    let on_page: Vec<&ServerStatus> = found.iter().skip((page - 1) * ROWS).take(ROWS).copied().collect();
    let query = [("q", wanted.q.as_str()), ("show", wanted.show.as_str())];
    let list = html! {
        div #results {
            (tabs(rows, wanted))
            @if rows.is_empty() {
                (layout::empty("There is no server yet. `pegboard add` adds one, and the page shows it as soon as the config is applied."))
            } @else if on_page.is_empty() {
                (layout::empty("No server fits."))
            } @else {
                (server_rows::table(&visitor.who(), &on_page))
                @if found.len() > ROWS { (layout::pager("/ui/servers", &query, page, ROWS, found.len())) }
            }
        }
    };
    vec![("results", list)]
}

/// The states that there are, with how many servers are in each.
fn tabs(rows: &[ServerStatus], wanted: &Wanted) -> Markup {
    let mut states: Vec<(ServerState, usize)> = Vec::new();
    for row in rows {
        match states.iter_mut().find(|(state, _)| *state == row.state) {
            Some((_, count)) => *count += 1,
            None => states.push((row.state, 1)),
        }
    }
    states.sort_by_key(|(state, _)| *state);
    let attention = rows.iter().filter(|row| needs_attention(row)).count();
    let tab = |show: &str, label: &str, count: usize| {
        html! {
            a href={ "/ui/servers?show=" (show) } aria-current=[(wanted.show == show).then_some("true")] { (label) " " span.number { (count_of(count)) } }
        }
    };
    html! {
        nav.tabs aria-label="States" {
            (tab("", "All", rows.len()))
            @if attention > 0 { (tab("attention", "Need attention", attention)) }
            @for (state, count) in states { (tab(state.as_str(), &state.as_str().replace('_', " "), count)) }
        }
    }
}
