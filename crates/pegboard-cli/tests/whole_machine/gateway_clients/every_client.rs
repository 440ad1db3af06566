//! Every client at every door, all at the same time.

use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};

use crate::gateway_clients::{
    client::{self, CLIENTS, Client, Era, Feature, Target},
    command_lines,
    gateway::{Gateway, pegboard},
    plan::Plan,
    processes::{left_with_variable, with_variable},
    scratch::{MARK, Scratch},
};

/// The clients spend most of their time on starting, which takes a core.
const AT_ONCE: usize = 3;

/// One run of one client.
struct Run {
    label: String,
    client: &'static Client,
    era: Era,
    target: Target,
    plan: Plan,
}

impl Run {
    fn new(client: &'static Client, era: Era, door: &str, target: Target, scratch: &Scratch) -> Self {
        let label = format!("{}-{}-{door}", client.name, era.version());
        let folder = scratch.folder(&label);
        let mut plan = match door.strip_prefix("only-") {
            Some(server) => Plan::of_server(server, &label, &folder),
            None => Plan::of_board(&label, &folder),
        };
        if !client.has(&Feature::Questions) {
            plan = plan.without_questions();
        }
        Self {
            label,
            client,
            era,
            target,
            plan,
        }
    }

    /// Returns what went wrong.
    async fn go(self, scratch: Arc<Scratch>) -> Option<String> {
        let Self {
            label,
            client,
            era,
            target,
            plan,
        } = self;
        let file = scratch.home().join(format!("{label}.json"));
        let problems = match client::run(client, era, &target, &plan, &scratch, &file).await {
            Ok(report) => report.differences(&plan, client, era.version()),
            Err(error) => vec![error],
        };
        (!problems.is_empty()).then(|| format!("{label}:\n  {}", problems.join("\n  ")))
    }
}

/// Runs all clients, a few at once, and panics with all that went wrong.
async fn all_succeed(runs: Vec<Run>, scratch: &Arc<Scratch>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for run in runs {
        let (places, scratch) = (places.clone(), scratch.clone());
        running.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            run.go(scratch).await
        });
    }
    let problems: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Each client with each era that it speaks.
fn pairs() -> impl Iterator<Item = (&'static Client, Era)> {
    let modern = CLIENTS.iter().filter(|client| client.has(&Feature::ModernEra));
    let legacy = CLIENTS.iter().map(|client| (client, Era::Legacy));
    legacy.chain(modern.map(|client| (client, Era::Modern)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_lists_and_calls_every_tool_over_http_in_each_era_that_it_speaks() {
    let scratch = Arc::new(Scratch::new());
    let gateway = Gateway::start(&scratch);
    let board = Target::Url(gateway.url("/mcp"));
    let mut runs: Vec<Run> = pairs()
        .map(|(client, era)| Run::new(client, era, "http", board.clone(), &scratch))
        .collect();
    for (client, era) in pairs().filter(|(client, _)| ["python-2", "typescript-2"].contains(&client.name)) {
        let only = Target::Url(gateway.url("/mcp/everything"));
        runs.push(Run::new(client, era, "only-everything", only, &scratch));
    }
    all_succeed(runs, &scratch).await;
    command_lines::succeed(&gateway.url("/mcp"), &scratch).await;

    let servers = gateway.servers();
    assert_eq!(servers.len(), 7, "{servers:#?}");
    for (program, pids) in &servers {
        assert_eq!(pids.len(), 1, "{program} runs in {pids:?}");
    }
    gateway.stop();
    assert_eq!(with_variable(MARK, scratch.home().to_str().unwrap()), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_lists_and_calls_every_tool_over_stdio_and_leaves_no_process() {
    let scratch = Arc::new(Scratch::new());
    let words = |more: &[&str]| {
        let words = [&[pegboard().to_str().unwrap(), "mcp"], more].concat();
        Target::Command(words.into_iter().map(str::to_owned).collect())
    };
    let runs = CLIENTS.iter().map(|client| {
        let era = if client.has(&Feature::ModernEra) {
            Era::Modern
        } else {
            Era::Legacy
        };
        // The Inspector starts the command for each request, so the servers as well.
        if client.name == "inspector" {
            let command = words(&["--server", "time"]);
            return Run::new(client, era, "only-time", command, &scratch);
        }
        let config = scratch.config_file(client.name);
        let command = words(&["--config", config.to_str().unwrap()]);
        Run::new(client, era, "stdio", command, &scratch)
    });
    all_succeed(runs.collect(), &scratch).await;
    assert_eq!(left_with_variable(MARK, scratch.home().to_str().unwrap()).await, []);
}
