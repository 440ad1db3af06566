//! Elicitation: parses a server's request for input from the user, and defines the user's answers.

use pegboard_protocol::code;
use serde_json::{Map, Value};

use super::{callback::ErrorResponse, form::Form, page, password_field::wants_password};

/// The longest message that is shown to a user.
const MAX_MESSAGE: usize = 8 << 10;

/// A server's request for input from the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server's message to the user.
    pub message: String,
    /// The form to fill in, unless the request is for a page.
    pub form: Option<Form>,
    /// The form as the server wrote it: a JSON Schema of a flat object.
    pub schema: Option<Value>,
    /// The URL of a page to visit, in place of a form, in ASCII and without user info. Show it in full and its [host](Elicitation::page_host)
    /// on a line of its own before opening it, and never open it without the user's consent.
    pub url: Option<String>,
    /// The id with which the server notifies us that the user has finished on the page.
    pub id: Option<String>,
}

impl Elicitation {
    /// Parses the params of `elicitation/create`, for tests of a host.
    pub fn read(params: Value) -> Result<Self, String> {
        parse(params, &[], true).map_err(|(_, problem)| problem)
    }

    /// The host of the page, in ASCII: `xn--…` for names in other scripts.
    pub fn page_host(&self) -> Option<String> {
        page::host(self.url.as_deref()?)
    }

    /// Whether the name of the page's host has characters of other scripts, with which it may imitate another name.
    pub fn has_foreign_host(&self) -> bool {
        self.page_host().is_some_and(|host| page::is_foreign(&host))
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitAnswer {
    /// The user filled in the form, or opened the page. Missing fields get the form's defaults.
    Accept(Map<String, Value>),
    /// The user has finished on the page, so the server's notification need not be awaited.
    Finished,
    /// The user declined.
    Decline,
    /// The user dismissed the request.
    Cancel,
}

/// Parses the params of `elicitation/create`. `order` lists the fields of the form in the server's order.
pub(super) fn parse(mut params: Value, order: &[String], allows_urls: bool) -> Result<Elicitation, ErrorResponse> {
    let invalid = |text: &str| (code::INVALID_PARAMS, text.to_owned());
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut message = text("message").ok_or_else(|| invalid("`message` is missing"))?;
    let kept = message.floor_char_boundary(MAX_MESSAGE);
    if kept < message.len() {
        let rest = message.len() - kept;
        message.truncate(kept);
        message.push_str(&format!("\n[{rest} more bytes are left out]"));
    }
    let (url, id) = (text("url"), text("elicitationId"));
    let is_url = match text("mode").as_deref() {
        Some("url") => true,
        Some("form") | None => false,
        Some(_) => return Err(invalid("this client knows the modes `form` and `url`")),
    };
    if is_url {
        if !allows_urls {
            return Err(invalid("this client offers forms only"));
        }
        let url = url.ok_or_else(|| invalid("`url` is missing"))?;
        let url = page::parse_page_url(&url).map_err(invalid)?;
        return Ok(Elicitation {
            message,
            form: None,
            schema: None,
            url: Some(url),
            id,
        });
    }
    let schema = params.get_mut("requestedSchema").map(Value::take);
    let schema = schema.ok_or_else(|| invalid("`requestedSchema` is missing"))?;
    let form = Form::parse(&schema, order).map_err(|problem| (code::INVALID_PARAMS, problem))?;
    if form.fields.iter().any(wants_password) {
        tracing::warn!("a form that asks for a password is refused");
        return Err(invalid(
            "a form must not ask for passwords, keys or tokens; send the user to a page instead (mode `url`)",
        ));
    }
    Ok(Elicitation {
        message,
        form: Some(form),
        schema: Some(schema),
        url: None,
        id: None,
    })
}
