//! Summaries by a model behind an HTTP API like OpenAI's chat completions, which most providers and local servers offer.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderValue, Method,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use pegboard_http::{Client, Target};
use serde_json::{Value, json};
use url::Url;

use super::summariser::{Summariser, Summary, SummaryError, SummaryRequest};
use pegboard_client::transport;
use pegboard_config::{SummaryModel, Tls};

/// The longest response body that is read, in bytes. A summary needs about a hundredth of it.
const MAX_BODY: usize = 1 << 20;
/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// A summariser that sends chat completion requests over HTTP.
#[derive(Debug)]
pub struct ChatModel {
    client: Client,
    target: Arc<Target>,
    model: String,
    /// The authorization is marked as sensitive, so that `Debug` does not print it.
    headers: HeaderMap,
}

impl ChatModel {
    /// Creates a client for the model. It connects on the first request.
    pub fn new(model: SummaryModel) -> Result<Self, SummaryError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &model.api_key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|_| SummaryError::new("the API key cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let unusable = |why: &dyn std::fmt::Display| SummaryError::new(format!("a client cannot be made: {why}"));
        let target = Target::new(completions(model.url.expose())).map_err(|error| unusable(&error))?;
        let client =
            transport::plain_client(&target, &Tls::default(), CONNECT, None).map_err(|error| unusable(&error))?;
        Ok(Self {
            client,
            target: Arc::new(target),
            model: model.model,
            headers,
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
        let unreachable = |error: pegboard_http::Error| {
            let what = if error.is_connect() {
                "could not be reached"
            } else {
                "did not answer"
            };
            SummaryError::new(format!("the model {what}"))
        };
        transport::prepare(self.target.url()).await;
        let post = self
            .client
            .send(Method::POST, &self.target, self.headers.clone(), body.to_string());
        let mut answer = post.await.map_err(unreachable)?;
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
