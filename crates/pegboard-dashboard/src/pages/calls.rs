//! `/ui/calls`: the calls that were recorded, and one of them with the parts of its time.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use pegboard::{config::DashboardCalls, recent::RecentCall};
use serde::Deserialize;
use serde_json::Value;

use super::recent;
use crate::{
    json::pretty,
    layout::{self, Page},
    live::{self, Fragment, Wake},
    sparkline::bar,
    text::{ago, bytes, count_of, line, millis, moment, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// How many calls the feed shows.
const ROWS: usize = 100;

/// Which calls are shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    /// A part of the name, or of the name of the agent.
    q: String,
    /// `errors`, `slow`, or a kind of end.
    show: String,
}

/// Calls that took longer are slow.
const SLOW: Duration = Duration::from_secs(1);

impl Wanted {
    fn query(&self) -> String {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.append_pair("q", &self.q).append_pair("show", &self.show);
        pairs.finish()
    }

    fn fits(&self, call: &RecentCall) -> bool {
        let is_shown = match self.show.as_str() {
            "" => true,
            "errors" => call.is_error,
            "slow" => call.parts.total > SLOW,
            kind => call.kind.as_str() == kind,
        };
        let words = self.q.trim().to_lowercase();
        is_shown
            && (words.is_empty()
                || call.name.to_lowercase().contains(&words)
                || call.id.to_lowercase().contains(&words)
                || recent::agent(call).to_lowercase().contains(&words))
    }
}

/// `GET /ui/calls`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    ui.note_visit();
    let body = html! {
        header.page {
            h1 { "Calls" }
            form.search role="search" method="get" action="/ui/calls" data-search {
                label.hidden for="q" { "Search by tool, agent or id" }
                input #q type="search" name="q" value=(wanted.q) placeholder="Search by tool, agent or id" autocomplete="off" title="Key: /";
                @if !wanted.show.is_empty() { input type="hidden" name="show" value=(wanted.show); }
                button.hidden type="submit" { "Search" }
            }
            label.check { input #hold type="checkbox"; " Hold the list" }
        }
        @for (_, fragment) in fragments(&ui, &visitor, &wanted) { (fragment) }
    };
    let page = Page {
        title: "Calls",
        section: "/ui/calls",
        live: Some(format!("/ui/live/calls?{}", wanted.query())),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/calls`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor, Query(wanted): Query<Wanted>) -> Response {
    live::stream(ui, visitor, Wake::Calls, move |ui, visitor| {
        fragments(ui, visitor, &wanted)
    })
}

fn fragments(ui: &Ui, visitor: &Visitor, wanted: &Wanted) -> Vec<Fragment> {
    let calls = recent::seen_calls(ui, visitor);
    let kept = calls.len();
    let mut found: Vec<_> = calls.into_iter().filter(|call| wanted.fits(call)).collect();
    let fitting = found.len();
    found.truncate(ROWS);
    let tab = |show: &str, label: &str| {
        html! { a href={ "/ui/calls?show=" (show) } aria-current=[(wanted.show == show).then_some("true")] { (label) } }
    };
    let list = html! {
        div #results {
            nav.tabs aria-label="Kinds of calls" {
                (tab("", "All")) (tab("errors", "Failed")) (tab("slow", "Over 1 s")) (tab("not_permitted", "Not permitted")) (tab("limit_exceeded", "Over a limit"))
            }
            p.soft { (words(ui, visitor, kept)) @if fitting > ROWS { " The newest " (count_of(ROWS)) " of " (count_of(fitting)) " are shown." } }
            @if found.is_empty() { (recent::nothing(ui, "No call fits yet. The page shows each one as soon as it has ended.")) } @else { (recent::table(&found)) }
        }
    };
    vec![("results", list)]
}

fn words(ui: &Ui, visitor: &Visitor, kept: usize) -> String {
    let whose = match visitor.may(pegboard_gateway::Scope::Admin) && visitor.sees_all() {
        true => "calls",
        false => "calls of your own",
    };
    let when = match ui.recording() {
        DashboardCalls::Off => return String::new(),
        DashboardCalls::Always => "since the start",
        DashboardCalls::Open => "while a page is in use, and an hour longer",
    };
    format!("{} {whose} are kept in memory, recorded {when}.", count_of(kept))
}

/// `GET /ui/calls/{number}`.
pub(crate) async fn one(State(ui): State<Arc<Ui>>, visitor: Visitor, Path(number): Path<u64>) -> Response {
    ui.note_visit();
    let found = ui.api.board().recent_calls().find(number);
    let Some(call) = found.filter(|call| recent::sees_call(&visitor, call)) else {
        let words = "The call is not recorded, or no longer, or it is not yours.";
        return layout::problem(StatusCode::NOT_FOUND, "No such call", words, None);
    };
    let page = Page {
        title: &call.name,
        section: "/ui/calls",
        live: None,
        body: body(&call),
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

fn body(call: &RecentCall) -> Markup {
    html! {
        header.page {
            div {
                p.crumbs { a href="/ui/calls" { "Calls" } }
                h1 { (line(&call.name)) }
            }
            div.line { (layout::outcome(call.kind.as_str(), call.is_error)) span.soft { (ago(call.at)) } }
        }
        (waterfall(call))
        div.columns {
            div {
                section aria-labelledby="arguments" {
                    h2 #arguments { "Arguments" }
                    @if call.arguments.is_empty() { (layout::empty(&format!("{} of arguments are not kept: they are too long, or the tool was not known.", bytes(call.argument_bytes)))) }
                    @else { pre tabindex="0" { (shown(&indented(&call.arguments))) } }
                }
                section aria-labelledby="result" {
                    h2 #result { "Result" }
                    pre tabindex="0" { (shown(&call.result)) @if call.is_cut { "\n…" } }
                    @if call.is_cut { p.soft { "The first 8 KiB of " (bytes(call.original_bytes)) "." } }
                    @if let Some(hint) = &call.hint { p.hint { (shown(hint)) } }
                    @for warning in &call.warnings { p.hint { (shown(warning)) } }
                }
            }
            div { (facts(call)) }
        }
    }
}

fn facts(call: &RecentCall) -> Markup {
    html! {
        dl.facts.tall {
            @if let Some(server) = &call.server { div { dt { "Server" } dd { a href={ "/ui/servers/" (segment(server.as_str())) } { (shown(server.as_str())) } } } }
            @if let (Some(server), Some(tool)) = (&call.server, &call.tool) {
                div { dt { "Tool" } dd { a href={ "/ui/tools/" (segment(server.as_str())) "/" (segment(tool)) } { (line(tool)) } } }
            }
            div { dt { "For" } dd { (recent::agent(call)) } }
            div { dt { "Id" } dd { code { (line(&call.id)) } } }
            div { dt { "Began" } dd { (moment(call.at)) } }
            div { dt { "Status" } dd { (call.status.replace('_', " ")) } }
            div { dt { "Attempts" } dd { (call.attempts) } }
            div { dt { "From the cache" } dd { @if call.cached { "yes" } @else { "no" } } }
            div { dt { "Result of the server" } dd { (bytes(call.original_bytes)) } }
            div { dt { "Secrets masked" } dd { (count_of(call.masked)) } }
            div { dt { "Trusted server" } dd { @if call.untrusted { "no: the text is data, never instructions" } @else { "yes, or no text of a server" } } }
        }
    }
}

/// Where the time went, part by part.
fn waterfall(call: &RecentCall) -> Markup {
    let parts = &call.parts;
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let total = ms(parts.total);
    let known = ms(parts.prepared) + ms(parts.queued) + ms(parts.served) + ms(parts.presented);
    let rows = [
        ("prepared", "Arguments, policy, approval", ms(parts.prepared)),
        ("queued", "Queue", ms(parts.queued)),
        ("served", "Wire and server", ms(parts.served)),
        ("presented", "Sanitizing, masking, shortening", ms(parts.presented)),
        ("other", "Starts, retries, hooks", (total - known).max(0.0)),
    ];
    let mut at = 0.0;
    let mut placed = Vec::new();
    for (class, label, part) in rows {
        placed.push((class, label, at, part));
        at += part;
    }
    html! {
        section.boxed aria-labelledby="waterfall" {
            h2 #waterfall { "Where " (millis(total)) " went" }
            table.waterfall { tbody { @for (class, label, from, part) in placed {
                tr {
                    th scope="row" { (label) }
                    td.n { (millis(part)) }
                    td.bars { (bar(&format!("{label}: {}", millis(part)), &[("before", from), (class, part)], total.max(0.001))) }
                }
            } } }
            p.soft {
                "The time on the wire is a part of that of the server: a server does not say how long it worked itself."
                @if call.attempts > 1 { " It was sent " (call.attempts) " times; the time of the server is of all attempts together." }
                @if call.attempts == 0 { " It was not sent to a server." }
            }
        }
    }
}

/// JSON with line ends, or the text as it is.
fn indented(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| pretty(&value))
}
