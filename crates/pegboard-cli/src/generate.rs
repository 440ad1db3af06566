//! Typed wrappers of a server's tools in other languages, made from the schemas of the tools.

mod names;
mod program;
mod python;
mod rust;
mod script;
mod shape;
mod shared;
mod typescript;

use serde_json::Value;

use names::UsedNames;
use shape::Shape;

use crate::output::is_hidden;

/// How deep arguments that are repeated in headers may be.
const MAX_PATH: usize = 8;

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// TypeScript, with no packages
    Ts,
    /// Python 3.11, with the standard library only
    Python,
    /// Rust, with serde and serde_json
    Rust,
    /// A program of Python with a subcommand for each tool
    Cli,
}

/// A tool, as its server defines it.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) tool: String,
    pub(crate) description: Option<String>,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
}

/// Where the generated code is used.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Whether its folder is a package of Python.
    pub(crate) is_package: bool,
    /// How a program reaches the server itself. Without it, it calls `pegboard`.
    pub(crate) launch: Option<Value>,
}

/// A tool with the shapes of its arguments and of its structured result.
#[derive(Debug)]
struct Wrapped {
    tool: String,
    /// The name of the function, in words of lower case with `_` between them. No other tool has it.
    name: String,
    /// On one line, and safe in a comment.
    description: String,
    /// The description, or the name if there is none.
    about: String,
    input: Vec<shape::ShapeField>,
    output: Shape,
    /// The arguments that are repeated in HTTP headers: the path of each, and the name of its header.
    headers: Vec<(Vec<String>, String)>,
}

/// The source of the wrappers for a server's tools.
pub(crate) fn generate(language: Language, server: &str, tools: &[Definition], place: &Place) -> String {
    let mut names = UsedNames::default();
    let wrapped: Vec<Wrapped> = tools.iter().map(|tool| wrap(tool, &mut names)).collect();
    match language {
        Language::Ts => typescript::source(server, &wrapped),
        Language::Python => python::source(server, &wrapped, place.is_package),
        Language::Rust => rust::source(server, &wrapped),
        Language::Cli => match &place.launch {
            Some(launch) => program::source(server, launch, &wrapped),
            None => script::source(server, &wrapped),
        },
    }
}

fn wrap(tool: &Definition, names: &mut UsedNames) -> Wrapped {
    let input = match Shape::from_schema(&tool.input) {
        Shape::Object(fields) => fields,
        _ => Vec::new(),
    };
    let description = tool.description.as_deref().map(one_paragraph).unwrap_or_default();
    Wrapped {
        name: names.make_unique(&names::snake(&tool.tool)),
        tool: tool.tool.clone(),
        about: match description.as_str() {
            "" => one_paragraph(&tool.tool),
            about => about.to_owned(),
        },
        description,
        input,
        output: tool.output.as_ref().map_or(Shape::Any, Shape::from_schema),
        headers: header_arguments(&tool.input, &[]),
    }
}

/// The arguments of a schema, and of its objects, that have an `x-mcp-header`.
fn header_arguments(schema: &Value, path: &[String]) -> Vec<(Vec<String>, String)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let one = |(name, property): (&String, &Value)| {
        let path = [path, std::slice::from_ref(name)].concat();
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        let is_token = |header: &&str| {
            !header.is_empty()
                && header
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let own = header.filter(is_token).map(|header| (path.clone(), header.to_owned()));
        let inner = match path.len() < MAX_PATH {
            true => header_arguments(property, &path),
            false => Vec::new(),
        };
        own.into_iter().chain(inner).collect::<Vec<_>>()
    };
    properties.into_iter().flatten().flat_map(one).collect()
}

/// A text on one line, without invisible characters and without anything that could end a comment or a string of any of the languages.
fn one_paragraph(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain: String = words.join(" ").chars().filter(|c| !is_hidden(*c)).collect();
    // A backslash first: with it `*/` may only come to be.
    plain.replace('\\', "/").replace("*/", "* /").replace("\"\"\"", "'''")
}

/// A text as a string literal of JSON, which is one of TypeScript too. Invisible characters are escaped.
fn quote(text: &str) -> String {
    escape(text, |c| {
        let mut units = [0; 2];
        let units = c.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// The same for Python, where two halves of a character are not one.
fn quote_in_python(text: &str) -> String {
    escape(text, |c| match u32::from(c) {
        code @ 0x1_0000.. => format!("\\U{code:08x}"),
        code => format!("\\u{code:04x}"),
    })
}

fn escape(text: &str, escape: impl Fn(char) -> String) -> String {
    let plain = Value::from(text).to_string();
    let parts = plain.chars().map(|c| match is_hidden(c) {
        true => escape(c),
        false => c.to_string(),
    });
    parts.collect()
}
