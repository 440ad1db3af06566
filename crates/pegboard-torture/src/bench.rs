//! [`Bench`]: what a case works with, and [`Survey`]: what the server offers in one era.

use std::time::Duration;

use pegboard_base::sync::Mutex;
use pegboard_protocol::Era;
use serde_json::{Value, json};

use super::{
    client::Client,
    stop::{Stop, fail, skip},
    transcript::Transcript,
    wire::Target,
};

/// How many pages of a list are read.
const MAX_PAGES: usize = 100;

/// What a case works with. Every case has its own.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) target: &'a Target,
    pub(super) era: Era,
    pub(super) survey: &'a Survey,
    /// How long a response may take.
    pub(super) wait: Duration,
    pub(super) transcript: Transcript,
    advice: Mutex<Vec<String>>,
}

/// What the server offers in one era.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) greeting: Value,
    pub(super) tools: Vec<Value>,
    /// The tools that may be called.
    pub(super) callable: Vec<Value>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(target: &'a Target, era: Era, survey: &'a Survey, wait: Duration) -> Self {
        Self {
            target,
            era,
            survey,
            wait,
            transcript: Transcript::default(),
            advice: Mutex::default(),
        }
    }

    /// A connection on which nothing was sent yet.
    pub(super) async fn connect(&self) -> Result<Client, Stop> {
        Client::connect(self.target, self.era, self.wait, self.transcript.clone()).await
    }

    /// An open session.
    pub(super) async fn session(&self) -> Result<Client, Stop> {
        let mut client = self.connect().await?;
        client.open().await?;
        Ok(client)
    }

    /// Notes something that the specification recommends and the server does not do. It does not fail the case.
    pub(super) fn advise(&self, text: impl Into<String>) {
        self.advice.lock().push(text.into());
    }

    pub(super) fn into_advice(self) -> Vec<String> {
        self.advice.into_inner()
    }

    /// Skips the case unless the server declares a capability.
    pub(super) fn needs(&self, capability: &str) -> Result<(), Stop> {
        match self.has(capability) {
            true => Ok(()),
            false => skip(format!("the server does not declare `{capability}`")),
        }
    }

    pub(super) fn has(&self, capability: &str) -> bool {
        self.survey
            .greeting
            .pointer(&format!("/capabilities/{capability}"))
            .is_some()
    }

    /// The tools that may be called; skips the case if there are none.
    pub(super) fn callable_tools(&self) -> Result<&'a [Value], Stop> {
        match self.survey.callable.as_slice() {
            [] if self.survey.tools.is_empty() => skip("the server has no tools"),
            [] => skip("no tool is declared read-only; name one with --tool"),
            tools => Ok(tools),
        }
    }
}

/// Reads all pages of a list.
pub(super) async fn pages(client: &mut Client, method: &str, key: &str) -> Result<Vec<Vec<Value>>, Stop> {
    let mut pages = Vec::new();
    let mut cursors: Vec<Value> = Vec::new();
    loop {
        let params = match cursors.last() {
            None => json!({}),
            Some(cursor) => json!({"cursor": cursor}),
        };
        let mut result = client.request(method, params).await?.result(method)?;
        let Some(Value::Array(items)) = result.get_mut(key).map(Value::take) else {
            return fail(format!("the result of `{method}` has no list `{key}`"));
        };
        pages.push(items);
        match result.get_mut("nextCursor").map(Value::take) {
            None | Some(Value::Null) => return Ok(pages),
            Some(Value::String(cursor)) if cursors.iter().any(|known| *known == cursor) => {
                return fail(format!(
                    "`{method}` returns the cursor {cursor:?} twice, so the list never ends"
                ));
            }
            Some(cursor @ Value::String(_)) if pages.len() < MAX_PAGES => cursors.push(cursor),
            Some(Value::String(_)) => return fail(format!("`{method}` has more than {MAX_PAGES} pages")),
            Some(_) => return fail(format!("`nextCursor` of `{method}` is not a string")),
        }
    }
}
