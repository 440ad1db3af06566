//! `/ui/config`: the config on disk, with the origin of each setting, and its problems.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{Method, StatusCode};
use maud::{Markup, html};
use pegboard_gateway::Scope;
use serde_json::Value;

use crate::{
    form::Form,
    layout::{self, Page, button},
    text::{ago, count, count_of, line, shown},
    ui::{ConfigDocument, ConfigLine, Ui},
    visitor::Visitor,
};

/// The most settings that the page lists.
const LISTED: usize = 1_000;

/// `GET /ui/config`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    ui.note_visit();
    // The user of this machine can read the files anyway. Commands and addresses are nothing for every token.
    let is_user = visitor.caller.principal().is_none();
    if !visitor.sees_all() || !(is_user || visitor.may(Scope::Admin)) {
        let words = "The config is of the whole board: it needs a token with the scope `admin` and without a view.";
        return layout::problem(StatusCode::FORBIDDEN, "Not for this token", words, None);
    }
    let read = match ui.sources.config.clone() {
        Some(read) => tokio::task::spawn_blocking(move || read()).await.ok(),
        None => None,
    };
    let who = visitor.who();
    let last = ui.api.reloads().last();
    let body = html! {
        header.page {
            h1 { "Config" }
            div.actions { (button(&who, Scope::Admin, "/ui/config", "Reload", "reload")) }
        }
        dl.facts {
            div { dt { "In effect since" } dd { (ago(last.applied_at)) } }
            div { dt { "Reloads" } dd { (count(last.applied)) } }
            div { dt { "Failed reloads" } dd { (count(last.failures)) } }
        }
        @if let Some(failed) = &last.failed {
            div.notice.bad {
                p { b { "The newest config is not in effect." } " " (shown(&failed.message)) }
                @if let Some(hint) = &failed.hint { pre tabindex="0" { (shown(hint)) } }
            }
        }
        @for note in &last.notes { p.notice.wait { (shown(&note.message)) } }
        @match &read {
            Some(document) => { (document_of(document)) }
            None => { (layout::empty("This program does not show its config.")) }
        }
    };
    let page = Page {
        title: "Config",
        section: "/ui/config",
        live: None,
        body,
    };
    visitor.remember(layout::page(&who, &page))
}

/// `POST /ui/config`: reloads it.
pub(crate) async fn post(State(ui): State<Arc<Ui>>, visitor: Visitor, body: Body) -> Response {
    if let Err(refused) = Form::read(&visitor, body).await {
        return *refused;
    }
    let reply = ui
        .api
        .request(&visitor.caller, Method::POST, "/api/v1/mcp/reload", &Value::Null)
        .await;
    if reply.is_success() {
        return layout::see_other("/ui/config");
    }
    let (detail, hint) = reply.problem();
    layout::problem(reply.status, "Not reloaded", &detail, hint.as_deref())
}

fn document_of(document: &ConfigDocument) -> Markup {
    let mut groups: Vec<(Option<&str>, Vec<&ConfigLine>)> = Vec::new();
    for setting in document.settings.iter().take(LISTED) {
        match groups.last_mut() {
            Some((server, lines)) if *server == setting.server.as_deref() => lines.push(setting),
            _ => groups.push((setting.server.as_deref(), vec![setting])),
        }
    }
    html! {
        section aria-labelledby="problems" {
            h2 #problems { "Problems" }
            @if document.problems.is_empty() { p.notice.good { "The files on disk have no problems." } }
            @for problem in &document.problems {
                div class={ "notice " (if problem.is_error { "bad" } else { "wait" }) } {
                    p { (layout::badge(if problem.is_error { "bad" } else { "wait" }, if problem.is_error { "error" } else { "warning" })) " " (shown(&problem.message)) }
                    @if let Some(hint) = &problem.hint { p.hint { (shown(hint)) } }
                }
            }
        }
        section aria-labelledby="files" {
            h2 #files { "Files" }
            @if document.sources.is_empty() { (layout::empty("None: the defaults count.")) }
            ul.plain { @for source in &document.sources { li { code { (shown(source)) } } } }
        }
        section aria-labelledby="settings" {
            h2 #settings { "Settings that are not defaults" }
            @if groups.is_empty() { (layout::empty("None.")) }
            @if document.settings.len() > LISTED { p.soft { "The first " (count_of(LISTED)) " of " (count_of(document.settings.len())) "; " code { "pegboard config explain" } " prints all." } }
            @for (server, lines) in &groups {
                h3 { @match server { Some(server) => { (shown(server)) } None => { "All servers and the gateway" } } }
                div.scroll tabindex="0" role="group" aria-label="Settings" { table.settings {
                    thead { tr { th { "Setting" } th { "Value" } th { "From" } } }
                    tbody { @for one in lines {
                        tr { th scope="row" { code { (line(&one.name)) } } td.words { code { (line(&value(&one.value))) } } td.words { span.soft { (line(&one.origin)) } } }
                    } }
                } }
            }
        }
    }
}

fn value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
