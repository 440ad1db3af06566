//! A script with a subcommand for each tool, in Python with the standard library only.

use std::fmt::Write as _;

use super::{
    Wrapped, python, quote_in_python as quote,
    shape::{Shape, ShapeField},
};

const START: &str = r#"
import argparse
import json
import os
import subprocess
import sys


def _json(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"write JSON: {error}") from None


def _boolean(text):
    if text in ("true", "false"):
        return text == "true"
    raise argparse.ArgumentTypeError("write true or false")

"#;

const END: &str = r#"

def main():
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--json-output", action="store_true", help="print the whole record of the call")
    commands = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for name, (tool, help_text, arguments) in TOOLS.items():
        escaped = help_text.replace("%", "%%")
        # argparse formats a description only if this is in it.
        described = escaped if "%(prog)" in help_text else help_text
        command = commands.add_parser(name, help=escaped, description=described)
        command.set_defaults(name=tool, keys={destination: key for _, destination, key, _ in arguments})
        for flag, destination, _, options in arguments:
            command.add_argument(flag, dest=destination, **options)
    given = vars(parser.parse_args())
    values = {key: given[destination] for destination, key in given["keys"].items() if given[destination] is not None}
    words = [os.environ.get("PEGBOARD", "pegboard"), "call", given["name"], "--json", "-"]
    if given["json_output"]:
        words += ["-o", "json"]
    try:
        sys.exit(subprocess.run(words, input=json.dumps(values), text=True, check=False).returncode)
    except OSError as error:
        sys.exit(f"{words[0]}: {error}")


if __name__ == "__main__":
    main()
"#;

pub(super) fn source(server: &str, tools: &[Wrapped]) -> String {
    let mut table = "TOOLS = {\n".to_owned();
    for tool in tools {
        let full = quote(&format!("{server}.{}", tool.tool));
        let _ = writeln!(
            table,
            "    {}: ({full}, {}, [",
            quote(&tool.name.replace('_', "-")),
            quote(&tool.description)
        );
        for (name, field) in python::parameters(&tool.input) {
            // `--help` is the script's own.
            let flag = match name.trim_end_matches('_') {
                "help" => "help-value".to_owned(),
                name => name.replace('_', "-"),
            };
            let flag = quote(&format!("--{flag}"));
            let destination = quote(&format!("arg_{name}"));
            let _ = writeln!(
                table,
                "        ({flag}, {destination}, {}, {}),",
                quote(&field.name),
                options(field)
            );
        }
        table.push_str("    ]),\n");
    }
    table.push_str("}\n");
    let description = quote(&format!("The tools of the server {server}."));
    format!(
        "#!/usr/bin/env python3\n# Made by `pegboard generate cli {server}`. Changes are lost when it is made again.\n{START}\nDESCRIPTION = {description}\n{table}{END}"
    )
}

/// The options of an argument for `argparse`.
fn options(field: &ShapeField) -> String {
    let required = if field.is_required { "True" } else { "False" };
    let mut help = field.description.clone();
    let kind = match &field.shape {
        Shape::String => "\"type\": str, \"metavar\": \"TEXT\"".to_owned(),
        Shape::Integer => "\"type\": int, \"metavar\": \"INTEGER\"".to_owned(),
        Shape::Number => "\"type\": float, \"metavar\": \"NUMBER\"".to_owned(),
        Shape::Boolean => "\"type\": _boolean, \"metavar\": \"true|false\"".to_owned(),
        Shape::Words(words) => {
            let choices: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let choices = choices.join(", ");
            // Some versions of argparse fail to wrap a usage line with whitespace other than single spaces.
            match words.iter().any(|word| has_unusual_space(word)) {
                false => format!("\"choices\": [{choices}]"),
                true => {
                    let gap = if help.is_empty() { "" } else { "; " };
                    help = format!("{help}{gap}one of {choices}");
                    format!("\"choices\": [{choices}], \"metavar\": \"TEXT\"")
                }
            }
        }
        Shape::List(item) if **item == Shape::String => {
            "\"type\": str, \"nargs\": \"+\", \"metavar\": \"TEXT\"".to_owned()
        }
        _ => "\"type\": _json, \"metavar\": \"JSON\"".to_owned(),
    };
    let help = quote(&help.replace('%', "%%"));
    format!("{{\"required\": {required}, \"help\": {help}, {kind}}}")
}

/// Whether a word has whitespace other than single spaces, or a character that terminals do not show.
fn has_unusual_space(word: &str) -> bool {
    let is_unusual = |c: char| c != ' ' && (c.is_whitespace() || c.is_control());
    word.contains(is_unusual) || word.contains("  ") || word.starts_with(' ') || word.ends_with(' ')
}
