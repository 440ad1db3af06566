//! The arguments and options of `call`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::pair;

/// Call one tool
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard call demo.calculate '6 * 7' -o raw\n  \
                  pegboard call demo.calculate --json '{\"expression\": \"6 * 7\"}' -o json\n  \
                  pegboard call 'demo.draw(color: red)' --save pictures")]
pub(crate) struct Call {
    /// server.tool, server__tool, server tool, 'tool(a: 1)', or only
    /// the tool's name
    pub(super) tool: String,
    /// Its arguments: key=text, key=@file, key:=json, a text alone, or
    /// one JSON object
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    pub(super) words: Vec<String>,
    /// All arguments as JSON; @FILE reads a file, - stdin
    #[arg(long, value_name = "OBJECT")]
    pub(super) json: Option<String>,
    /// All arguments as text: JSON, YAML, pairs or words
    #[arg(long, value_name = "RAW", conflicts_with = "json", allow_hyphen_values = true)]
    pub(super) text: Option<String>,
    /// Send this in the request's _meta; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) meta: Vec<(String, String)>,
    /// Agree to the call where a person must
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Cut a long result to this size, such as 48KiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) max_result: Option<usize>,
    /// Raise the limit for results, 8MiB, to this size
    #[arg(long, value_name = "SIZE", value_parser = message_size)]
    pub(super) max_bytes: Option<usize>,
    /// Save images, audio and binary resources here
    #[arg(long, value_name = "DIR")]
    pub(super) save: Option<PathBuf>,
    /// Write the result to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Do not show images at the terminal
    #[arg(long)]
    pub(super) no_images: bool,
    /// Say how long the call took, and where the time went
    #[arg(long)]
    pub(super) time: bool,
    /// Make the call this often, and show its latencies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with_all = ["save", "out", "time"])]
    pub(super) repeat: Option<u32>,
    /// How many of the repeated calls run at once
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, requires = "repeat",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) concurrent: u32,
}

/// The size of a message, within the limits of the setting `max_message`.
fn message_size(text: &str) -> Result<usize, &'static str> {
    let bytes = pegboard::config::parse_size(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes
        .filter(|bytes| (1024..=1 << 30).contains(bytes))
        .ok_or("write a size from 1KiB to 1GiB, such as 64MiB")
}

/// A size in its largest whole unit.
pub(super) fn size_text(bytes: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = units
        .iter()
        .find(|(_, shift)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match whole {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

fn size(text: &str) -> Result<usize, &'static str> {
    let bytes = pegboard::config::parse_size(text).and_then(|bytes| usize::try_from(bytes).ok());
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or("write a number of bytes, or with a unit, such as 48KiB")
}
