//! One line of the access log, as text or as a JSON object.

use std::fmt::Write as _;

use pegboard::Timestamp;
use pegboard_gateway::AccessRecord;
use serde_json::{Map, Value};

use crate::{
    logging::LogLines,
    output::{clean, moment},
};

/// The event of these lines in JSON.
const EVENT: &str = "access";

/// Appends the line of a request. What its client wrote cannot pass for something else.
pub(super) fn write(text: &mut String, record: &AccessRecord, form: LogLines) {
    match form {
        LogLines::Json => write_json(text, record),
        LogLines::Dated => write_text(text, record, true),
        LogLines::Sentences => write_text(text, record, false),
    }
    text.push('\n');
}

fn time(at: Timestamp) -> String {
    moment(at, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

fn write_json(text: &mut String, record: &AccessRecord) {
    let mut line = Map::new();
    let mut add = |name: &str, value: Value| {
        if !value.is_null() {
            line.insert(name.to_owned(), value);
        }
    };
    add("time", time(record.at).into());
    add("level", "info".into());
    add("event", EVENT.into());
    add("request_id", record.request_id.as_str().into());
    add("trace_id", record.trace_id.as_deref().into());
    add("principal", shown(record.principal.as_ref().map(|one| one.as_str())));
    add("http_method", shown(Some(&record.http_method)));
    add("path", shown(Some(&record.path)));
    add("method", shown(record.method.as_deref()));
    add("tool", shown(record.tool.as_deref()));
    add("status", record.status.into());
    add("failure", record.failure.as_deref().into());
    add("received_bytes", record.received.into());
    add("sent_bytes", record.sent.into());
    add("cut", if record.is_cut { true.into() } else { Value::Null });
    add("duration_ms", (record.took.as_micros() as f64 / 1000.0).into());
    add("peer", record.peer.map(|peer| peer.to_string()).into());
    add("user_agent", shown(record.agent.as_deref()));
    add("session", record.session.as_deref().into());
    text.push_str(&Value::Object(line).to_string());
}

/// A text of a client, with control characters and invisible ones written out.
fn shown(text: Option<&str>) -> Value {
    text.map(|text| clean(text).into_owned()).into()
}

fn write_text(text: &mut String, record: &AccessRecord, has_time: bool) {
    if has_time {
        text.push_str(&time(record.at));
        text.push(' ');
    }
    // A string takes everything.
    let _ = write!(text, "access: {} {}", word(&record.http_method), word(&record.path));
    for said in [&record.method, &record.tool].into_iter().flatten() {
        let _ = write!(text, " {}", word(said));
    }
    let _ = write!(
        text,
        " {} {:.1}ms received={} sent={} request={}",
        record.status,
        record.took.as_micros() as f64 / 1000.0,
        record.received,
        record.sent,
        word(&record.request_id),
    );
    let peer = record.peer.map(|peer| peer.to_string());
    for (name, value) in [
        ("failure", record.failure.as_deref()),
        ("principal", record.principal.as_ref().map(|one| one.as_str())),
        ("peer", peer.as_deref()),
        ("session", record.session.as_deref()),
        ("trace", record.trace_id.as_deref()),
        ("agent", record.agent.as_deref()),
    ] {
        if let Some(value) = value {
            let _ = write!(text, " {name}={}", word(value));
        }
    }
    if record.is_cut {
        text.push_str(" cut");
    }
}

/// A text as one word: in quotes if it could pass for another field.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '=');
    // A status is a number, and `cut` says that the response was.
    let is_field = text == "cut" || text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_field && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("{:?}", clean(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_writes_is_one_word() {
        for (text, shown) in [
            ("tools/call", "tools/call"),
            ("", "\"\""),
            ("principal=admin", "\"principal=admin\""),
            ("200", "\"200\""),
            ("cut", "\"cut\""),
            ("a b", "\"a b\""),
            ("x principal=root", "\"x principal=root\""),
            ("a\"b", "\"a\\\"b\""),
        ] {
            assert_eq!(word(text), shown);
        }
        for odd in ["a\nb", "a\u{1b}[2J", "a\u{202e}b"] {
            let word = word(odd);
            assert!(word.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{word}");
        }
    }
}
