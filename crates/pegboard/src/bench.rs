//! Doors for the benchmarks: a session without all that a board does around it, and single steps of a call. They are no part of the
//! library's interface and exist with the feature `bench` only.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::{
    args::Arguments,
    catalog::Tool,
    config::Check,
    deadline::Deadline,
    event::{Event, EventSender, Events},
    mask::{KnownSecrets, Masking, ServerMasker},
    name::{self, NameStyle},
    provider::Provider,
    secret::Secret,
    server::Live,
    session::{Call, Patience},
    toolset::Toolset,
};

pub use crate::session::bench_steps::{read_answer, read_tools, write_call};

/// Learns so many secrets one after the other and returns how many bytes a text of one of them is masked to.
pub fn learn(secrets: usize) -> usize {
    let known = KnownSecrets::default();
    let secret = |number: usize| Secret::new(format!("token-{number:08}-xK9v"));
    (0..secrets).for_each(|number| known.learn([secret(number)]));
    let masker = ServerMasker::new(&Masking::default(), known);
    masker.text(secret(secrets / 2).expose()).len()
}

/// Rings so many events for listeners that read none of them until the end, and returns how many of them one of these hears.
pub fn ring(count: usize) -> usize {
    const LISTENERS: usize = 4;
    let events = EventSender::default();
    let mut listeners: Vec<Events> = (0..LISTENERS).map(|_| events.listen()).collect();
    for number in 0..count {
        events.send(|| Event::CallProgress {
            id: number.to_string(),
            progress: 1.0,
            total: None,
            message: None,
        });
    }
    drop(events);
    let mut heard = 0;
    while let Some(Some(_)) = listeners.first_mut().and_then(|events| events.next().now_or_never()) {
        heard += 1;
    }
    heard
}

/// Names tools as a model of `provider` calls them.
pub fn names(tools: &[Arc<Tool>], provider: Provider) -> Vec<String> {
    let pairs: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| (tool.server.as_str(), tool.name.as_str()))
        .collect();
    name::expose(&pairs, &NameStyle::default(), &provider.name_rules())
}

/// Whether arguments fit the schema of a tool, which is compiled when it is first asked.
pub fn fits(tool: &Tool, arguments: &Arguments) -> bool {
    let checked = tool
        .checks
        .input
        .arguments(arguments, tool.input_schema.tree(), Check::Strict);
    checked.is_ok_and(|checked| checked.notes.is_empty())
}

/// A tool's session without the board around it.
#[derive(Debug, Clone)]
pub struct BareSession {
    live: Live,
    tool: Arc<Tool>,
}

impl BareSession {
    /// The session of the tool that `name` means.
    pub async fn of(tools: &Toolset, name: &str, deadline: Deadline) -> Option<Self> {
        let (route, _) = tools.route(name, deadline).await.ok()?;
        Some(Self {
            live: route.server.live(deadline).await.ok()?,
            tool: route.tool.clone(),
        })
    }

    /// Calls the tool and returns how many bytes its answer has.
    pub async fn call(&self, arguments: &Arguments, deadline: Deadline) -> Option<usize> {
        let call = Call {
            tool: &self.tool,
            arguments: arguments.as_raw(),
            patience: Patience::until(deadline),
            progress: None,
            meta: &serde_json::Map::new(),
            as_task: false,
        };
        let result = self.live.session.call(call).await.ok()?;
        Some(result.content.iter().map(crate::outcome::Content::payload_bytes).sum())
    }
}
