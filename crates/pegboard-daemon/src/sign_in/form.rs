//! The form of a page: its fields, and whether a page of ours has sent it.

use axum::body::{Body, to_bytes};
use http::{
    HeaderMap,
    header::{HOST, ORIGIN},
};

/// The longest form, in bytes.
const MAX_FORM: usize = 4096;

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    SignIn,
    /// Sign in, with a client that is registered for it.
    RegisterAnew,
    SignOut,
}

/// A form that a browser has sent.
#[derive(Debug)]
pub(super) struct BrowserForm {
    /// What proves that a page of the visit has sent it.
    pub(super) token: String,
    pub(super) action: Action,
}

impl BrowserForm {
    /// The name of the field with the token.
    pub(super) const TOKEN: &str = "token";
    /// The name of the buttons.
    pub(super) const ACTION: &str = "action";
    pub(super) const SIGN_IN: &str = "sign-in";
    pub(super) const SIGN_IN_ANEW: &str = "sign-in-anew";
    pub(super) const SIGN_OUT: &str = "sign-out";

    /// Reads a form. `None` if it is too long, or none of ours.
    pub(super) async fn read(body: Body) -> Option<Self> {
        let bytes = to_bytes(body, MAX_FORM).await.ok()?;
        let (mut token, mut action) = (None, None);
        for (name, value) in url::form_urlencoded::parse(&bytes) {
            match &*name {
                Self::TOKEN => token = Some(value.into_owned()),
                Self::ACTION if value == Self::SIGN_IN => action = Some(Action::SignIn),
                Self::ACTION if value == Self::SIGN_IN_ANEW => action = Some(Action::RegisterAnew),
                Self::ACTION if value == Self::SIGN_OUT => action = Some(Action::SignOut),
                _ => return None,
            }
        }
        Some(Self {
            token: token?,
            action: action?,
        })
    }
}

/// Whether a request comes from a page under `base`. Browsers name the origin of every form; the token of the form decides about clients that
/// do not.
pub(super) fn is_own_origin(headers: &HeaderMap, base: &str) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else { return false };
    let is_base = url::Url::parse(base).is_ok_and(|base| base.origin().ascii_serialization() == origin);
    // A proxy may pass on the name that the browser has used.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let scheme = base.split("://").next().unwrap_or_default();
    is_base || host.is_some_and(|host| origin == format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_pages_of_this_origin_send_forms() {
        for (origin, is_own) in [
            ("https://mcp.example.com", true),
            ("https://inner:8080", true),
            ("http://mcp.example.com", false),
            ("https://mcp.example.com:8443", false),
            ("https://evil.example", false),
            ("http://localhost:3000", false),
            ("null", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("inner:8080"));
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(
                is_own_origin(&headers, "https://mcp.example.com/base"),
                is_own,
                "{origin}"
            );
        }
        assert!(is_own_origin(&HeaderMap::new(), "https://mcp.example.com"));
    }

    #[tokio::test]
    async fn a_form_has_a_token_and_one_action() {
        let read = async |text: &str| BrowserForm::read(Body::from(text.to_owned())).await;
        let form = read("token=a%2Bb&action=sign-in").await.unwrap();
        assert_eq!((form.token.as_str(), form.action), ("a+b", Action::SignIn));
        assert_eq!(read("action=sign-out&token=x").await.unwrap().action, Action::SignOut);
        for wrong in [
            "",
            "token=x",
            "action=sign-in",
            "token=x&action=delete",
            "token=x&action=sign-in&y=z",
        ] {
            assert!(read(wrong).await.is_none(), "{wrong}");
        }
        assert!(
            read(&format!("action=sign-in&token={}", "x".repeat(MAX_FORM)))
                .await
                .is_none()
        );
    }
}
