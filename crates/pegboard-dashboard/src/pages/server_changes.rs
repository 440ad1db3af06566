//! `POST /ui/servers/{name}/{change}`: the buttons of a server. They take the paths of the API, with its checks and its records.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    response::Response,
};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::{form::Form, layout, text::segment, ui::Ui, visitor::Visitor};

/// The changes that a page offers, which are the words of the API.
const CHANGES: &[&str] = &["reconnect", "enable", "disable", "refresh", "signin"];

pub(crate) async fn post(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((name, change)): Path<(String, String)>,
    body: Body,
) -> Response {
    if let Err(refused) = Form::read(&visitor, body).await {
        return *refused;
    }
    if !CHANGES.contains(&change.as_str()) {
        let words = "There is no such change of a server.";
        return layout::problem(StatusCode::NOT_FOUND, "Not found", words, None);
    }
    let path = format!("/api/v1/mcp/servers/{}/{change}", segment(&name));
    let reply = ui.api.request(&visitor.caller, Method::POST, &path, &Value::Null).await;
    if !reply.is_success() {
        let (detail, hint) = reply.problem();
        return layout::problem(reply.status, "Not done", &detail, hint.as_deref());
    }
    // The link to the page on which the person signs in, which is one of ours.
    match reply.body["url"].as_str().filter(|_| change == "signin") {
        Some(url) => layout::see_other(&local(url)),
        None => layout::see_other(&format!("/ui/servers/{}", segment(&name))),
    }
}

/// The address of a page of this gateway without its origin: the browser stays at the name under which it has come.
fn local(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        },
        Err(_) => "/signin".to_owned(),
    }
}
