//! Entry points for the benchmarks: a session without the board around it, and single steps of a call. They are not part of the public API and
//! exist only with the feature `bench`.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::{
    event::{Event, EventSender, Events},
    server::Live,
    toolset::Toolset,
};
use pegboard_base::{
    caller::Caller,
    deadline::Deadline,
    name::{self, NameStyle},
    secret::Secret,
};
use pegboard_client::session::{Call, OnBehalf, Patience};
use pegboard_config::Check;
use pegboard_mask::{KnownSecrets, Masking, ServerMasker};
use pegboard_tools::{
    args::{Arguments, CompiledSchemas},
    catalog::Tool,
    provider::Provider,
};

pub use pegboard_client::session::bench_steps::{read_answer, read_tools, write_call};

/// Registers secrets one by one. Returns the length of one of them after masking.
pub fn learn(secrets: usize) -> usize {
    let known = KnownSecrets::default();
    let secret = |number: usize| Secret::new(format!("token-{number:08}-xK9v"));
    (0..secrets).for_each(|number| known.learn([secret(number)]));
    let masker = ServerMasker::new(&Masking::default(), known);
    masker.text(secret(secrets / 2).expose()).len()
}

/// Publishes events to subscribers that read none of them until the end. Returns how many one of them receives.
pub fn ring(count: usize) -> usize {
    const SUBSCRIBERS: usize = 4;
    let events = EventSender::default();
    let mut subscribers: Vec<Events> = (0..SUBSCRIBERS).map(|_| events.subscribe()).collect();
    for number in 0..count {
        events.send(|| Event::CallProgress {
            id: number.to_string(),
            progress: 1.0,
            total: None,
            message: None,
            principal: None,
        });
    }
    drop(events);
    let mut received = 0;
    while let Some(Some(_)) = subscribers.first_mut().and_then(|events| events.next().now_or_never()) {
        received += 1;
    }
    received
}

/// The names of tools for a model of `provider`.
pub fn names(tools: &[Arc<Tool>], provider: Provider) -> Vec<String> {
    let pairs: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| (tool.server.as_str(), tool.name.as_str()))
        .collect();
    name::expose(&pairs, &NameStyle::default(), &provider.name_rules())
}

/// The compiled schemas of tools.
#[derive(Debug, Default)]
pub struct Validators(CompiledSchemas);

/// Whether arguments are valid for the schema of a tool, which is compiled on first use.
pub fn fits(tool: &Tool, arguments: &Arguments, Validators(compiled): &Validators) -> bool {
    let (input, schema) = (&tool.checks.input, tool.input_schema.as_str());
    let checked = input.arguments(arguments, schema, Check::Strict, compiled);
    checked.is_ok_and(|checked| checked.notes.is_empty())
}

/// The session of a tool without the board around it.
#[derive(Debug, Clone)]
pub struct BareSession {
    live: Live,
    tool: Arc<Tool>,
}

impl BareSession {
    /// The session of the tool `name`.
    pub async fn open(tools: &Toolset, name: &str, deadline: Deadline) -> Option<Self> {
        let route = tools.resolve(name, deadline).await?;
        Some(Self {
            live: route.server.ensure_live(deadline).await.ok()?,
            tool: route.tool.clone(),
        })
    }

    /// Calls the tool. Returns the size of its response in bytes.
    pub async fn call(&self, arguments: &Arguments, deadline: Deadline) -> Option<usize> {
        let meta = serde_json::Map::new();
        let call = Call {
            tool: &self.tool,
            arguments: arguments.as_raw(),
            patience: Patience::until(deadline),
            progress: None,
            meta: &meta,
            on_behalf: OnBehalf {
                caller: Caller::new("", "", &meta),
                host: None,
            },
            as_task: false,
            pass_on: Default::default(),
        };
        let result = self.live.session.call(call).await.ok()?;
        Some(
            result
                .content
                .iter()
                .map(pegboard_tools::outcome::Content::payload_bytes)
                .sum(),
        )
    }
}
