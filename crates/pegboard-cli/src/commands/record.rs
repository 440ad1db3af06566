//! `pegboard record` and `pegboard replay`: a recording of what servers answer, and a fake server made of it.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use pegboard::mask::{Masker, Masking};
use pegboard_gateway::{Gateway, serve_stdio};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{
    command::Run,
    context::{Context, Ending, cut_short, with_complaint},
    mcp::{self, Mcp},
    serving, stdin,
};
use crate::{
    cli::address,
    exit::Exit,
    logging::LogUse,
    output::{self, Report, single_quote},
    recording::{self, Matching},
    settings::{Complaint, Settings},
};

/// The longest recording that is read.
const MAX_RECORDING: u64 = 256 << 20;
/// The name of a server that is given by its command.
const NAME: &str = "recorded";

/// Serve like `mcp`, and record the answers
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard record run.jsonl --server github\n  pegboard record run.jsonl -- npx -y some-server@1.2.3"
)]
pub(crate) struct Record {
    /// The recording, which is replaced
    file: PathBuf,
    /// Record this view of the config instead of all tools
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    view: Option<String>,
    /// A server to start and record, instead of those of the config
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run for Record {
    const LOG: LogUse = LogUse::RUNNING;

    /// Serves what `mcp` serves, and records the answers.
    async fn run(self, mut context: Context<'_>) -> Exit {
        if !self.command.is_empty() {
            let words: Vec<String> = self.command.iter().map(|word| single_quote(word)).collect();
            context.global.servers = vec![format!("{NAME}={}", words.join(" ")), NAME.to_owned()];
        }
        // A daemon's servers may be used by others meanwhile.
        context.global.no_daemon = true;
        let board = Mcp {
            view: self.view,
            daemon: false,
            idle: Duration::ZERO,
        };
        let recording = mcp::Recording {
            file: &self.file,
            needs_server: !self.command.is_empty(),
        };
        Box::pin(mcp::serve(context, board, Some(recording))).await
    }
}

/// Serve a recording as a fake MCP server
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard replay run.jsonl\n  pegboard --server fake='pegboard replay run.jsonl' tools"
)]
pub(crate) struct Replay {
    /// The recording
    file: PathBuf,
    /// strict: in the recorded order; exact: with the same params;
    /// lenient: also with other arguments of the same tool
    #[arg(
        long = "match",
        value_enum,
        default_value = "exact",
        hide_possible_values = true,
        value_name = "MATCHING"
    )]
    matching: Matching,
    /// Serve HTTP at this loopback address, or only a port, instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
}

impl Run for Replay {
    const LOG: LogUse = LogUse::RUNNING;

    /// Answers as it was recorded, until the client disconnects or a signal arrives.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let service = match read(&mut context, &self).await {
            Ok(replay) => {
                if let Some(warning) = replay.warning() {
                    let path = self.file.display();
                    context.output.say(&output::warning(&format!("{path}: {warning}")));
                }
                Arc::new(replay)
            }
            Err(complaint) => {
                let report = with_complaint(Report::new(complaint.exit), &complaint);
                return context.print(report).await;
            }
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let output = context.output.clone();
        let serving = async move {
            let Some(address) = self.listen else {
                return serve_stdio(service, stopped).await.map_err(|error| error.to_string());
            };
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| format!("{address}: {error}"))?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            let gateway = Gateway::for_service(service)
                .map_err(|error| error.to_string())?
                .build();
            output.say(&format!("listening on http://{address}/mcp\n"));
            gateway
                .serve(vec![listener], stopped)
                .await
                .map_err(|error| error.to_string())
        };
        let mut serving = std::pin::pin!(serving);
        let served = tokio::select! {
            biased;
            served = &mut serving => served,
            () = context.signals.heard() => {
                stop.cancel();
                serving.await
            }
        };
        let report = match served {
            Ok(()) => Report::new(Exit::Done),
            Err(problem) => Report::new(Exit::Unavailable).error(&problem, None),
        };
        context.print(report).await
    }
}

/// What masks requests as the recording was masked. A config that cannot be used says nothing of it.
fn masker(context: &Context<'_>) -> Option<Masker> {
    let config = Settings::load(&context.global).loaded.config;
    let masker = Masker::new(&config.masking, config.secrets());
    masker.or_else(|_| Masker::new(&Masking::default(), [])).ok()
}

async fn read(context: &mut Context<'_>, options: &Replay) -> Result<recording::Replay, Complaint> {
    let complaint = |message: String| Complaint {
        message,
        hint: Some("`pegboard record FILE` makes a recording".to_owned()),
        exit: Exit::Usage,
    };
    if let Some(address) = options.listen.filter(|address| !serving::is_loopback(address)) {
        return Err(complaint(format!(
            "{address} can be reached by other machines; listen on 127.0.0.1"
        )));
    }
    let path = options.file.display();
    let mut bytes = match stdin::read_file(context, &options.file, MAX_RECORDING).await {
        Ending::Done(read) => read.map_err(complaint)?,
        Ending::TimeUp => return Err(cut_short(Exit::Timeout, None)),
        Ending::Interrupted => return Err(cut_short(Exit::Interrupted, None)),
    };
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        // The last line is cut off within a character.
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).map_err(|error| complaint(format!("{path}: {error}")))?;
    let masker = masker(context).ok_or_else(|| complaint("requests cannot be masked".to_owned()))?;
    recording::Replay::read(&text, options.matching, masker).map_err(|why| complaint(format!("{path}: {why}")))
}
