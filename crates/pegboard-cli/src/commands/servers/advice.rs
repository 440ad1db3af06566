//! Advice for a command line of `add` whose command is not after `--`, as `claude mcp add` takes it, and for one of `call` that gives arguments as
//! options.

use clap::{
    Command, Error, FromArgMatches as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use pegboard::{Config, Env, Format};
use pegboard_hosts::hosts::HOSTS;
use serde_json::json;

use super::{options::Add, screen};
use crate::output::shell_word;

/// Replaces the tips of the error of a parser for `definition` if the words are an `add` with its command before `--`. The parser would say where to put one
/// argument, and not that the program goes there too.
pub(in crate::commands) fn with_advice(mut error: Error, words: &[String], definition: Command) -> Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(line) = guess_line(unknown, words, definition)
    {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!("the command goes after '--': {line}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(argument) = guess_argument(unknown, words)
    {
        error.remove(ContextKind::SuggestedArg);
        let tip = format!("arguments of the tool are written without dashes: {argument}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(tip) = tip_for_missing(words)
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Where the values of an argument are listed that a command lacks.
fn tip_for_missing(words: &[String]) -> Option<String> {
    let hosts = || {
        let known = HOSTS.iter().filter(|host| host.is_editable());
        known.map(|host| host.id).collect::<Vec<_>>().join(", ")
    };
    let command = words
        .iter()
        .skip(1)
        .find(|word| ["call", "install", "uninstall"].contains(&word.as_str()))?;
    Some(match command.as_str() {
        "call" => "'pegboard tools' lists the tools".to_owned(),
        "install" => format!(
            "the hosts are {}; 'pegboard init' enters Pegboard in all that are found here",
            hosts()
        ),
        _ => format!("the hosts are {}; '--all' stands for all that use Pegboard", hosts()),
    })
}

/// The argument of a tool that was meant by an unknown option after `call TOOL`: `--zone UTC` is `zone=UTC`.
fn guess_argument(unknown: &str, words: &[String]) -> Option<String> {
    let call = words.iter().position(|word| word == "call")?;
    let key = unknown.strip_prefix("--").filter(|key| !key.is_empty())?;
    let at = words
        .iter()
        .position(|word| word.starts_with(unknown))
        .filter(|at| *at > call + 1)?;
    let is_value = |word: &&String| !word.starts_with('-') && !word.contains(['=', ':']);
    match (words[at].split_once('='), words.get(at + 1).filter(is_value)) {
        (Some((_, value)), _) => Some(format!("{key}={}", shell_word(value))),
        (None, Some(value)) => Some(format!("{key}={}", shell_word(value))),
        (None, None) => Some(format!("{key}=VALUE")),
    }
}

/// The command line of `add` that was meant by one in which a word is unknown.
fn guess_line(unknown: &str, words: &[String], definition: Command) -> Option<String> {
    // Of `--option=value` and `-abc` the parser names a part.
    let at = words.iter().position(|word| word.starts_with(unknown))?;
    let (before, command) = words.split_at(at.checked_sub(1)?);
    let line = before.iter().map(String::as_str).chain(["--"]);
    let line = line.chain(command.iter().map(String::as_str));
    let matches = definition.try_get_matches_from(line).ok()?;
    match Add::from_arg_matches(matches.subcommand_matches("add")?).ok()? {
        Add { name, target: None, .. } if !command[0].contains("://") => {
            // Without the options, whose values may be secrets.
            let has_options = before.len() > ["pegboard", "add", "NAME"].len();
            let name = if has_options { format!("{name} …") } else { name };
            Some(add_line(&name, command))
        }
        _ => None,
    }
}

/// The command line that adds a command, with its secrets hidden.
pub(super) fn add_line(name: &str, command: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = command.iter().map(AsRef::as_ref).collect();
    let (program, args) = words.split_first().unwrap_or((&"COMMAND…", &[]));
    let config = json!({"servers": {"x": {"command": program, "args": args}}}).to_string();
    // Variables may be unset here, and the line is shown as it is written.
    let loaded = Config::from_text(&config, Format::Json, &Env::new(|_| Some(String::new())));
    let shown = screen::target(&loaded.show()["servers"]["x"]);
    format!(
        "pegboard add {name} -- {}",
        shown.unwrap_or_else(|| format!("{program} …"))
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn a_command_without_its_argument_says_where_the_values_are_listed() {
        for (line, expected) in [
            ("call", "tip: 'pegboard tools' lists the tools\n"),
            (
                "install",
                "'pegboard init' enters Pegboard in all that are found here\n",
            ),
            ("uninstall --restore", "'--all' stands for all that use Pegboard\n"),
        ] {
            let words: Vec<String> = format!("pegboard {line}").split(' ').map(str::to_owned).collect();
            let error = Cli::command().try_get_matches_from(&words).unwrap_err();
            let said = with_advice(error, &words, Cli::command()).to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn arguments_of_a_tool_are_shown_without_dashes() {
        for (line, expected) in [
            ("call time.now --timezone UTC", Some("timezone=UTC")),
            ("call time.now --a=1", Some("a=1")),
            ("call time.now x=1 --message", Some("message=VALUE")),
            ("call --nonsense time.now", None),
            ("tools --zone UTC", None),
        ] {
            let words: Vec<String> = ["pegboard"]
                .into_iter()
                .chain(line.split(' '))
                .map(str::to_owned)
                .collect();
            let error = Cli::command().try_get_matches_from(&words).unwrap_err();
            let said = with_advice(error, &words, Cli::command()).to_string();
            match expected {
                Some(argument) => assert!(
                    said.contains(&format!("written without dashes: {argument}\n")),
                    "{said}"
                ),
                None => assert!(!said.contains("without dashes"), "{said}"),
            }
        }
    }

    #[test]
    fn a_command_before_the_dashes_is_shown_after_them() {
        for (line, expected) in [
            ("add x npx -y foo", Some("pegboard add x -- npx -y foo")),
            ("add x docker run -i img", Some("pegboard add x -- docker run -i img")),
            (
                "add -e A=1 x uvx --from pkg foo",
                Some("pegboard add x … -- uvx --from pkg foo"),
            ),
            (
                "add x npx foo --token=abcdefgh",
                Some("pegboard add x -- npx foo '--token=****'"),
            ),
            ("add x https://example.com/mcp --headxr a:b", None),
            ("add x --headxr a:b", None),
            ("tools x -y", None),
        ] {
            let words: Vec<String> = ["pegboard"]
                .into_iter()
                .chain(line.split(' '))
                .map(str::to_owned)
                .collect();
            let error = Cli::command().try_get_matches_from(&words).unwrap_err();
            let said = with_advice(error, &words, Cli::command()).to_string();
            match expected {
                Some(line) => assert!(
                    said.contains(&format!("tip: the command goes after '--': {line}\n")),
                    "{said}"
                ),
                None => assert!(!said.contains("the command goes after"), "{said}"),
            }
        }
    }
}
