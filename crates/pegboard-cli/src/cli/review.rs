//! The commands by which a person reviews what is trusted: `trust`, `pins` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::global::{Global, With};

#[derive(Debug, Args)]
pub(super) struct TrustArgs {
    #[command(subcommand)]
    pub(super) verb: TrustVerb,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Args)]
pub(super) struct PinsArgs {
    #[command(subcommand)]
    pub(super) verb: PinsVerb,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    pub(super) verb: AuditVerb,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Subcommand)]
pub(super) enum TrustVerb {
    /// Show what the project file would start, and what has changed
    #[command(after_help = "Example:\n  pegboard trust show -o json")]
    Show(With<TrustPath>),
    /// Approve the project file as it is now
    #[command(after_help = "Example:\n  pegboard trust accept")]
    Accept(With<TrustAccept>),
    /// Withdraw the approval
    #[command(after_help = "Example:\n  pegboard trust forget")]
    Forget(With<TrustPath>),
}

#[derive(Debug, Args)]
pub(super) struct TrustPath {
    /// The project file, or a folder of the project
    pub(super) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustAccept {
    /// The project file, or a folder of the project
    pub(crate) path: Option<PathBuf>,
    /// Approve it without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum PinsVerb {
    /// Show what is pinned, without starting a server
    #[command(after_help = "Example:\n  pegboard pins show github")]
    Show(With<PinsShow>),
    /// Show how definitions differ from their pins
    #[command(after_help = "Examples:\n  pegboard pins diff\n  pegboard pins diff github.create_issue")]
    Diff(With<PinsDiff>),
    /// Accept definitions as they are now
    #[command(after_help = "Examples:\n  pegboard pins accept github.create_issue\n  pegboard pins accept --all")]
    Accept(With<PinsAccept>),
}

#[derive(Debug, Args)]
pub(super) struct PinsShow {
    /// Only this server
    pub(super) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PinsDiff {
    /// A server, or one tool of it; all when none is given
    #[arg(value_name = "SERVER[.TOOL]")]
    pub(crate) names: Vec<String>,
    /// End with exit code 1 if something differs or is held
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinsAccept {
    /// A server, or one tool of it
    #[arg(value_name = "SERVER[.TOOL]")]
    pub(crate) names: Vec<String>,
    /// Accept everything that differs
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Accept them without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditVerb {
    /// Find records that were removed, moved or changed
    #[command(after_help = "Examples:\n  pegboard audit verify\n  pegboard audit verify calls.jsonl -o json")]
    Verify(With<AuditVerify>),
    /// Show the last records; `--server NAME` picks a server's
    #[command(after_help = "Example:\n  pegboard audit show --server github --last 10")]
    Show(With<AuditShow>),
}

#[derive(Debug, Args)]
pub(crate) struct AuditVerify {
    /// The log; that of the config by default
    pub(crate) file: Option<PathBuf>,
    /// The head that an earlier run printed; it must still be there
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditShow {
    /// The log; that of the config by default
    pub(crate) file: Option<PathBuf>,
    /// How many records, 50 by default
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
}
