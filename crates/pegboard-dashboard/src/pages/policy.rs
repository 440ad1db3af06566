//! `/ui/policy`: the calls and definitions that wait for a person, and the views.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use pegboard::{
    audit::{AdminChange, ChangeOutcome},
    config::ViewConfig,
    pin::{PinChange, PinState},
    recent::{ApprovalAnswer, WaitingApproval},
};
use pegboard_gateway::Scope;

use super::definition;
use crate::{
    form::Form,
    layout::{self, Page, button},
    live::{self, Wake},
    text::{ago, count_of, line, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// The most definitions that are listed.
const LISTED: usize = 100;

/// `GET /ui/policy`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    ui.note_visit();
    let settings = ui.api.board().gateway_settings();
    let views: Vec<(&String, &ViewConfig)> = settings
        .views
        .iter()
        .filter(|(name, _)| visitor.caller.view().is_none_or(|own| own == name.as_str()))
        .collect();
    let mut changes = ui.api.board().pin_changes();
    let may_see = definition::are_shown_to(&visitor);
    changes.retain(|change| may_see && (change.state != PinState::Unchanged || !change.findings.is_empty()));
    let body = html! {
        header.page { h1 { "Policy" } }
        (approvals(&ui, &visitor))
        section aria-labelledby="definitions" {
            h2 #definitions { "Definitions to look at" }
            @if !may_see { (layout::empty("They are shown with the scope `admin` and without a view.")) }
            @else if changes.is_empty() { (layout::empty("Every definition that is known is as it was pinned, and none looks like an attack.")) } @else {
                (pin_changes(&changes))
            }
        }
        section aria-labelledby="views" {
            h2 #views { "Views" }
            @if views.is_empty() { (layout::empty("The config has no views: every client sees every server and tool.")) }
            @for (name, view) in views { (view_card(name, view)) }
        }
    };
    let page = Page {
        title: "Policy",
        section: "/ui/policy",
        live: Some("/ui/live/policy".to_owned()),
        body,
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `GET /ui/live/policy`.
pub(crate) async fn live(State(ui): State<Arc<Ui>>, visitor: Visitor) -> Response {
    live::stream(ui, visitor, Wake::Servers, |ui, visitor| {
        vec![("waiting", approvals(ui, visitor))]
    })
}

/// The calls that wait for a person. Who may change what runs may answer them.
fn approvals(ui: &Ui, visitor: &Visitor) -> Markup {
    let may_answer = visitor.may(Scope::Admin) && visitor.sees_all();
    let waiting = ui.api.board().waiting_approvals().all();
    html! {
        section #waiting aria-labelledby="approvals" {
            h2 #approvals { "Calls that wait for approval" @if may_answer && !waiting.is_empty() { span.number { (count_of(waiting.len())) } } }
            @if !may_answer {
                (layout::empty("They are shown with the scope `admin` and without a view. The client whose agent makes a call asks its own user as well."))
            } @else if waiting.is_empty() {
                (layout::empty("No call waits. The client whose agent makes a call asks its own user, and the first answer counts."))
            } @else {
                ul.cards { @for question in &waiting { li id={ "waiting-" (question.number) } { (question_card(visitor, question)) } } }
            }
        }
    }
}

fn question_card(visitor: &Visitor, question: &WaitingApproval) -> Markup {
    let who = visitor.who();
    let whose = question
        .principal
        .as_ref()
        .map(ToString::to_string)
        .or_else(|| question.view.clone());
    let risk = question.risk.as_str();
    let path = |answer: &str| format!("/ui/approvals/{}/{answer}", question.number);
    let id = |answer: &str| format!("{answer}-{}", question.number);
    html! {
        div.line { b { (line(&question.name)) } span.soft { (ago(question.since)) } }
        div.line {
            (layout::badge(if risk == "high" { "bad" } else { "wait" }, &format!("risk {risk}")))
            @if let Some(whose) = whose { span.soft { "for " (line(&whose)) } }
        }
        pre tabindex="0" { (shown(&question.arguments)) }
        @if question.has_changed { p.hint { "Its definition has changed since it was approved." } }
        @if question.is_tainted { p.hint { "The agent has read output of servers that are not trusted, which may have led to this call." } }
        div.actions {
            (button(&who, Scope::Admin, &path("once"), "Approve", &id("once")))
            (button(&who, Scope::Admin, &path("view"), "Approve for this session", &id("view")))
            (button(&who, Scope::Admin, &path("deny"), "Deny", &id("deny")))
        }
    }
}

/// `POST /ui/approvals/{number}/{answer}`.
pub(crate) async fn answer(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((number, answer)): Path<(u64, String)>,
    body: Body,
) -> Response {
    if let Err(refused) = Form::read(&visitor, body).await {
        return *refused;
    }
    if !visitor.may(Scope::Admin) || !visitor.sees_all() {
        let words = "Answers need a token with the scope `admin` and without a view.";
        return layout::problem(StatusCode::FORBIDDEN, "Not for this token", words, None);
    }
    let (action, given) = match answer.as_str() {
        "once" => ("approve", ApprovalAnswer::Once),
        "view" => ("approve", ApprovalAnswer::ForView),
        "deny" => ("deny", ApprovalAnswer::Refused),
        _ => return layout::problem(StatusCode::NOT_FOUND, "Not found", "There is no such answer.", None),
    };
    let board = ui.api.board();
    let change = |outcome: ChangeOutcome| {
        let change = AdminChange::new(action, outcome);
        match visitor.caller.principal() {
            Some(principal) => change.principal(principal.clone()),
            None => change,
        }
    };
    if let Err(failure) = board.begin_change(&change(ChangeOutcome::Begun)).await {
        return layout::problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not answered",
            &failure.message,
            failure.hint.as_deref(),
        );
    }
    match board.waiting_approvals().answer(number, given) {
        Some(question) => {
            board.record_change(change(ChangeOutcome::Done).server(question.server));
            layout::see_other("/ui/policy")
        }
        None => {
            board.record_change(change(ChangeOutcome::Refused));
            let words = "The call waits no longer: its user has answered, or its time is over.";
            layout::problem(StatusCode::CONFLICT, "Too late", words, None)
        }
    }
}

fn view_card(name: &str, view: &ViewConfig) -> Markup {
    let list = |items: &[String], all: &str| match items {
        [] => all.to_owned(),
        items => items.join(", "),
    };
    html! {
        div.boxed {
            h3 { (shown(name)) }
            @if let Some(description) = &view.description { p { (shown(description)) } }
            dl.facts {
                div { dt { "Servers" } dd { (line(&list(&view.servers, "all"))) } }
                div { dt { "Tools" } dd { (line(&list(&view.tools, "all"))) } }
                div { dt { "Never" } dd { (line(&list(&view.deny, "–"))) } }
                div { dt { "Approval" } dd { (view.approval.as_str()) } }
                div { dt { "Budget" } dd { (view.budget.map_or_else(|| "none".to_owned(), |budget| format!("{} tokens", count_of(budget)))) } }
                div { dt { "Address" } dd { code { "/mcp/view/" (shown(name)) } } }
            }
        }
    }
}

/// Definitions that differ from their pins, or look like attacks.
pub(super) fn pin_changes(changes: &[PinChange]) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Definitions" { table {
            thead { tr { th { "Server" } th { "Definition" } th { "State" } th { "Found in it" } } }
            tbody { @for change in changes.iter().take(LISTED) {
                tr {
                    td { a href={ "/ui/servers/" (segment(change.server.as_str())) } { (shown(change.server.as_str())) } }
                    td { a data-row href=(definition::path(change)) { @match &change.tool { Some(tool) => { (line(tool)) } None => { "instructions" } } } }
                    td { (definition::badge(change)) }
                    td.words { @for finding in &change.findings { p { (line(&finding.to_string())) } } }
                }
            } }
        } }
        @if changes.len() > LISTED { p.soft { "The first " (LISTED) " of " (count_of(changes.len())) "." } }
    }
}
