//! What the tests say to a board and hear from it.

use std::sync::{Arc, Mutex};

use pegboard::{
    Answer, Arguments, Config, ElicitAnswer, Elicitation, Era, Host, Outcome, Pegboard, Progress, Reply, ServerConfig,
    ServerName, ServerStatus, ToolCall, Toolset,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// The names that models see, in order, of a board whose servers must all be there.
pub(crate) async fn listed(tools: &Toolset) -> Vec<String> {
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:#?}", listing.unavailable);
    // Servers of one SDK have tools of one name, and it is right to say so.
    let is_odd = |warning: &&String| !warning.contains("have the same name");
    let odd: Vec<_> = listing.warnings.iter().filter(is_odd).collect();
    assert!(odd.is_empty(), "{odd:?}");
    listing.tools.into_iter().map(|tool| tool.name).collect()
}

/// The names of `tools` as models see them when they are those of server `fx`.
pub(crate) fn of_fx(tools: &[&str]) -> Vec<String> {
    tools.iter().map(|tool| format!("fx__{tool}")).collect()
}

/// The answer of a tool that must do its work.
pub(crate) async fn answer(tools: &Toolset, tool: &str, arguments: Value) -> Answer {
    done(call(tools, tool, arguments).await)
}

pub(crate) fn done(reply: Reply) -> Answer {
    match reply.outcome {
        Outcome::Done(answer) => answer,
        other => panic!("{} did not do its work: {other:#?}", reply.name),
    }
}

/// The text of a tool that must do its work.
pub(crate) async fn text(tools: &Toolset, tool: &str, arguments: Value) -> String {
    answer(tools, tool, arguments).await.text()
}

/// The text of a tool that must say that it failed.
pub(crate) async fn complaint(tools: &Toolset, tool: &str, arguments: Value) -> String {
    let reply = call(tools, tool, arguments).await;
    match reply.outcome {
        Outcome::ToolFailed(answer) => answer.text(),
        other => panic!("{tool} did not fail: {other:#?}"),
    }
}

/// Why arguments do not fit what a tool says about itself: they never reach its server.
pub(crate) async fn misfit(tools: &Toolset, tool: &str, arguments: Value) -> String {
    let reply = call(tools, tool, arguments).await;
    ended_as(&reply, pegboard::Kind::InvalidArguments, false);
    reply.text()
}

/// The steps that a tool tells while it works, and its text in the end.
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

/// What the board says about one of its servers.
pub(crate) fn status(board: &Pegboard, server: &str) -> ServerStatus {
    let servers = board.status().servers;
    let found = servers.into_iter().find(|status| status.name.as_str() == server);
    found.expect("a server of the board")
}

/// The era and version that server `fx` is spoken to in.
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

/// A user whose answer to every question is prepared, and who remembers the questions.
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

    /// The questions so far: who asked, and what.
    pub(crate) fn asked(&self) -> Vec<(String, Elicitation)> {
        self.asked.lock().unwrap().clone()
    }

    /// A board with one server, `fx`, that can ask this user.
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
        server: &'a ServerName,
        request: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        self.asked.lock().unwrap().push((server.to_string(), request));
        Box::pin(std::future::ready(self.answer.clone()))
    }
}
