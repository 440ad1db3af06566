//! Calls, listings and assertions for boards over peers, and a user with prepared answers.

use std::sync::Arc;

use pegboard::{
    Answer, Arguments, Config, Host, Outcome, Pegboard, Reply, ServerConfig, ToolCall, Toolset,
    host::{ElicitAnswer, Elicitation, HostContext},
    status::{Era, ServerStatus},
    watch::Progress,
};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// The names that models see, in order. All servers must be available.
pub(crate) async fn listed(tools: &Toolset) -> Vec<String> {
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:#?}", listing.unavailable);
    // Servers of one SDK have tools of the same name, and the warning about that is right.
    let is_odd = |warning: &&String| !warning.contains("have the same name");
    let odd: Vec<_> = listing.warnings.iter().filter(is_odd).collect();
    assert!(odd.is_empty(), "{odd:?}");
    listing.tools.into_iter().map(|tool| tool.name).collect()
}

/// The names of `tools` as models see them for server `fx`.
pub(crate) fn of_fx(tools: &[&str]) -> Vec<String> {
    tools.iter().map(|tool| format!("fx__{tool}")).collect()
}

/// Calls a tool that must succeed, and returns its answer.
pub(crate) async fn answer(tools: &Toolset, tool: &str, arguments: Value) -> Answer {
    done(call(tools, tool, arguments).await)
}

pub(crate) fn done(reply: Reply) -> Answer {
    match reply.outcome {
        Outcome::Done(answer) => answer,
        other => panic!("{} did not do its work: {other:#?}", reply.name),
    }
}

/// Calls a tool that must succeed, and returns its text.
pub(crate) async fn text(tools: &Toolset, tool: &str, arguments: Value) -> String {
    answer(tools, tool, arguments).await.text()
}

/// Calls a tool that must fail, and returns its text.
pub(crate) async fn complaint(tools: &Toolset, tool: &str, arguments: Value) -> String {
    let reply = call(tools, tool, arguments).await;
    match reply.outcome {
        Outcome::ToolFailed(answer) => answer.text(),
        other => panic!("{tool} did not fail: {other:#?}"),
    }
}

/// Calls a tool with invalid arguments, which never reach its server, and returns the error.
pub(crate) async fn misfit(tools: &Toolset, tool: &str, arguments: Value) -> String {
    let reply = call(tools, tool, arguments).await;
    assert_outcome(&reply, pegboard::Kind::InvalidArguments, false);
    reply.text()
}

/// The progress notifications of a tool, and its final text.
pub(crate) async fn steps(tools: &Toolset, tool: &str, arguments: Value) -> (Vec<(f64, Option<f64>)>, String) {
    let (sink, mut steps) = mpsc::channel::<Progress>(64);
    let arguments = Arguments::try_from(arguments).unwrap();
    let reply = tools
        .call(ToolCall::new(tool).arguments(arguments).progress(sink))
        .await;
    let mut told = Vec::new();
    while let Ok(step) = steps.try_recv() {
        told.push((step.progress, step.total));
    }
    (told, done(reply).text())
}

/// Each of `count` steps, in order.
pub(crate) fn counted(count: u8) -> Vec<(f64, Option<f64>)> {
    (1..=count)
        .map(|step| (f64::from(step), Some(f64::from(count))))
        .collect()
}

/// The status of one server.
pub(crate) fn status(board: &Pegboard, server: &str) -> ServerStatus {
    let servers = board.status().servers;
    let found = servers.into_iter().find(|status| status.name.as_str() == server);
    found.expect("a server of the board")
}

/// The era and version that are negotiated with server `fx`.
pub(crate) fn spoken(board: &Pegboard) -> (Era, String) {
    let status = status(board, "fx");
    (status.era.unwrap(), status.protocol_version.unwrap())
}

pub(crate) fn handshake() -> (Era, String) {
    (Era::Legacy, "2025-11-25".to_owned())
}

pub(crate) fn no_handshake() -> (Era, String) {
    (Era::Modern, "2026-07-28".to_owned())
}

/// A user with prepared answers who records the requests.
#[derive(Debug, Clone)]
pub(crate) struct User {
    answer: ElicitAnswer,
    asked: Arc<Mutex<Vec<(String, Elicitation)>>>,
}

impl User {
    pub(crate) fn called_ada() -> Self {
        let form = json!({"name": "Ada"});
        Self::who(ElicitAnswer::Accept(form.as_object().unwrap().clone()))
    }

    pub(crate) fn who(answer: ElicitAnswer) -> Self {
        Self {
            answer,
            asked: Arc::default(),
        }
    }

    /// The requests so far: the server, and the request.
    pub(crate) fn asked(&self) -> Vec<(String, Elicitation)> {
        self.asked.lock().clone()
    }

    /// A board with one server, `fx`, and this user as host.
    pub(crate) fn board(&self, server: ServerConfig) -> Pegboard {
        let mut config = Config::default();
        config.servers.insert(name("fx"), server);
        Pegboard::builder(config).host(self.clone()).open()
    }
}

impl Host for User {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        context: HostContext<'a>,
        request: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        self.asked.lock().push((context.server.to_string(), request));
        Box::pin(std::future::ready(self.answer.clone()))
    }
}
