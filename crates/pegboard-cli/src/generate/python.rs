//! Wrappers in Python, with the standard library only. Tools are called by the command.

use std::fmt::Write as _;

use super::{
    Wrapped,
    names::{UsedNames, pascal, snake},
    quote_in_python as quote,
    shape::{Shape, ShapeField},
};

/// Names that a class must not have: those of the code below, and of what it uses.
const USED: [&str; 10] = [
    "Any",
    "Exception",
    "Literal",
    "NotRequired",
    "None",
    "RuntimeError",
    "Sequence",
    "ToolError",
    "TypedDict",
    "ValueError",
];

const CALLING: &str = r#"
from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict
from typing import cast as _cast


class ToolError(Exception):
    """A call that has not succeeded. `record` is what `pegboard call -o json` prints."""

    def __init__(self, record: dict[str, Any]) -> None:
        super().__init__(record.get("text"))
        self.record = record


def _call(program: Sequence[str], name: str, arguments: dict[str, Any]) -> Any:
    given = {key: value for key, value in arguments.items() if value is not None}
    words = [*program, "call", name, "--json", "-", "-o", "json"]
    done = subprocess.run(words, input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=False)
    try:
        record = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"pegboard ended with {done.returncode} and printed no JSON") from None
    if record["status"] != "done" or record["is_error"]:
        raise ToolError(record)
    return record["text"] if record["structured"] is None else record["structured"]
"#;

pub(super) fn source(server: &str, tools: &[Wrapped]) -> String {
    let mut types = String::new();
    let mut functions = String::new();
    let mut names = UsedNames::with(&USED);
    let class = names.make_unique(&pascal(&snake(server)));
    for tool in tools {
        let mut writer = Types {
            text: &mut types,
            names: &mut names,
        };
        let arguments: Vec<(String, &ShapeField, String)> = parameters(&tool.input)
            .into_iter()
            .map(|(name, field)| {
                let shown = writer.render(&field.shape, &pascal(&format!("{}_{}", tool.name, snake(&field.name))));
                (name, field, shown)
            })
            .collect();
        let result = writer.render(&tool.output, &format!("{}Result", pascal(&tool.name)));
        let _ = write!(functions, "\n    def {}(self", tool.name);
        for (index, (name, field, shown)) in arguments.iter().enumerate() {
            let star = if index == 0 { ", *" } else { "" };
            match field.is_required {
                true => {
                    let _ = write!(functions, "{star}, {name}: {shown}");
                }
                false => {
                    let _ = write!(functions, "{star}, {name}: {shown} | None = None");
                }
            }
        }
        let _ = writeln!(
            functions,
            ") -> {result}:\n        \"\"\"{} \"\"\"",
            tool.about.trim_end_matches('"')
        );
        let pairs: Vec<String> = arguments
            .iter()
            .map(|(name, field, _)| format!("{}: {name}", quote(&field.name)))
            .collect();
        let full = quote(&format!("{server}.{}", tool.tool));
        let _ = writeln!(
            functions,
            "        return _cast({}, _call(self._program, {full}, {{{}}}))",
            quote(&result),
            pairs.join(", ")
        );
    }
    format!(
        "# Made by `pegboard generate python {server}`. Changes are lost when it is made again.\n{CALLING}{types}\n\nclass {class}:\n    \
         \"\"\"The tools of the server {server}.\"\"\"\n\n    def __init__(self, program: Sequence[str] = (\"pegboard\",)) -> None:\n        \
         self._program = program\n{functions}"
    )
}

/// The parameters of a function, each with a name of its own.
pub(super) fn parameters(fields: &[ShapeField]) -> Vec<(String, &ShapeField)> {
    let mut names = UsedNames::default();
    fields
        .iter()
        .map(|field| (names.make_unique(&snake(&field.name)), field))
        .collect()
}

/// The types of nested objects.
struct Types<'a> {
    text: &'a mut String,
    names: &'a mut UsedNames,
}

impl Types<'_> {
    /// The type of a shape. Objects get a type of this name.
    fn render(&mut self, shape: &Shape, name: &str) -> String {
        match shape {
            Shape::Any => "Any".to_owned(),
            Shape::Null => "None".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer => "int".to_owned(),
            Shape::Number => "float".to_owned(),
            Shape::String => "str".to_owned(),
            Shape::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
                format!("Literal[{}]", words.join(", "))
            }
            Shape::List(item) => format!("list[{}]", self.render(item, &format!("{name}Item"))),
            Shape::Map(value) => format!("dict[str, {}]", self.render(value, &format!("{name}Value"))),
            Shape::Either(shapes) => {
                let shown: Vec<String> = shapes.iter().map(|shape| self.render(shape, name)).collect();
                shown.join(" | ")
            }
            Shape::Object(fields) => {
                let name = self.names.make_unique(name);
                let mut entries = String::new();
                for field in fields {
                    let shown = self.render(&field.shape, &format!("{name}{}", pascal(&snake(&field.name))));
                    let shown = if field.is_required {
                        shown
                    } else {
                        format!("NotRequired[{shown}]")
                    };
                    let _ = writeln!(entries, "    {}: {},", quote(&field.name), quote(&shown));
                }
                let _ = write!(self.text, "\n{name} = TypedDict({}, {{\n{entries}}})\n", quote(&name));
                name
            }
        }
    }
}
