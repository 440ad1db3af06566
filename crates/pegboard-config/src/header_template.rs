//! Variables of views in header values: `{{NAME}}` is replaced for each view.

use std::collections::BTreeMap;

use http::HeaderValue;

use super::{
    session_cleanup,
    transport::{Endpoint, Transport},
    view_template::{BadTemplate, Piece, pieces},
};
use pegboard_base::secret::Secret;

/// The variable that is the view's name, unless the view sets it.
pub const SESSION_ID: &str = "SESSION_ID";
/// The variable that is the view's principal.
pub const PRINCIPAL: &str = "PRINCIPAL";

/// A header whose value for a view cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("header `{0}` cannot be sent with the values of this view's variables")]
pub struct BadHeader(pub(crate) String);

/// Checks that a header value is plain text or a template.
pub(super) fn check(value: &str) -> Result<(), BadTemplate> {
    pieces(value).map(drop)
}

/// Replaces the variables once; their values are not searched for others. `None` if one has no value, or the result is empty.
fn fill_value(value: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
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
    #[doc(hidden)]
    pub fn has_variable(&self, is_such: impl Fn(&str) -> bool) -> bool {
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

    /// The transport with the variables of its headers and of its URL for cleanup replaced. Each is omitted if one of its variables has no value.
    #[doc(hidden)]
    pub fn fill_variables(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, BadHeader> {
        let mut transport = self.clone();
        if let Self::Remote { endpoint, .. } = &mut transport {
            endpoint.headers = fill_headers(endpoint, lookup)?;
            let cleanup = endpoint.session_cleanup_url.take();
            endpoint.session_cleanup_url = cleanup.and_then(|url| session_cleanup::fill(&url, lookup));
        }
        Ok(transport)
    }
}

fn fill_headers(
    endpoint: &Endpoint,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Secret>, BadHeader> {
    let mut headers = BTreeMap::new();
    for (name, value) in &endpoint.headers {
        if !is_template(value) {
            headers.insert(name.clone(), value.clone());
            continue;
        }
        let Some(text) = fill_value(value.expose(), lookup) else {
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
        fill_value(value, &|name| match name {
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
