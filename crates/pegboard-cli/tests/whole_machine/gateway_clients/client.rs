//! The clients, and one run of one of them.

use std::{path::Path, process::Stdio, time::Duration};

use crate::gateway_clients::{
    plan::Plan,
    report::Report,
    rmcp_client,
    scratch::{Scratch, node, peers, source},
};

/// Longer than the limit that the programs set themselves, so that theirs says what took so long.
const PATIENCE: Duration = Duration::from_secs(150);

/// A third-party client, and what it cannot do.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: &'static str,
    program: Program,
    lacks: &'static [Feature],
}

/// What most clients can do.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Feature {
    ModernEra,
    /// Its user can be asked a question.
    Questions,
    Progress,
    Prompts,
    /// It tells on every transport which version of the protocol it negotiated.
    Version,
}

#[derive(Debug)]
enum Program {
    /// A program of `tests/peers/clients`: the environment and the file.
    Python(&'static str, &'static str),
    Node(&'static str),
    /// The official Rust SDK, in this process.
    Rmcp,
}

/// All clients.
pub(crate) const CLIENTS: &[Client] = {
    use Feature::{ModernEra, Progress, Prompts, Questions, Version};
    use Program::{Node, Python, Rmcp};
    &[
        Client::new("python-2", Python("python-modern", "python_client.py"), &[]),
        Client::new("python-1", Python("python-legacy", "python_client.py"), &[ModernEra]),
        Client::new("fastmcp", Python("python-modern", "fastmcp_client.py"), &[]),
        Client::new("typescript-2", Node("typescript_client.mjs"), &[]),
        Client::new("typescript-1", Node("sdk_client.mjs"), &[ModernEra]),
        Client::new("rmcp", Rmcp, &[]),
        Client::new("inspector", Node("inspector_client.mjs"), &[Questions, Progress]),
        Client::new(
            "mcporter",
            Node("mcporter_client.mjs"),
            &[ModernEra, Questions, Progress, Prompts, Version],
        ),
    ]
};

impl Client {
    const fn new(name: &'static str, program: Program, lacks: &'static [Feature]) -> Self {
        Self { name, program, lacks }
    }

    pub(crate) fn has(&self, feature: &Feature) -> bool {
        !self.lacks.contains(feature)
    }
}

/// The era that a client is told to speak.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// The version that every client of this era negotiates.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// Where a client connects to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Url(String),
    Command(Vec<String>),
}

/// Runs a client. Returns what it was given, or why it failed.
pub(crate) async fn run(
    client: &Client,
    era: Era,
    target: &Target,
    plan: &Plan,
    scratch: &Scratch,
    file: &Path,
) -> Result<Report, String> {
    let running = async {
        let words = match client.program {
            Program::Rmcp => return rmcp_client::run(era, target, plan, scratch).await,
            Program::Python(environment, script) => [
                peers(&format!("{environment}/bin/python")),
                source(&format!("clients/{script}")),
            ],
            Program::Node(script) => [node(), source(&format!("clients/{script}"))],
        };
        run_program(&words, era, target, plan, scratch, file).await
    };
    let ended = tokio::time::timeout(PATIENCE, running).await;
    ended.unwrap_or_else(|_| Err(format!("no end within {PATIENCE:?}")))
}

async fn run_program(
    words: &[String; 2],
    era: Era,
    target: &Target,
    plan: &Plan,
    scratch: &Scratch,
    file: &Path,
) -> Result<Report, String> {
    std::fs::write(file, plan.to_json().to_string()).unwrap();
    let mut command = scratch.command(Path::new(&words[0]));
    command.args([&words[1], "--era", era.word(), "--plan"]).arg(file);
    match target {
        Target::Url(url) => command.args(["--url", url]),
        Target::Command(words) => command.arg("--").args(words),
    };
    // Python would write compiled files next to the sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output().await.unwrap();
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}
