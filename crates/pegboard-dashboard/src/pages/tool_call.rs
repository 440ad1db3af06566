//! `POST /ui/tools/{server}/{tool}`: calls a tool with what a person has written into the form.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    body::Body,
    extract::{Path, State},
    response::Response,
};
use http::Method;
use maud::{Markup, html};
use pegboard::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    tool,
    tool_view::{self, Filled},
};
use crate::{
    form::Form,
    json::pretty,
    layout,
    schema::{Field, Kind, form_fields},
    text::{millis, shown},
    ui::Ui,
    visitor::Visitor,
};

/// The most characters of a result that the page shows. The program that needs more calls the tool itself.
const MAX_SHOWN: usize = 100_000;

/// Numbers the calls of the pages, so that each can be found among the recorded ones.
static NUMBER: AtomicU64 = AtomicU64::new(1);

pub(crate) async fn post(
    State(ui): State<Arc<Ui>>,
    visitor: Visitor,
    Path((server, name)): Path<(String, String)>,
    body: Body,
) -> Response {
    ui.note_visit();
    let form = match Form::read(&visitor, body).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let listed = match tool::find(&ui, &visitor, &server, &name).await {
        Ok(listed) => listed,
        Err(response) => return *response,
    };
    let fields = form_fields(&listed.tool.input_schema.value());
    let value = |field: &Field| form.get(&format!("arg.{}", field.path)).unwrap_or_default().to_owned();
    let mut filled = Filled {
        values: fields.iter().map(|field| (field.path.clone(), value(field))).collect(),
        raw: form.get("raw").unwrap_or_default().trim().to_owned(),
        ..Filled::default()
    };
    match arguments(&fields, &filled) {
        Ok(arguments) => {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let id = format!("dashboard-{}-{number}", Timestamp::now().as_second());
            let call = json!({"name": listed.tool.dotted_name(), "arguments": arguments, "id": id});
            let reply = ui
                .api
                .request(&visitor.caller, Method::POST, "/api/v1/mcp/call", &call)
                .await;
            filled.result = Some(match reply.body.get("outcome") {
                Some(_) => result(&reply.body, link(&ui, &id)),
                None => {
                    let (detail, hint) = reply.problem();
                    refused(&detail, hint.as_deref())
                }
            });
        }
        Err(why) => filled.error = Some(why),
    }
    let page = tool_view::page(&ui, &visitor, &listed, &filled);
    layout::page(&visitor.who(), &page)
}

/// The arguments that the fields mean. Fails with what is wrong.
fn arguments(fields: &[Field], filled: &Filled) -> Result<Value, String> {
    if !filled.raw.is_empty() {
        let value: Value =
            serde_json::from_str(&filled.raw).map_err(|error| format!("The arguments are not JSON: {error}."))?;
        return match value.is_object() {
            true => Ok(value),
            false => Err("The arguments must be a JSON object.".to_owned()),
        };
    }
    let mut arguments = Map::new();
    for field in fields {
        let text = filled.values.get(&field.path).map(String::as_str).unwrap_or_default();
        if let Some(value) = argument(field, text)? {
            arguments.insert(field.path.clone(), value);
        }
    }
    Ok(Value::Object(arguments))
}

/// The value of one field; `None` if it is not set.
fn argument(field: &Field, text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        let is_text = field.is_required && field.kind == Kind::Text;
        return Ok(is_text.then(|| Value::String(String::new())));
    }
    let wrong = |what: &str| format!("`{}` must be {what}.", field.path);
    match &field.kind {
        // Browsers send the ends of lines as CR LF.
        Kind::Text => Ok(Some(text.replace("\r\n", "\n").into())),
        Kind::Number { .. } => serde_json::from_str::<serde_json::Number>(text.trim())
            .map(|number| Some(number.into()))
            .map_err(|_| wrong("a number")),
        Kind::Flag => text
            .parse::<bool>()
            .map(|flag| Some(flag.into()))
            .map_err(|_| wrong("true or false")),
        Kind::Choice(_) | Kind::Json => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| wrong(&format!("JSON: {error}"))),
    }
}

/// The recorded call with this id.
fn link(ui: &Ui, id: &str) -> Option<u64> {
    let calls = ui.api.board().recent_calls().all();
    calls.iter().find(|call| call.id == id).map(|call| call.number)
}

fn refused(detail: &str, hint: Option<&str>) -> Markup {
    html! {
        section.boxed.result role="status" aria-label="Result" {
            p.notice.bad { (shown(detail)) }
            @if let Some(hint) = hint { p.hint { (shown(hint)) } }
        }
    }
}

fn result(reply: &Value, number: Option<u64>) -> Markup {
    let outcome = &reply["outcome"];
    let is_error = reply["is_error"] == true;
    let text = reply["text"].as_str().unwrap_or_default();
    let cut = text.floor_char_boundary(MAX_SHOWN);
    let took = outcome["latency_ms"].as_f64().unwrap_or_default();
    html! {
        section.boxed.result role="status" aria-label="Result" {
            div.line {
                (layout::outcome(outcome["kind"].as_str().unwrap_or("unknown"), is_error))
                span { (millis(took)) }
                @if let Some(number) = number { a href={ "/ui/calls/" (number) } { "Where the time went" } }
                @if reply["untrusted"] == true { span.soft { "text of a server that the config does not trust" } }
            }
            pre tabindex="0" { (shown(&text[..cut])) @if cut < text.len() { "\n…" } }
            @if !reply["structured"].is_null() {
                details { summary { "Structured result" } pre tabindex="0" { code { (shown(&pretty(&reply["structured"]))) } } }
            }
            @if let Some(hint) = reply["hint"].as_str() { p.hint { (shown(hint)) } }
            @for warning in reply["warnings"].as_array().into_iter().flatten() { p.hint { (shown(warning.as_str().unwrap_or_default())) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str, kind: Kind, is_required: bool) -> Field {
        Field {
            path: path.to_owned(),
            kind,
            type_text: String::new(),
            is_required,
            description: None,
            default: None,
        }
    }

    fn read(kind: Kind, is_required: bool, text: &str) -> Result<Option<Value>, String> {
        argument(&field("x", kind, is_required), text)
    }

    #[test]
    fn what_a_person_writes_becomes_the_type_that_the_schema_says() {
        let number = Kind::Number { is_integer: true };
        assert_eq!(read(Kind::Text, false, ""), Ok(None));
        assert_eq!(read(Kind::Text, true, ""), Ok(Some(json!(""))));
        assert_eq!(read(Kind::Text, false, "a\r\nb"), Ok(Some(json!("a\nb"))));
        assert_eq!(read(number.clone(), true, " 12 "), Ok(Some(json!(12))));
        assert_eq!(read(number.clone(), true, ""), Ok(None));
        assert_eq!(read(Kind::Flag, false, "true"), Ok(Some(json!(true))));
        assert_eq!(
            read(Kind::Choice(vec![json!("a")]), false, "\"a\""),
            Ok(Some(json!("a")))
        );
        assert_eq!(read(Kind::Json, false, "[1]"), Ok(Some(json!([1]))));
        assert!(read(number, true, "many").unwrap_err().contains("`x` must be a number"));
        assert!(read(Kind::Json, false, "[").unwrap_err().contains("`x` must be JSON"));
    }

    #[test]
    fn arguments_as_json_count_in_place_of_the_fields() {
        let fields = [field("x", Kind::Text, true)];
        let with = |raw: &str| {
            arguments(
                &fields,
                &Filled {
                    raw: raw.to_owned(),
                    ..Filled::default()
                },
            )
        };
        assert_eq!(with(r#"{"y": 1}"#), Ok(json!({"y": 1})));
        assert_eq!(with(""), Ok(json!({"x": ""})));
        assert!(with("[1]").is_err() && with("{").is_err());
    }
}
