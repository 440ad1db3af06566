//! The clients of the example: they use the service as two users, disconnect during a call, and stop the service during another.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::upstream::Upstream;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(url: &str, upstream: &Upstream, stop: &CancellationToken) -> anyhow::Result<()> {
    // This build of reqwest leaves the choice of the TLS crypto provider to the program. It may be installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client {
        http: reqwest::Client::new(),
        url: url.to_owned(),
    };

    // Each user gets an answer for their own token.
    for (user, notes) in [("ann", "water the plants"), ("bob", "call the bank")] {
        let (code, text) = client.call(user, "list_notes").await?;
        println!("{user}: {code} {text}");
        ensure!(code == 200 && text == notes, "{user} must see their own notes");
    }
    // Eve may use the service but has no token, and strangers may not use it.
    let (code, text) = client.call("eve", "list_notes").await?;
    println!("eve: {code} {text}");
    ensure!(
        code != 200 && text.contains("eve has not connected their notes"),
        "{text}"
    );
    let (code, text) = client.call("nobody", "list_notes").await?;
    println!("a stranger: {code} {text}");
    ensure!(code == 401);

    // A client that disconnects cancels its call at the upstream server.
    let watching = client.start("ann", "watch_notes");
    timeout(PATIENCE, upstream.calls.started.notified()).await?;
    watching.abort();
    timeout(PATIENCE, upstream.calls.cancelled.notified())
        .await
        .context("the call was not cancelled")?;
    println!("ann disconnected, and her call was cancelled upstream");

    // A service that is stopped completes the requests in flight.
    let watching = client.start("bob", "watch_notes");
    timeout(PATIENCE, upstream.calls.started.notified()).await?;
    stop.cancel();
    upstream.calls.new_notes.notify_waiters();
    let (code, text) = timeout(PATIENCE, watching).await???;
    println!("bob, during the shutdown: {code} {text}");
    ensure!(code == 200 && text == "a new note");
    Ok(())
}

#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    /// Calls a tool as a user: the status code, and the result or the error.
    async fn call(&self, user: &str, tool: &str) -> anyhow::Result<(u16, String)> {
        let request = self.http.post(format!("{}/tools/{tool}", self.url));
        let session = format!("Bearer {user}-session");
        let response = request.header("authorization", session).body("{}").send().await?;
        let code = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await?)?;
        let text = body["result"].as_str().or(body["error"].as_str());
        Ok((code, text.context("neither result nor error")?.to_owned()))
    }

    fn start(&self, user: &'static str, tool: &'static str) -> JoinHandle<anyhow::Result<(u16, String)>> {
        let client = self.clone();
        tokio::spawn(async move { client.call(user, tool).await })
    }
}
