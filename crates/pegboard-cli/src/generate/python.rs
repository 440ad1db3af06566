//! Wrappers in Python, with the standard library only. Tools are called by the command.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    Wrapped,
    names::{UsedNames, pascal, snake},
    quote_in_python as quote,
    shape::{Shape, ShapeField},
};

/// Names that a class must not have: those that it uses.
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

/// The wrappers. Those of a package import what they share from the package.
pub(super) fn source(server: &str, tools: &[Wrapped], is_package: bool) -> String {
    let mut types = String::new();
    let mut functions = String::new();
    let mut names = UsedNames::with(&USED);
    let mut typing = BTreeSet::new();
    let class = names.make_unique(&pascal(&snake(server)));
    for tool in tools {
        let mut writer = Types {
            text: &mut types,
            names: &mut names,
            typing: &mut typing,
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
    let typing: Vec<&str> = typing.into_iter().collect();
    let typing = match typing.as_slice() {
        [] => String::new(),
        names => format!("from typing import {}\n", names.join(", ")),
    };
    let cast = if tools.is_empty() {
        ""
    } else {
        "from typing import cast as _cast\n"
    };
    let call = if tools.is_empty() {
        ""
    } else {
        "from {dot}pegboard_calls import call_tool as _call\n"
    };
    let dot = if is_package { "." } else { "" };
    let call = call.replace("{dot}", dot);
    format!(
        "# Made by `pegboard generate python {server}`. Changes are lost when it is made again.\n\nfrom __future__ import annotations\n\n\
         from collections.abc import Sequence\n{typing}{cast}\nfrom {dot}pegboard_calls import ToolError\n{call}\n\
         __all__ = [{}, \"ToolError\"]\n{types}\n\nclass {class}:\n    \
         \"\"\"The tools of the server {server}.\"\"\"\n\n    def __init__(self, program: Sequence[str] = (\"pegboard\",)) -> None:\n        \
         self._program = program\n{functions}",
        quote(&class)
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
    /// What they use of the module `typing`.
    typing: &'a mut BTreeSet<&'static str>,
}

impl Types<'_> {
    fn of_typing(&mut self, name: &'static str) -> &'static str {
        self.typing.insert(name);
        name
    }

    /// The type of a shape. Objects get a type of this name.
    fn render(&mut self, shape: &Shape, name: &str) -> String {
        match shape {
            Shape::Any => self.of_typing("Any").to_owned(),
            Shape::Null => "None".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer => "int".to_owned(),
            Shape::Number => "float".to_owned(),
            Shape::String => "str".to_owned(),
            Shape::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
                format!("{}[{}]", self.of_typing("Literal"), words.join(", "))
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
                        format!("{}[{shown}]", self.of_typing("NotRequired"))
                    };
                    let _ = writeln!(entries, "    {}: {},", quote(&field.name), quote(&shown));
                }
                let kind = self.of_typing("TypedDict");
                let _ = write!(self.text, "\n{name} = {kind}({}, {{\n{entries}}})\n", quote(&name));
                name
            }
        }
    }
}
