//! The arguments of the commands that list and use what servers offer.

use std::path::PathBuf;

use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use pegboard::Provider;

use super::global::{Global, Nothing, With, or_raw};

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Part of a tool's name, or a whole name with `*` for any text;
    /// a tool's whole name explains that tool
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
    /// Show each tool's JSON Schemas
    #[arg(long, conflicts_with_all = ["cost", "search"])]
    pub(crate) schema: bool,
    /// Show each tool as one line with its arguments' types
    #[arg(long, conflicts_with_all = ["cost", "search", "schema"])]
    pub(crate) signatures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// server.tool, server__tool, server tool, 'tool(a: 1)', or only
    /// the tool's name
    pub(crate) tool: String,
    /// Its arguments: key=text, key=@file, key:=json, or a text alone
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    pub(crate) words: Vec<String>,
    /// All arguments as JSON; @FILE reads a file, - stdin
    #[arg(long, value_name = "OBJECT")]
    pub(crate) json: Option<String>,
    /// All arguments as text: JSON, YAML, pairs or words
    #[arg(long, value_name = "RAW", conflicts_with = "json", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Send this in the request's _meta; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) meta: Vec<(String, String)>,
    /// Agree to the call where a person must
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Cut a long result to this size, such as 48KiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_result: Option<usize>,
    /// Save images, audio and binary resources here
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Write the result to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Do not show images at the terminal
    #[arg(long)]
    pub(crate) no_images: bool,
    /// Say how long the call took
    #[arg(long)]
    pub(crate) time: bool,
    /// Make the call this often, and show its latencies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with_all = ["save", "out", "time"])]
    pub(crate) repeat: Option<u32>,
    /// How many of the repeated calls run at once
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, requires = "repeat",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) concurrent: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// End with exit code 3 unless every server is ready
    #[arg(long)]
    pub(crate) check: bool,
    /// Wait until every server is ready, 60s unless --timeout is given
    #[arg(long)]
    pub(crate) wait: bool,
    /// Show the status again whenever it changes, until Ctrl-C
    #[arg(long, conflicts_with = "wait")]
    pub(crate) watch: bool,
}

impl Status {
    /// Whether every server must be ready, not only those that the config requires.
    pub(crate) fn is_strict(&self) -> bool {
        self.check || self.wait
    }
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
    #[command(
        mut_arg("output", or_raw),
        after_help = "Example:\n  pegboard resources read demo://about"
    )]
    Read(With<ResourceRead>),
}

#[derive(Debug, Args)]
pub(crate) struct ResourceRead {
    /// Its address; `--server NAME` says whose when several have it
    pub(crate) uri: String,
    /// Write the contents to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
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
