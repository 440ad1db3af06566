//! Keeps secrets of other servers out of the arguments of a call.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::context::CallContext;
use crate::server::Server;
use pegboard_config::OnCrossing;
use pegboard_mask::{Crossed, Crossing};
use pegboard_tools::{
    args::Arguments,
    outcome::{Failure, Kind},
};

/// Returns the arguments to send, or refuses the call, as the server's policy says.
pub(super) fn check<'c>(
    context: &CallContext<'_>,
    arguments: Cow<'c, Arguments>,
    warnings: &mut Vec<String>,
) -> Result<Cow<'c, Arguments>, Failure> {
    let (server, policy) = (context.server(), context.config.policy.crossing);
    if policy == OnCrossing::Allow {
        return Ok(arguments);
    }
    let text = unescape(arguments.as_str());
    let found = match server.masker().find_crossing(&text) {
        Crossing::Clean => return Ok(arguments),
        Crossing::Found(found) => found,
        Crossing::Unknown => return Err(search_failure(server)),
    };
    match policy {
        OnCrossing::Block if !found.owners.is_empty() => Err(crossing_failure(&context.tool_name(), server, &found)),
        OnCrossing::Mask => {
            warnings.push(format!("{} in the arguments was masked", describe(server, &found)));
            let masked: Option<Map<String, Value>> = serde_json::from_str(&found.mask(&text)).ok();
            let masked = masked.ok_or_else(|| search_failure(server))?;
            Ok(Cow::Owned(masked.into()))
        }
        // A secret that belongs to no server, or is an ordinary word, is no reason to refuse a call.
        OnCrossing::Block | OnCrossing::Warn | OnCrossing::Allow => {
            tracing::warn!(server = %server.name(), owners = ?found.owners, "a call sends a secret that is not its server's");
            warnings.push(format!("the arguments contain {}", describe(server, &found)));
            Ok(arguments)
        }
    }
}

/// Refuses a text for a server, such as a URI or the argument of a prompt, that contains a secret of another one. It is not masked, because the
/// server would not understand it.
pub(crate) fn check_text(server: &Server, what: &str, text: &str) -> Result<(), Failure> {
    let policy = server.config().policy.crossing;
    if policy == OnCrossing::Allow {
        return Ok(());
    }
    match server.masker().find_crossing(text) {
        Crossing::Found(found) if policy != OnCrossing::Warn && !found.owners.is_empty() => {
            Err(crossing_failure(what, server, &found))
        }
        Crossing::Found(found) => {
            tracing::warn!(server = %server.name(), owners = ?found.owners, "a request sends a secret that is not its server's");
            Ok(())
        }
        Crossing::Clean => Ok(()),
        Crossing::Unknown => Err(search_failure(server)),
    }
}

/// Like [`check_text`], for the params of a request as JSON text.
pub(crate) fn check_params(server: &Server, method: &str, params: &str) -> Result<(), Failure> {
    check_text(server, method, &unescape(params))
}

fn crossing_failure(what: &str, server: &Server, found: &Crossed) -> Failure {
    let message = format!(
        "`{what}` was not called: its arguments contain {}, which server `{}` must not get. Leave it out.",
        describe(server, found),
        server.name()
    );
    let hint = format!(
        "`crossing` of server `{}` says what happens then: warn, mask, block or allow",
        server.name()
    );
    Failure::new(Kind::NotPermitted, message).hint(hint)
}

fn search_failure(server: &Server) -> Failure {
    let message = "the arguments could not be searched for secrets of other servers, so the call was not made";
    Failure::new(Kind::NotPermitted, message).hint(format!(
        "`crossing = \"allow\"` of server `{}` skips the search",
        server.name()
    ))
}

/// Names the owners, never the secret.
fn describe(server: &Server, found: &Crossed) -> String {
    if found.owners.contains(server.name()) {
        return format!("a secret of another user of server `{}`", server.name());
    }
    let owners: Vec<String> = found.owners.iter().map(|owner| format!("`{owner}`")).collect();
    match owners.as_slice() {
        [] => "a known secret".to_owned(),
        [owner] => format!("a secret of server {owner}"),
        owners => format!("secrets of the servers {}", owners.join(", ")),
    }
}

/// Replaces `\u0061` and `\/` in a JSON text by the characters themselves. Text that is hidden so would not be found.
fn unescape(json: &str) -> Cow<'_, str> {
    let mut escapes = memchr::memchr_iter(b'\\', json.as_bytes());
    if !escapes.any(|at| matches!(json.as_bytes().get(at + 1), Some(b'u' | b'/'))) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (text, len) = escape_at(&rest[at..]);
        out.push_str(&text);
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes the escape at the start of a text, if it can be written without one; returns its length too.
fn escape_at(text: &str) -> (Cow<'_, str>, usize) {
    let unit = |from: usize| {
        let digits = text.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let as_is = |len: usize| (Cow::Borrowed(text.get(..len).unwrap_or(text)), len.min(text.len()));
    match text.as_bytes().get(1) {
        Some(b'/') => (Cow::Borrowed("/"), 2),
        Some(b'u') => {
            let units = [unit(0), unit(6)];
            let units = units.into_iter().map_while(|unit| unit);
            match char::decode_utf16(units).next() {
                Some(Ok(c)) if !c.is_control() && !matches!(c, '"' | '\\') => {
                    (Cow::Owned(c.to_string()), 6 * c.len_utf16())
                }
                _ => as_is(6),
            }
        }
        Some(_) => {
            let len = 1 + text[1..].chars().next().map_or(0, char::len_utf8);
            as_is(len)
        }
        None => as_is(1),
    }
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn text_behind_escapes_is_seen_and_json_stays_json() {
        for (json, want) in [
            (r#"{"a": "\u0067\u0068p_x"}"#, r#"{"a": "ghp_x"}"#),
            (r#"{"\u0067": "a\/b"}"#, r#"{"g": "a/b"}"#),
            (r#"{"a": "\ud83d\ude00 \ud83d x"}"#, r#"{"a": "😀 \ud83d x"}"#),
            (
                r#"{"a": "\u0022\u005c\u000a\n\\u0067"}"#,
                r#"{"a": "\u0022\u005c\u000a\n\\u0067"}"#,
            ),
            (r#"{"a": "\"\u0061"}"#, r#"{"a": "\"a"}"#),
        ] {
            assert_eq!(unescape(json), want);
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(parsed(json), parsed(want), "{json}");
        }
        for broken in ["\\", "\\u", "\\u12", "\\é\\/", "\\u00é0\\/"] {
            let _ = unescape(broken);
        }
    }
}
