//! [`Accepts`]: the content types that a client accepts.

use http::{HeaderMap, StatusCode, header::ACCEPT};

use super::response::{HttpResponse, problem};

/// What nearly all clients send.
const USUAL: &str = "application/json, text/event-stream";

/// The content types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Parses `Accept`. A client without the header accepts JSON.
    pub(super) fn parse(headers: &HeaderMap) -> Self {
        if headers.get(ACCEPT).is_some_and(|accept| accept == USUAL) {
            return Self {
                json: true,
                events: true,
            };
        }
        let mut accepts = Self {
            json: !headers.contains_key(ACCEPT),
            events: false,
        };
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for kind in values.flat_map(|value| value.split(',')) {
            let mut params = kind.split(';').map(str::trim);
            let kind = params.next().unwrap_or_default();
            if params.any(|param| matches!(param, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                continue;
            }
            let is = |known: &[&str]| known.iter().any(|known| kind.eq_ignore_ascii_case(known));
            accepts.json |= is(&["application/json", "application/*", "*/*"]);
            accepts.events |= is(&["text/event-stream", "text/*", "*/*"]);
        }
        accepts
    }

    /// The response to a client that accepts nothing in which a message can be answered.
    pub(super) fn refuse_post(self) -> Option<HttpResponse> {
        let detail = "accept application/json and text/event-stream";
        (!self.json && !self.events).then(|| problem(StatusCode::NOT_ACCEPTABLE, detail))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn accept_is_read_like_http_says() {
        for (accept, json, events) in [
            ("application/json, text/event-stream", true, true),
            ("application/json;q=0.9", true, false),
            ("Application/JSON, text/event-stream;q=0", true, false),
            ("text/event-stream", false, true),
            ("*/*", true, true),
            ("text/*", false, true),
            ("text/html", false, false),
            ("", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(Accepts::parse(&headers), Accepts { json, events }, "{accept}");
        }
        let none = Accepts::parse(&HeaderMap::new());
        assert_eq!(
            none,
            Accepts {
                json: true,
                events: false
            }
        );
    }
}
