//! The pages of `docs/reference` that are made from the definitions of this program: commands, exit codes and events.

use std::{fmt::Write as _, path::Path};

use clap::{Arg, Command, CommandFactory as _};
use pegboard::{Event, Kind};
use serde_json::Value;

use crate::{commands::Cli, exit::Exit};

/// Set to rewrite the pages instead of comparing them.
const BLESS: &str = "PEGBOARD_BLESS";

const COMMANDS: &str = "\
# Commands and options

Every command with its arguments, as `--help` shows them. [The command line](../cli.md) explains them, with the JSON that they print and their [exit codes](exit-codes.md).

The options of `pegboard` itself may stand before or after the name of a command; they are not repeated below.
";

const EXIT_CODES: &str = "\
# Exit codes

Scripts can rely on these. The kind of a failed call is in `outcome.kind` of `-o json`.

| code | meaning | kinds of outcome |
| --- | --- | --- |
";

const EXIT_CODES_END: &str = "
A call that has run and whose result was discarded, because it was too large for example, ends with 3: it is `lost`, not `refused`.

Commands that check something end with 1 if they found a problem: `doctor` if a server cannot be used, `audit verify` if the log is not intact, `pins diff --check` if a definition differs or is held, `health` if the
daemon is not alive or not ready, `torture` if a server fails a case.
";

const EVENTS: &str = "\
# Events

What a board reports: `Pegboard::events` in a program, `GET /api/v1/mcp/events` of [the HTTP API](http.md). An event is a JSON object with its name in `event`. Fields may be added; a reader ignores those
that it does not know. No event has arguments or results of a call, and secrets are masked. [Observability](../concepts/observability.md#events) says when each is published.
";

#[test]
fn the_page_of_commands_shows_the_definitions() {
    let mut page = COMMANDS.to_owned();
    let mut top = Cli::command().term_width(80);
    top.build();
    let global: Vec<&str> = options(&top).map(|arg| arg.get_id().as_str()).collect();
    describe(&mut page, &top, "pegboard", &[]);
    for command in top.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe_all(&mut page, command, "pegboard", &global);
    }
    compare("cli.md", &page);
}

fn describe_all(page: &mut String, command: &Command, above: &str, global: &[&str]) {
    let name = format!("{above} {}", command.get_name());
    describe(page, command, &name, global);
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe_all(page, command, &name, global);
    }
}

/// One command: what it does, its arguments and options, and its examples.
fn describe(page: &mut String, command: &Command, name: &str, global: &[&str]) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(page, "\n## `{name}`\n\n{about}.\n\n```text\n{usage}\n```").unwrap();
    let own: Vec<&Arg> = command
        .get_positionals()
        .chain(options(command).filter(|arg| !global.contains(&arg.get_id().as_str())))
        .filter(|arg| !arg.is_hide_set())
        .collect();
    if !own.is_empty() {
        page.push_str("\n| argument | meaning |\n| --- | --- |\n");
    }
    for arg in own {
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        let mut help = help.unwrap_or_default().replace('\n', " ");
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name().to_owned())
            .collect();
        if !values.is_empty() && arg.get_action().takes_values() && !arg.is_hide_possible_values_set() {
            write!(help, " ({})", values.join(", ")).unwrap();
        }
        let defaults: Vec<_> = arg
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        if !defaults.is_empty() && arg.get_action().takes_values() {
            write!(help, "; default {}", defaults.join(" ")).unwrap();
        }
        let help = help.replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| `{}` | {help} |", spell(arg).replace('|', "\\|")).unwrap();
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let examples: Vec<&str> = examples.lines().map(str::trim_start).collect();
        writeln!(page, "\n```text\n{}\n```", examples.join("\n")).unwrap();
    }
}

/// The options of a command, without `--help` and `--version`.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && !["help", "version"].contains(&arg.get_id().as_str()))
}

/// An argument as it is written.
fn spell(arg: &Arg) -> String {
    let names: Vec<String> = arg
        .get_value_names()
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let values = if arg.get_action().takes_values() {
        names.join(" ")
    } else {
        String::new()
    };
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long} {values}").trim_end().to_owned(),
        (None, Some(long)) => format!("--{long} {values}").trim_end().to_owned(),
        (Some(short), None) => format!("-{short} {values}").trim_end().to_owned(),
        (None, None) => values,
    }
}

#[test]
fn the_page_of_exit_codes_shows_every_kind_of_ending() {
    let kinds = [
        Kind::Ok,
        Kind::ToolError,
        Kind::UnknownTool,
        Kind::InvalidArguments,
        Kind::NotPermitted,
        Kind::LimitExceeded,
        Kind::Unavailable,
        Kind::RestartInProgress,
        Kind::RestartFailed,
        Kind::NeedsAuth,
        Kind::Transport,
        Kind::Timeout,
        Kind::Cancelled,
        Kind::Internal,
    ];
    let mut page = EXIT_CODES.to_owned();
    for exit in Exit::ALL {
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|kind| Exit::from_kind(*kind) == exit)
            .map(|kind| format!("`{}`", kind.as_str()))
            .collect();
        writeln!(page, "| {} | {} | {} |", exit as u8, exit.meaning(), kinds.join(", ")).unwrap();
    }
    page.push_str(EXIT_CODES_END);
    compare("exit-codes.md", &page);
}

#[test]
fn the_page_of_events_shows_every_field() {
    let schema = serde_json::to_value(schemars::schema_for!(Event)).unwrap();
    let mut page = EVENTS.to_owned();
    for event in schema["oneOf"].as_array().unwrap() {
        let fields = event["properties"].as_object().unwrap();
        let name = fields["event"]["const"].as_str().unwrap();
        let about = to_plain_text(event["description"].as_str().unwrap());
        writeln!(
            page,
            "\n## `{name}`\n\n{about}\n\n| field | type | meaning |\n| --- | --- | --- |"
        )
        .unwrap();
        for (field, schema) in fields.iter().filter(|(field, _)| *field != "event") {
            let about = to_plain_text(schema["description"].as_str().unwrap_or_default());
            writeln!(page, "| `{field}` | {} | {about} |", type_of(schema)).unwrap();
        }
    }
    compare("events.md", &page);
}

/// The JSON types of a field. A type with a name of its own is a text here.
fn type_of(schema: &Value) -> String {
    match (&schema["type"], &schema["anyOf"]) {
        (Value::String(one), _) => one.clone(),
        (Value::Array(several), _) => several
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        (_, Value::Array(several)) => several.iter().map(type_of).collect::<Vec<_>>().join(" or "),
        _ => "string".to_owned(),
    }
}

/// A doc comment on one line, with the names of links to Rust items only.
fn to_plain_text(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let (name, after) = link.split_once("`]").unwrap();
        write!(plain, "{before}`{name}`").unwrap();
        rest = match after.strip_prefix('(') {
            Some(target) => target.split_once(')').unwrap().1,
            None => after,
        };
    }
    plain.push_str(rest);
    plain
        .replace('\n', " ")
        .replace("`Event::", "`")
        .replace("`None`", "`null`")
}

#[track_caller]
fn compare(name: &str, page: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(name);
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&file, page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = page
        .lines()
        .zip(written.lines())
        .find(|(page, written)| page != written);
    let file = file.display();
    assert!(
        page == written,
        "{file} is out of date, first in {differs:#?}; rewrite it with {BLESS}=1"
    );
}
