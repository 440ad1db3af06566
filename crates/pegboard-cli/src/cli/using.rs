//! The arguments of the commands that list and use what servers offer.

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use pegboard::Provider;

use super::global::{Global, Nothing, With};

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Part of a tool's name, or a whole name with `*` for any text
    pub(crate) pattern: Option<String>,
    /// The API to define tools for: mcp, openai, openai-responses,
    /// openai-strict, anthropic, gemini, gemini-json, bedrock. With
    /// json, the list is exactly what it takes
    #[arg(long, value_parser = provider(), hide_possible_values = true)]
    pub(crate) provider: Option<Provider>,
    /// Find tools by what they are for, the best first
    #[arg(long, value_name = "QUERY", conflicts_with = "pattern")]
    pub(crate) search: Option<String>,
    /// Show what each server's definitions cost, in tokens
    #[arg(long, conflicts_with_all = ["pattern", "provider", "search"])]
    pub(crate) cost: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// server.tool, server__tool, or only the tool's name
    pub(crate) tool: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) pairs: Vec<(String, String)>,
    /// All arguments as JSON; @FILE reads a file, - stdin
    #[arg(long, value_name = "OBJECT", conflicts_with = "pairs")]
    pub(crate) json: Option<String>,
    /// All arguments as text: JSON, YAML, pairs or words
    #[arg(long, value_name = "RAW", conflicts_with_all = ["pairs", "json"], allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Agree to the call where a person must
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Cut a long result to this size, such as 48KiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_result: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct ResourcesArgs {
    #[command(subcommand)]
    pub(super) verb: Option<ResourcesVerb>,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Subcommand)]
pub(super) enum ResourcesVerb {
    /// List resources
    #[command(after_help = "Example:\n  pegboard resources list -o json")]
    List(With<Nothing>),
    /// Read one resource
    #[command(after_help = "Example:\n  pegboard resources read demo://about")]
    Read(With<ResourceRead>),
}

#[derive(Debug, Args)]
pub(super) struct ResourceRead {
    /// Its address; `--server NAME` says whose when several have it
    pub(super) uri: String,
}

#[derive(Debug, Args)]
pub(super) struct PromptsArgs {
    #[command(subcommand)]
    pub(super) verb: Option<PromptsVerb>,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Subcommand)]
pub(super) enum PromptsVerb {
    /// List prompts
    #[command(after_help = "Example:\n  pegboard prompts list -o json")]
    List(With<Nothing>),
    /// Get one prompt with its arguments filled in
    #[command(after_help = "Example:\n  pegboard prompts get demo.greet name=Ada")]
    Get(With<PromptGet>),
}

#[derive(Debug, Args)]
pub(crate) struct PromptGet {
    /// server.prompt, or only the prompt's name
    pub(crate) name: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) pairs: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct Mask {
    /// Look for the patterns of this group too; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    pub(crate) groups: Vec<String>,
    /// Look for this pattern too; may be repeated
    #[arg(long = "pattern", value_name = "NAME")]
    pub(crate) patterns: Vec<String>,
}

/// Parses a provider by its name.
fn provider() -> impl TypedValueParser<Value = Provider> {
    PossibleValuesParser::new(Provider::ALL.map(Provider::as_str))
        .try_map(|word| Provider::parse(&word).ok_or("there is no such provider"))
}

fn size(text: &str) -> Result<usize, &'static str> {
    let bytes = pegboard::config::parse_size(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or("write a number of bytes, or with a unit, such as 48KiB")
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, or give all arguments with --json"),
    }
}
