//! Variables of views in header values: `{{NAME}}` is replaced for each view.

use std::collections::BTreeMap;

use http::HeaderValue;

use super::transport::{Endpoint, Transport};
use crate::secret::Secret;

/// The variable that is the view's name, unless the view sets it.
pub(crate) const SESSION_ID: &str = "SESSION_ID";
/// The variable that is the view's principal.
pub(crate) const PRINCIPAL: &str = "PRINCIPAL";

/// Why a header value is no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadTemplate {
    #[error("a `{{{{` has no closing `}}}}`")]
    Unclosed,
    #[error("a `{{{{…}}}}` does not hold the name of a variable: letters, digits and `_`")]
    Name,
}

/// A header whose value for a view cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header `{0}` cannot be sent with the values of this view's variables")]
pub(crate) struct BadHeader(pub(crate) String);

/// Part of a header value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Literal(&'t str),
    Variable(&'t str),
}

/// Splits a header value into literals and variables.
fn pieces(value: &str) -> Result<Vec<Piece<'_>>, BadTemplate> {
    let mut pieces = Vec::new();
    let mut rest = value;
    while let Some((before, inside)) = rest.split_once("{{") {
        let (name, after) = inside.split_once("}}").ok_or(BadTemplate::Unclosed)?;
        let name = name.trim();
        if !is_name(name) {
            return Err(BadTemplate::Name);
        }
        pieces.extend([Piece::Literal(before), Piece::Variable(name)]);
        rest = after;
    }
    pieces.push(Piece::Literal(rest));
    Ok(pieces)
}

/// Checks that a header value is plain text or a template.
pub(super) fn check(value: &str) -> Result<(), BadTemplate> {
    pieces(value).map(drop)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Replaces the variables once; their values are not searched for others. `None` if one has no value, or the result is empty.
fn filled(value: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let Ok(pieces) = pieces(value) else {
        return Some(value.to_owned());
    };
    let mut text = String::with_capacity(value.len());
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Variable(name) => text.push_str(&lookup(name)?),
        }
    }
    (!text.is_empty()).then_some(text)
}

impl Transport {
    /// Whether a header has a variable for which `is_such` returns `true`.
    pub(crate) fn has_variable(&self, is_such: impl Fn(&str) -> bool) -> bool {
        let Some(endpoint) = self.endpoint() else {
            return false;
        };
        let mut templates = endpoint.headers.values().filter(|value| is_template(value));
        templates.any(|value| {
            let pieces = pieces(value.expose()).unwrap_or_default();
            pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Variable(name) if is_such(name)))
        })
    }

    /// The transport with the variables of its headers replaced. A header is omitted if one of its variables has no value.
    pub(crate) fn filled(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, BadHeader> {
        let mut transport = self.clone();
        if let Self::Auto(endpoint) | Self::Http(endpoint) | Self::Sse(endpoint) | Self::WebSocket(endpoint) =
            &mut transport
        {
            endpoint.headers = filled_headers(endpoint, lookup)?;
        }
        Ok(transport)
    }
}

fn filled_headers(
    endpoint: &Endpoint,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Secret>, BadHeader> {
    let mut headers = BTreeMap::new();
    for (name, value) in &endpoint.headers {
        if !is_template(value) {
            headers.insert(name.clone(), value.clone());
            continue;
        }
        let Some(text) = filled(value.expose(), lookup) else {
            continue;
        };
        if HeaderValue::from_str(&text).is_err() {
            return Err(BadHeader(name.clone()));
        }
        headers.insert(name.clone(), Secret::new(text));
    }
    Ok(headers)
}

fn is_template(value: &Secret) -> bool {
    value.expose().contains("{{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(value: &str) -> Option<String> {
        filled(value, &|name| match name {
            "A" => Some("one".to_owned()),
            "TRICK" => Some("{{A}}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_replaced_once() {
        for (written, want) in [
            ("plain", Some("plain")),
            ("{{A}}", Some("one")),
            ("x-{{ A }}-{{A}}", Some("x-one-one")),
            ("{{TRICK}}", Some("{{A}}")),
            ("{{EMPTY}}", None),
            ("x{{EMPTY}}", Some("x")),
            ("tenant-{{UNSET}}", None),
        ] {
            assert_eq!(fill(written).as_deref(), want, "{written}");
        }
    }

    #[test]
    fn a_template_is_checked() {
        for (written, want) in [
            ("plain } text {", Ok(())),
            ("{{A}} {{ B_2 }}", Ok(())),
            ("{{A", Err(BadTemplate::Unclosed)),
            ("{{A}} {{", Err(BadTemplate::Unclosed)),
            ("{{}}", Err(BadTemplate::Name)),
            ("{{two words}}", Err(BadTemplate::Name)),
        ] {
            assert_eq!(check(written), want, "{written}");
        }
    }
}
