//! Wrappers in Rust, with serde and serde_json. Tools are called by the command.

use std::fmt::Write as _;

use super::{
    Wrapped,
    names::{UsedNames, pascal, snake},
    shape::{Shape, ShapeField},
};
use crate::output::clean;

/// Names that a type must not have: those that it uses.
const USED: [&str; 13] = [
    "Deserialize",
    "Err",
    "None",
    "Ok",
    "Option",
    "Result",
    "Self",
    "Serialize",
    "Some",
    "String",
    "ToolError",
    "Value",
    "Vec",
];

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
        let of = super::one_paragraph(&tool.tool);
        let arguments = writer.object(&tool.input, &format!("{}Args", pascal(&tool.name)), &of);
        let result = writer.render(&tool.output, &format!("{}Result", pascal(&tool.name)), &of);
        let full = to_literal(&format!("{server}.{}", tool.tool));
        let _ = write!(
            functions,
            "\n    /// {}\n    pub fn {}(&self, args: &{arguments}) -> Result<{result}, ToolError> {{\n        \
             call_tool(&self.program, {full}, args)\n    }}\n",
            tool.about, tool.name
        );
    }
    // A program seldom uses all tools of a server.
    format!(
        "// Made by `pegboard generate rust {server}`. Changes are lost when it is made again.\n#![allow(dead_code, unused_imports)]\n\n\
         use serde::{{Deserialize, Serialize}};\nuse serde_json::Value;\n\nuse super::pegboard_calls::call_tool;\npub use super::pegboard_calls::ToolError;\n{types}\n/// The tools of the server `{server}`.\n\
         #[derive(Debug, Clone)]\npub struct {class} {{\n    program: String,\n}}\n\nimpl {class} {{\n    /// Calls tools by this program: `pegboard`, or the path of it.\n    \
         pub fn new(program: impl Into<String>) -> Self {{\n        Self {{ program: program.into() }}\n    }}\n{functions}}}\n"
    )
}

/// The types of objects.
struct Types<'a> {
    text: &'a mut String,
    names: &'a mut UsedNames,
}

impl Types<'_> {
    fn render(&mut self, shape: &Shape, name: &str, of: &str) -> String {
        match shape {
            Shape::Any | Shape::Null => "Value".to_owned(),
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer => "i64".to_owned(),
            Shape::Number => "f64".to_owned(),
            Shape::String => "String".to_owned(),
            Shape::Words(words) => self.words(words, name, of),
            Shape::List(item) => format!("Vec<{}>", self.render(item, &format!("{name}Item"), of)),
            Shape::Map(value) => {
                let value = self.render(value, &format!("{name}Value"), of);
                format!("std::collections::BTreeMap<String, {value}>")
            }
            Shape::Object(fields) => self.object(fields, name, of),
            Shape::Either(shapes) => match shapes.as_slice() {
                [one, Shape::Null] | [Shape::Null, one] => format!("Option<{}>", self.render(one, name, of)),
                _ => "Value".to_owned(),
            },
        }
    }

    fn words(&mut self, words: &[String], name: &str, of: &str) -> String {
        let name = self.names.make_unique(name);
        let mut variants = UsedNames::with(&["Self"]);
        let _ = write!(
            self.text,
            "\n/// A word of `{of}`.\n#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\npub enum {name} {{\n"
        );
        for word in words {
            let variant = variants.make_unique(&pascal(snake(word).trim_end_matches('_')));
            let _ = write!(
                self.text,
                "    /// {}\n    #[serde(rename = {1})]\n    {variant},\n",
                match super::one_paragraph(word).as_str() {
                    "" => "The empty word",
                    word => word,
                },
                to_literal(word)
            );
        }
        self.text.push_str("}\n");
        name
    }

    fn object(&mut self, fields: &[ShapeField], name: &str, of: &str) -> String {
        let name = self.names.make_unique(name);
        let mut known = UsedNames::default();
        let mut entries = String::new();
        for field in fields {
            let member = known.make_unique(&snake(&field.name));
            let shown = self.render(&field.shape, &format!("{name}{}", pascal(&member)), of);
            let description = if field.description.is_empty() {
                &field.name
            } else {
                &field.description
            };
            let _ = writeln!(entries, "    /// {}", super::one_paragraph(description));
            match field.is_required {
                true => {
                    let _ = write!(
                        entries,
                        "    #[serde(rename = {})]\n    pub {member}: {shown},\n",
                        to_literal(&field.name)
                    );
                }
                false => {
                    let _ = write!(
                        entries,
                        "    #[serde(rename = {}, default, skip_serializing_if = \"Option::is_none\")]\n    pub {member}: Option<{shown}>,\n",
                        to_literal(&field.name)
                    );
                }
            }
        }
        let default = if fields.iter().any(|field| field.is_required) {
            ""
        } else {
            ", Default"
        };
        let _ = write!(
            self.text,
            "\n/// A part of `{of}`.\n#[derive(Debug, Clone, PartialEq{default}, Serialize, Deserialize)]\npub struct {name} {{\n{entries}}}\n"
        );
        name
    }
}

/// A string literal of Rust.
fn to_literal(text: &str) -> String {
    // It escapes in the way of Rust what the format leaves.
    clean(&format!("{text:?}")).into_owned()
}
