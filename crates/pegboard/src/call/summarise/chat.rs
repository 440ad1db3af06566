//! Summaries by a model behind an HTTP API like OpenAI's chat completions, which most providers and local servers offer.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use super::summariser::{Summariser, Summary, SummaryError, SummaryRequest};
use pegboard_client::transport;
use pegboard_config::SummaryModel;

/// The longest response body that is read, in bytes. A summary needs about a hundredth of it.
const MAX_BODY: usize = 1 << 20;
/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// A summariser that sends chat completion requests over HTTP.
#[derive(Debug)]
pub struct ChatModel {
    client: reqwest::Client,
    url: Url,
    model: String,
    /// Marked as sensitive, so that `Debug` does not print it.
    authorization: Option<HeaderValue>,
}

impl ChatModel {
    /// Creates a client for the model. It connects on the first request.
    pub fn new(model: SummaryModel) -> Result<Self, SummaryError> {
        let authorization = match &model.api_key {
            None => None,
            Some(key) => {
                let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                    .map_err(|_| SummaryError::new("the API key cannot be sent in a header"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let client = transport::plain_client(model.url.expose(), CONNECT)
            .map_err(|error| SummaryError::new(format!("a client cannot be made: {error}")))?;
        Ok(Self {
            client,
            url: completions(model.url.expose()),
            model: model.model,
            authorization,
        })
    }

    async fn ask(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        let body = json!({
            "model": self.model,
            "max_tokens": request.max_tokens,
            "stream": false,
            "messages": [
                {"role": "system", "content": request.system_prompt()},
                {"role": "user", "content": request.user_prompt()},
            ],
        });
        let mut post = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        if let Some(authorization) = &self.authorization {
            post = post.header(AUTHORIZATION, authorization.clone());
        }
        // A client error may contain the URL with secrets in it.
        let unreachable = |error: reqwest::Error| {
            let what = if error.is_connect() {
                "could not be reached"
            } else {
                "did not answer"
            };
            SummaryError::new(format!("the model {what}"))
        };
        transport::prepare(&self.url).await;
        let mut answer = post.send().await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(SummaryError::new(format!(
                "the model answered with HTTP {}",
                answer.status().as_u16()
            )));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > MAX_BODY {
                return Err(SummaryError::new("the model's answer is longer than a megabyte"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Value =
            serde_json::from_slice(&bytes).map_err(|_| SummaryError::new("the model's answer is not JSON"))?;
        text_of(&answer["choices"][0]["message"]["content"])
            .ok_or_else(|| SummaryError::new("the model's answer has no text"))
    }
}

impl Summariser for ChatModel {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        Box::pin(self.ask(request))
    }
}

/// The text of a message, which is a string or a list of parts.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The URL of `chat/completions` below the base URL of an API.
fn completions(base: &Url) -> Url {
    let mut url = base.clone();
    let path = url.path().trim_end_matches('/');
    if !path.ends_with("/chat/completions") {
        let path = format!("{path}/chat/completions");
        url.set_path(&path);
    }
    url
}

#[cfg(test)]
mod tests;
