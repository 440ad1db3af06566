//! A program of its own with a subcommand for each tool: one file of Python that speaks MCP to the server itself, with the standard library only.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Wrapped, python, quote_in_python as quote, script::arguments};

/// The part that is the same in all programs: the client, and the command line.
const CLIENT: &str = include_str!("program/client.py");

pub(super) fn source(server: &str, launch: &Value, tools: &[Wrapped]) -> String {
    let about = super::one_paragraph(server);
    let mut text = format!(
        "#!/usr/bin/env python3\n# Made by `pegboard generate cli {server}`. Changes are lost when it is made again.\n\
         # It needs Python 3.9 and nothing else: it starts or asks the server itself.\n\
         \"\"\"The tools of the server {about}.\"\"\"\n\nNAME = {}\nCLIENT = {}\n",
        quote(server),
        literal(&serde_json::json!({"name": format!("{server}-cli"), "version": env!("CARGO_PKG_VERSION")})),
    );
    text.push_str("# How the server is reached. ${NAME} is a variable of the environment: no secret is in this file.\nSERVER = {\n");
    for (key, value) in launch.as_object().into_iter().flatten() {
        let _ = writeln!(text, "    {}: {},", quote(key), literal(value));
    }
    text.push_str("}\nTOOLS = {\n");
    for tool in tools {
        let headers: Vec<Value> = tool
            .headers
            .iter()
            .map(|(path, header)| serde_json::json!([path, header]))
            .collect();
        let _ = writeln!(
            text,
            "    {}: {{\"tool\": {}, \"help\": {}, \"headers\": {}, \"arguments\": [",
            quote(&tool.name.replace('_', "-")),
            quote(&tool.tool),
            quote(&tool.description),
            literal(&headers.into()),
        );
        for argument in arguments(&python::parameters(&tool.input)) {
            let _ = writeln!(
                text,
                "        ({}, {}, {}, {}, {}),",
                argument.flag,
                argument.destination,
                argument.key,
                quote(argument.kind),
                argument.options
            );
        }
        text.push_str("    ]},\n");
    }
    text.push('}');
    text + CLIENT
}

/// A JSON value as a literal of Python.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", quote(key), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}
