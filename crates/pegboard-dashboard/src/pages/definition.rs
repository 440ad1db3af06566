//! `/ui/definitions/{server}/{hash}`: a definition that is not as it was pinned, and the form that accepts it. The hash names what the person has
//! seen: a definition that has changed once more has another page.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use pegboard::{
    ServerName,
    audit::{AdminChange, ChangeOutcome},
    pin::{FieldChange, PinChange, PinState},
};
use pegboard_gateway::Scope;
use serde_json::Value;

use crate::{
    form::Form,
    json::pretty,
    layout::{self, Page, button},
    text::{bytes, line, segment, shown},
    ui::Ui,
    visitor::Visitor,
};

/// The most bytes of a field that are shown. A definition with a longer one is not accepted here, because a part of it was not seen.
const MAX_SHOWN: usize = 64 << 10;

/// The address of a definition's page.
pub(super) fn path(change: &PinChange) -> String {
    format!("/ui/definitions/{}/{}", segment(change.server.as_str()), change.hash)
}

/// `GET /ui/definitions/{server}/{hash}`.
pub(crate) async fn get(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((server, hash)): Path<(String, String)>,
) -> Response {
    ui.note_visit();
    let Some(change) = find(&ui, &visitor, &server, &hash) else {
        return gone();
    };
    let name = change.name();
    let page = Page {
        title: &name,
        section: "/ui/policy",
        live: None,
        body: body(&visitor, &change),
    };
    visitor.remember(layout::page(&visitor.who(), &page))
}

/// `POST /ui/definitions/{server}/{hash}`: pins the definition as it was shown.
pub(crate) async fn accept(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((server, hash)): Path<(String, String)>,
    body: Body,
) -> Response {
    if let Err(refused) = Form::read(&visitor, body).await {
        return *refused;
    }
    if !visitor.may(Scope::Admin) || !visitor.sees_all() {
        let words = "To accept a definition takes a token with the scope `admin` and without a view.";
        return layout::problem(StatusCode::FORBIDDEN, "Not for this token", words, None);
    }
    let Some(change) = find(&ui, &visitor, &server, &hash) else {
        return gone();
    };
    if is_long(&change) {
        let words = "The definition is too long to be shown as a whole.";
        return layout::problem(
            StatusCode::FORBIDDEN,
            "Not accepted",
            words,
            Some(&command("accept", &change)),
        );
    }
    let board = ui.api.board();
    let record = |outcome: ChangeOutcome| {
        let record = AdminChange::new("accept", outcome)
            .server(change.server.clone())
            .definition(change.tool.as_deref(), change.hash);
        match visitor.caller.principal() {
            Some(principal) => record.principal(principal.clone()),
            None => record,
        }
    };
    if let Err(failure) = board.begin_change(&record(ChangeOutcome::Begun)).await {
        let (words, hint) = (&failure.message, failure.hint.as_deref());
        return layout::problem(StatusCode::SERVICE_UNAVAILABLE, "Not accepted", words, hint);
    }
    match board.accept_pins(std::slice::from_ref(&change)) {
        Ok(_) => {
            board.record_change(record(ChangeOutcome::Done));
            tracing::info!(server = %change.server, tool = change.tool, "a definition was accepted");
            layout::see_other("/ui/policy")
        }
        Err(error) => {
            board.record_change(record(ChangeOutcome::Failed));
            layout::problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Not accepted",
                &error.to_string(),
                None,
            )
        }
    }
}

/// Whether a visitor sees definitions that wait for a person: those of all tools, and of the instances of all principals.
pub(super) fn are_shown_to(visitor: &Visitor) -> bool {
    let is_user = visitor.caller.principal().is_none();
    visitor.sees_all() && (is_user || visitor.may(Scope::Admin))
}

/// The definition, if it still waits for a person and the visitor sees it.
fn find(ui: &Ui, visitor: &Visitor, server: &str, hash: &str) -> Option<PinChange> {
    if !are_shown_to(visitor) {
        return None;
    }
    let server = ServerName::parse(server).ok()?;
    let mut changes = ui.api.board().pin_changes().into_iter();
    changes.find(|change| change.server == server && change.hash.to_string() == hash)
}

fn gone() -> Response {
    let words = "The definition is accepted, has changed once more, or its server has gone.";
    layout::problem(
        StatusCode::NOT_FOUND,
        "No such definition",
        words,
        Some("The page of policies lists those that are left."),
    )
}

fn body(visitor: &Visitor, change: &PinChange) -> Markup {
    let fields = change.changed_fields();
    let is_changed = change.state == PinState::Changed;
    html! {
        header.page {
            div {
                p.crumbs { a href="/ui/policy" { "Policy" } }
                h1 { (line(&change.name())) }
            }
            (badge(change))
        }
        p { (why(change.state)) }
        @if !change.findings.is_empty() {
            section.boxed aria-labelledby="findings" {
                h2 #findings { "Found in it" }
                @for finding in &change.findings { p { (layout::badge("bad", finding.severity.as_str())) " " (line(&finding.to_string())) } }
            }
        }
        @if is_changed {
            @for field in fields.iter().filter(|field| field.field != "name") { (field_section(field)) }
        } @else {
            section aria-labelledby="definition" { h2 #definition { "The definition" } pre tabindex="0" { (cut(&text_of(&change.new))) } }
        }
        @if visitor.may(Scope::Admin) && visitor.sees_all() {
            @if is_long(change) {
                p.hint { "It is too long to be shown as a whole. " code { (command("accept", change)) } " accepts it." }
            } @else {
                p.soft { "Accepting pins the definition as it is shown here. If the server has changed it again meanwhile, that stays as it is." }
                div.actions { (button(&visitor.who(), Scope::Admin, &path(change), "Accept this definition", "accept")) }
            }
        } @else {
            p.soft { "To accept it takes the scope `admin` and no view." }
        }
    }
}

/// Why a definition waits for a person.
fn why(state: PinState) -> &'static str {
    match state {
        PinState::Unchanged => "It is as it was pinned, but the scanner found something in it.",
        PinState::New => "It was not there when its server was pinned.",
        PinState::NewServer => "Its server is new, and the config has a person accept its definitions.",
        PinState::Changed => "It has changed since it was pinned.",
        _ => "It is pinned, but no person has accepted it, and the config requires that.",
    }
}

/// How a definition differs from its pin.
pub(super) fn badge(change: &PinChange) -> Markup {
    let word = match change.state {
        PinState::Unchanged => "suspicious".to_owned(),
        state => state.as_str().replace('_', " "),
    };
    html! { (layout::badge(if change.held { "bad" } else { "wait" }, &word)) @if change.held { " held" } }
}

fn field_section(field: &FieldChange) -> Markup {
    let side = |title: &str, text: Option<&str>| {
        html! {
            div {
                p.soft { (title) }
                @match text { Some(text) => { pre tabindex="0" { (cut(&text_of(text))) } } None => { (layout::empty("It was not there, or was too long to keep.")) } }
            }
        }
    };
    html! {
        section.boxed {
            h2 { (line(&field.field)) }
            div.columns.even { (side("As pinned", field.old.as_deref())) (side("Now", field.new.as_deref())) }
        }
    }
}

/// JSON with line ends, or the text as it is. A text of a server is not taken for JSON: reading it would lose a part, such as a key that it has
/// twice.
fn text_of(text: &str) -> String {
    let is_document = text.starts_with(['{', '[']);
    let value = is_document.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    let is_ours = |value: &Value| {
        let written = value.to_string();
        text.len() <= MAX_SHOWN && written == text
    };
    match value.filter(is_ours) {
        Some(value) => pretty(&value),
        None => text.to_owned(),
    }
}

fn cut(text: &str) -> String {
    let kept = &text[..text.floor_char_boundary(MAX_SHOWN)];
    match kept.len() == text.len() {
        true => shown(text).into_owned(),
        false => format!("{}\n… {} more", shown(kept), bytes(text.len() - kept.len())),
    }
}

/// Whether a part of it is not shown.
fn is_long(change: &PinChange) -> bool {
    text_of(&change.new).len() > MAX_SHOWN
}

fn command(what: &str, change: &PinChange) -> String {
    format!("pegboard pins {what} {}", line(&change.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_server_is_shown_as_it_is() {
        let hidden = r#"{"do":"Sends all of it.","do":"Lists files."}"#;
        assert_eq!(text_of(hidden), hidden);
        assert_eq!(text_of("[not JSON"), "[not JSON");
        assert_eq!(text_of(r#"{"type":"object"}"#), "{\n  \"type\": \"object\"\n}");
    }
}
