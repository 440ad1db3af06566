//! `/ui/tools`: the tools that the visitor sees.

use std::{collections::HashSet, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    response::Response,
};
use http::StatusCode;
use maud::html;
use pegboard::{ListedTool, Listing, Provider, Toolset, catalog::Risk};
use serde::Deserialize;

use crate::{
    layout::{self, Page},
    text::{count_of, line, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// How many rows a page has.
const ROWS: usize = 100;
/// How long a listing waits for servers that are starting. People wait for a page.
pub(super) const PATIENCE: Duration = Duration::from_millis(1500);
/// How many tools a search by meaning of words finds, after those whose name fits.
const SEARCHED: usize = 50;
/// An estimate of the bytes of a definition per token.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// Which tools are shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    q: String,
    server: String,
    page: usize,
}

/// `GET /ui/tools`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    ui.note_visit();
    let toolset = match ui.api.listings(&visitor.caller, Provider::Mcp) {
        Ok(toolset) => toolset,
        Err(why) => return layout::problem(StatusCode::NOT_FOUND, "No tools", &why, None),
    };
    let listing = toolset.list(PATIENCE).await;
    let found = find(&toolset, &listing, &wanted);
    let page = wanted.page.clamp(1, found.len().div_ceil(ROWS).max(1));
    let on_page: Vec<&ListedTool> = found.iter().skip((page - 1) * ROWS).take(ROWS).copied().collect();
    let query = [("q", wanted.q.as_str()), ("server", wanted.server.as_str())];
    let tokens: usize = toolset.cost().iter().map(|cost| cost.tokens).sum();
    let body = html! {
        header.page {
            h1 { "Tools" }
            form.search role="search" method="get" action="/ui/tools" data-search {
                label.hidden for="q" { "Search by name or words" }
                input #q type="search" name="q" value=(wanted.q) placeholder="Search by name or words" autocomplete="off" title="Key: /";
                @if !wanted.server.is_empty() { input type="hidden" name="server" value=(wanted.server); }
                button.hidden type="submit" { "Search" }
            }
        }
        div #results {
            p.soft {
                (count_of(listing.tools.len())) " tools, about " (count_of(tokens)) " tokens if a model gets all of their definitions."
                @if !wanted.server.is_empty() { " Only those of " b { (shown(&wanted.server)) } ": " a href="/ui/tools" { "show all" } "." }
            }
            @if on_page.is_empty() { (layout::empty("No tool fits.")) } @else {
                div.scroll tabindex="0" role="group" aria-label="Tools" { table.tools.stack {
                    thead { tr { th { "Tool" } th { "What it does" } th { "Risk" } th.n { "Tokens" } } }
                    tbody { @for listed in &on_page {
                        tr {
                            th scope="row" {
                                a data-row href=(path(listed)) { (line(&listed.tool.name)) }
                                div.soft { (line(listed.tool.server.as_str())) }
                            }
                            td.words.wide { (line(listed.tool.description.as_deref().unwrap_or_default())) }
                            td data-label="Risk" { (risk(listed)) @if !listed.available { " " (layout::badge("rest", "not available")) } }
                            td.n data-label="Tokens" { (count_of(listed.tokens())) }
                        }
                    } }
                } }
                @if found.len() > ROWS { (layout::pager("/ui/tools", &query, page, ROWS, found.len())) }
            }
            @if !listing.unavailable.is_empty() {
                h2 { "Servers whose tools are missing" }
                ul.plain { @for one in listing.unavailable.iter().take(ROWS) {
                    li { (layout::state(one.state)) " " a href={ "/ui/servers/" (segment(one.server.as_str())) } { (shown(one.server.as_str())) } ": " (line(&one.error)) }
                } }
            }
        }
    };
    let page = Page {
        title: "Tools",
        section: "/ui/tools",
        live: None,
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// The tools that fit: first those whose name has the words, then what the search finds.
fn find<'a>(toolset: &Toolset, listing: &'a Listing, wanted: &Wanted) -> Vec<&'a ListedTool> {
    let of_server = |listed: &&ListedTool| wanted.server.is_empty() || listed.tool.server.as_str() == wanted.server;
    let all = listing.tools.iter().filter(of_server);
    let words = wanted.q.trim().to_lowercase();
    if words.is_empty() {
        return all.collect();
    }
    let all: Vec<&ListedTool> = all.collect();
    let has_words = |listed: &&&ListedTool| {
        listed.tool.dotted_name().to_lowercase().contains(&words) || listed.name.to_lowercase().contains(&words)
    };
    let mut found: Vec<&ListedTool> = all.iter().filter(has_words).copied().collect();
    let mut known: HashSet<&str> = found.iter().map(|listed| listed.name.as_str()).collect();
    for hit in toolset.find(&words, SEARCHED) {
        let listed = all.iter().find(|listed| listed.name == hit.tool.name);
        if let Some(listed) = listed.filter(|listed| known.insert(listed.name.as_str())) {
            found.push(listed);
        }
    }
    found
}

/// The page of a tool.
pub(super) fn path(listed: &ListedTool) -> String {
    format!(
        "/ui/tools/{}/{}",
        segment(listed.tool.server.as_str()),
        segment(&listed.tool.name)
    )
}

/// How much harm a call may do, in a word.
pub(super) fn risk(listed: &ListedTool) -> maud::Markup {
    match listed.risk {
        Risk::Low => layout::badge("good", "low"),
        Risk::Medium => layout::badge("wait", "medium"),
        _ => layout::badge("rest", "high"),
    }
}
