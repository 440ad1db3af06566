//! A client of the model's HTTP API: one request per turn. The model itself is scripted.

use pegboard_testkit::{ModelHandle, ScriptedModel};
use serde_json::{Value, json};

pub(crate) struct Model {
    server: ModelHandle,
    client: reqwest::Client,
}

impl Model {
    pub(crate) async fn open(script: ScriptedModel) -> anyhow::Result<Self> {
        // This build of reqwest leaves the choice of the TLS crypto provider to the program. It may be installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            server: script.serve().await?,
            client: reqwest::Client::new(),
        })
    }

    /// The model's next message, given the conversation and the tools.
    pub(crate) async fn say(&self, messages: &[Value], tools: &[Value]) -> anyhow::Result<Value> {
        let mut body = json!({"model": "scripted", "messages": messages});
        if !tools.is_empty() {
            body["tools"] = tools.into();
        }
        let url = format!("{}/chat/completions", self.server.url());
        let request = self.client.post(url).header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await?.error_for_status()?;
        let mut response: Value = serde_json::from_slice(&response.bytes().await?)?;
        Ok(response["choices"][0]["message"].take())
    }
}
