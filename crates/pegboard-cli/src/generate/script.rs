//! A script with a subcommand for each tool that calls `pegboard`, in Python with the standard library only.

use std::fmt::Write as _;

use super::{
    Wrapped, python, quote_in_python as quote,
    shape::{Shape, ShapeField},
};

/// The part that is the same in all scripts.
const CALLING: &str = include_str!("program/calling.py");

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
        for argument in arguments(&python::parameters(&tool.input)) {
            let _ = writeln!(
                table,
                "        ({}, {}, {}, {}, {}),",
                argument.flag,
                argument.destination,
                argument.key,
                quote(argument.kind),
                argument.options
            );
        }
        table.push_str("    ]),\n");
    }
    table.push('}');
    let about = super::one_paragraph(server);
    format!(
        "#!/usr/bin/env python3\n# Made by `pegboard generate cli {server} --through-pegboard`. Changes are lost when it is made again.\n\
         \"\"\"The tools of the server {about}.\"\"\"\n\n{table}{CALLING}"
    )
}

/// An argument of a tool as an option of a command line, as texts of Python.
pub(super) struct Argument {
    pub(super) flag: String,
    pub(super) destination: String,
    /// The name of the argument for the server.
    pub(super) key: String,
    /// The name of a function that reads its value.
    pub(super) kind: &'static str,
    /// The other options for `argparse`.
    pub(super) options: String,
}

pub(super) fn arguments(fields: &[(String, &ShapeField)]) -> Vec<Argument> {
    let one = |(name, field): &(String, &ShapeField)| {
        // `--help` is the program's own.
        let flag = match name.trim_end_matches('_') {
            "help" => "help-value".to_owned(),
            name => name.replace('_', "-"),
        };
        let (kind, options) = options(field);
        Argument {
            flag: quote(&format!("--{flag}")),
            destination: quote(&format!("arg_{name}")),
            key: quote(&field.name),
            kind,
            options,
        }
    };
    fields.iter().map(one).collect()
}

/// The kind of an argument, and its options for `argparse`.
fn options(field: &ShapeField) -> (&'static str, String) {
    let required = if field.is_required { "True" } else { "False" };
    let mut help = field.description.clone();
    let (kind, more) = match &field.shape {
        Shape::String => ("text", "\"metavar\": \"TEXT\"".to_owned()),
        Shape::Integer => ("integer", "\"metavar\": \"INTEGER\"".to_owned()),
        Shape::Number => ("number", "\"metavar\": \"NUMBER\"".to_owned()),
        Shape::Boolean => ("boolean", "\"metavar\": \"true|false\"".to_owned()),
        Shape::Words(words) => {
            let choices: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let choices = choices.join(", ");
            // Some versions of argparse fail to wrap a usage line with whitespace other than single spaces.
            match words.iter().any(|word| has_unusual_space(word)) {
                false => ("text", format!("\"choices\": [{choices}]")),
                true => {
                    let gap = if help.is_empty() { "" } else { "; " };
                    help = format!("{help}{gap}one of {choices}");
                    ("text", format!("\"choices\": [{choices}], \"metavar\": \"TEXT\""))
                }
            }
        }
        Shape::List(item) if **item == Shape::String => ("text", "\"nargs\": \"+\", \"metavar\": \"TEXT\"".to_owned()),
        _ => ("json", "\"metavar\": \"JSON\"".to_owned()),
    };
    let help = quote(&help.replace('%', "%%"));
    (kind, format!("{{\"required\": {required}, \"help\": {help}, {more}}}"))
}

/// Whether a word has whitespace other than single spaces, or a character that terminals do not show.
fn has_unusual_space(word: &str) -> bool {
    let is_unusual = |c: char| c != ' ' && (c.is_whitespace() || c.is_control());
    word.contains(is_unusual) || word.contains("  ") || word.starts_with(' ') || word.ends_with(' ')
}
