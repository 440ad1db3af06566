//! The clients under comparison, behind one interface.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use pegboard::{
    Arguments, Config, Env, Pegboard, ToolCall, Toolset, View,
    bench::BareSession,
    config::{EraChoice, Source},
    deadline::Deadline,
};
use rmcp::{
    RoleClient, ServiceExt,
    model::CallToolRequestParams,
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};

/// The tool to call.
pub const TOOL: &str = "echo_00000";
const PATIENCE: Duration = Duration::from_secs(60);

/// The command or URL of a server.
#[derive(Clone, Debug)]
pub enum Place {
    Command(Vec<String>),
    Url(String),
}

/// A client with all its servers connected and listed.
pub enum Client {
    /// The whole library.
    Board(Pegboard, Toolset, Vec<String>),
    /// The library's sessions, without the board.
    Session(Pegboard, Vec<BareSession>),
    /// The official SDK.
    Sdk(Vec<RunningService<RoleClient, ()>>),
}

impl Client {
    /// Connects and lists all tools. Returns their number.
    pub async fn connect(name: &str, places: &[Place], modern: bool) -> anyhow::Result<(Self, usize)> {
        if name == "rmcp" {
            return sdk(places, modern).await;
        }
        let board = Pegboard::builder(config(places, modern)?).tools_only().open();
        // By default a result that is too long for a model is spilled to disk, which the other clients do not do.
        let view = if name == "whole" {
            View::new().whole_results()
        } else {
            View::new()
        };
        let tools = board.toolset_with(view);
        let listing = tools.list(PATIENCE).await;
        if let Some(down) = listing.unavailable.first() {
            bail!("{} is down: {}", down.server, down.error);
        }
        let count = listing.tools.len();
        let called = listing.tools.iter().filter(|tool| tool.tool.name == TOOL);
        let names: Vec<String> = called.map(|tool| tool.name.clone()).collect();
        if name != "session" {
            return Ok((Self::Board(board, tools, names), count));
        }
        let mut sessions = Vec::new();
        for name in &names {
            let session = BareSession::open(&tools, name, Deadline::within(PATIENCE)).await;
            sessions.push(session.context("the session is gone")?);
        }
        Ok((Self::Session(board, sessions), count))
    }

    /// Calls the tool on server `number`, modulo the number of servers. Returns the number of bytes received.
    pub async fn call(&self, number: usize, bytes: usize) -> anyhow::Result<usize> {
        match self {
            Self::Board(_, tools, names) => {
                let arguments = Arguments::parse(&format!("{{\"n\":{bytes}}}"))?;
                let name = &names[number % names.len()];
                let reply = tools.call(ToolCall::new(name.as_str()).arguments(arguments)).await;
                if reply.is_error() {
                    bail!("{}", reply.text());
                }
                Ok(reply.original_bytes)
            }
            Self::Session(_, sessions) => {
                let arguments = Arguments::parse(&format!("{{\"n\":{bytes}}}"))?;
                let session = &sessions[number % sessions.len()];
                session
                    .call(&arguments, Deadline::within(PATIENCE))
                    .await
                    .context("the call failed")
            }
            Self::Sdk(services) => {
                let arguments = json!({ "n": bytes }).as_object().cloned().unwrap_or_default();
                let params = CallToolRequestParams::new(TOOL).with_arguments(arguments);
                let result = services[number % services.len()].call_tool(params).await?;
                let texts = result.content.iter().filter_map(|block| block.as_text());
                Ok(texts.map(|text| text.text.len()).sum())
            }
        }
    }

    /// Stops the servers.
    pub async fn close(self) {
        match self {
            Self::Board(board, ..) | Self::Session(board, ..) => board.shutdown().await,
            Self::Sdk(services) => {
                for service in services {
                    let _ = service.cancel().await;
                }
            }
        }
    }
}

fn config(places: &[Place], modern: bool) -> anyhow::Result<Config> {
    let server = |place: &Place| match place {
        Place::Command(words) => json!({ "command": words[0], "args": words[1..] }),
        Place::Url(url) => json!({ "type": "http", "url": url }),
    };
    let servers = places.iter().enumerate();
    let servers: serde_json::Map<String, Value> =
        servers.map(|(at, place)| (format!("s{at}"), server(place))).collect();
    let file = std::env::temp_dir().join(format!("pegboard-bench-{}.json", std::process::id()));
    std::fs::write(&file, json!({ "mcpServers": servers }).to_string())?;
    let mut config = Config::load(&[Source::file(&file)], &Env::process()).config;
    remove(&file);
    for server in config.servers.values_mut() {
        server.era = if modern { EraChoice::Modern } else { EraChoice::Legacy };
        server.limits.max_items = 100_000;
        server.limits.max_in_flight = 1024;
    }
    Ok(config)
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
}

async fn sdk(places: &[Place], modern: bool) -> anyhow::Result<(Client, usize)> {
    // The library has its own crypto provider; the SDK's client uses the process's default.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut starts = Vec::new();
    for place in places.iter().cloned() {
        starts.push(tokio::spawn(async move {
            let service = open(place, modern).await?;
            let tools = service.list_all_tools().await?;
            anyhow::Ok((service, tools))
        }));
    }
    let (mut services, mut listed) = (Vec::new(), Vec::new());
    for start in starts {
        let (service, tools) = start.await??;
        services.push(service);
        listed.push(tools);
    }
    let count = listed.iter().map(Vec::len).sum();
    // Kept in memory, because the library keeps its listings too.
    static KEPT: std::sync::Mutex<Vec<Arc<dyn std::any::Any + Send + Sync>>> = std::sync::Mutex::new(Vec::new());
    if let Ok(mut kept) = KEPT.lock() {
        kept.push(Arc::new(listed));
    }
    Ok((Client::Sdk(services), count))
}

async fn open(place: Place, modern: bool) -> anyhow::Result<RunningService<RoleClient, ()>> {
    let version = serde_json::from_value(json!("2026-07-28"))?;
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![version],
    };
    Ok(match place {
        Place::Url(url) => {
            let transport = StreamableHttpClientTransport::from_uri(url);
            if modern {
                ().serve_with_lifecycle(transport, discover).await?
            } else {
                ().serve(transport).await?
            }
        }
        Place::Command(words) => {
            let mut command = tokio::process::Command::new(&words[0]);
            command.args(&words[1..]).stderr(Stdio::null());
            let transport = TokioChildProcess::new(command)?;
            if modern {
                ().serve_with_lifecycle(transport, discover).await?
            } else {
                ().serve(transport).await?
            }
        }
    })
}
