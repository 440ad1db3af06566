//! [`Form`]: the fields of a form that a page of ours has sent.

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use http::StatusCode;

use crate::{layout, visitor::Visitor, who::FORM_TOKEN};

/// The longest form, in bytes. The arguments of a call are in one.
const MAX_FORM: usize = 1 << 20;

/// The fields of a form, in order.
#[derive(Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a form. Fails with a page that says why it is not taken.
    pub(crate) async fn read(visitor: &Visitor, body: Body) -> Result<Self, Box<Response>> {
        let form = Self::read_any(body).await?;
        match visitor.sent(form.get(FORM_TOKEN)) {
            true => Ok(form),
            false => {
                let words = "The form was not sent by a page of this dashboard, or its session has ended. Go back, load the page again and repeat it.";
                Err(Box::new(layout::problem(
                    StatusCode::FORBIDDEN,
                    "Not taken",
                    words,
                    None,
                )))
            }
        }
    }

    /// Reads a form from any sender.
    pub(crate) async fn read_any(body: Body) -> Result<Self, Box<Response>> {
        let bytes = to_bytes(body, MAX_FORM).await.map_err(|_| {
            let words = "The form is longer than 1 MiB.";
            Box::new(layout::problem(StatusCode::PAYLOAD_TOO_LARGE, "Too long", words, None))
        })?;
        let fields = url::form_urlencoded::parse(&bytes).into_owned();
        Ok(Self(fields.collect()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(field, _)| field == name);
        found.next().map(|(_, value)| value.as_str())
    }
}
