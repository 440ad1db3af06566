//! Wrappers in TypeScript. They need no package: tools are called over the HTTP API of `pegboard serve`, or by the command in Node.

use std::fmt::Write as _;

use super::{
    Wrapped,
    names::{UsedNames, camel, pascal, snake},
    one_paragraph, quote,
    shape::{Shape, ShapeField},
};

/// Names that a class must not have: those that it imports or exports again, and the globals it uses.
const USED: [&str; 6] = ["Array", "CallRecord", "Caller", "Promise", "Record", "ToolError"];

/// Everything of the shared file is also an export of each wrapper, so that a program needs one import.
const IMPORTS: &str = r#"
import { type Caller, ToolError, overHttp } from "./pegboard_calls.ts";

export * from "./pegboard_calls.ts";
"#;

pub(super) fn source(server: &str, tools: &[Wrapped]) -> String {
    let mut text =
        format!("// Made by `pegboard generate ts {server}`. Changes are lost when it is made again.\n{IMPORTS}");
    for tool in tools {
        let name = pascal(&tool.name);
        let _ = writeln!(
            text,
            "\n/** The arguments of {}. */\nexport type {name}Args = {};",
            quote(&one_paragraph(&tool.tool)),
            object(&tool.input, 0)
        );
        let _ = writeln!(
            text,
            "\n/** The result of {}. */\nexport type {name}Result = {};",
            quote(&one_paragraph(&tool.tool)),
            result(&tool.output)
        );
    }
    let class = UsedNames::with(&USED).make_unique(&pascal(&snake(server)));
    let _ = writeln!(
        text,
        "\n/** The tools of the server {}. */\nexport class {class} {{",
        quote(server)
    );
    // Private names cannot be those of tools, and Node can run plain fields without a compiler.
    text.push_str(
        "  readonly #caller: Caller;\n\n  constructor(caller: Caller = overHttp()) {\n    this.#caller = caller;\n  }\n",
    );
    for tool in tools {
        let (function, name) = (camel(&tool.name), pascal(&tool.name));
        let optional = if tool.input.iter().any(|field| field.is_required) {
            ""
        } else {
            " = {}"
        };
        let full = quote(&format!("{server}.{}", tool.tool));
        let _ = write!(
            text,
            "\n  /** {} */\n  async {function}(args: {name}Args{optional}): Promise<{name}Result> {{\n    \
             return (await this.#call({full}, args)) as {name}Result;\n  }}\n",
            tool.about
        );
    }
    text.push_str(
        "\n  async #call(name: string, args: object): Promise<unknown> {\n    \
         const record = await this.#caller(name, args);\n    \
         if (record.status !== \"done\" || record.is_error) throw new ToolError(record);\n    \
         return record.structured ?? record.text;\n  }\n}\n",
    );
    text
}

/// A tool without a schema of its result returns text.
fn result(output: &Shape) -> String {
    match output {
        Shape::Any => "unknown".to_owned(),
        shape => render(shape, 0),
    }
}

fn render(shape: &Shape, depth: usize) -> String {
    match shape {
        Shape::Any => "unknown".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer | Shape::Number => "number".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Words(words) => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" | "),
        Shape::List(item) => format!("Array<{}>", render(item, depth)),
        Shape::Map(value) => format!("Record<string, {}>", render(value, depth)),
        Shape::Object(fields) => object(fields, depth),
        Shape::Either(shapes) => shapes
            .iter()
            .map(|shape| render(shape, depth))
            .collect::<Vec<_>>()
            .join(" | "),
    }
}

fn object(fields: &[ShapeField], depth: usize) -> String {
    if fields.is_empty() {
        return "Record<string, unknown>".to_owned();
    }
    let indent = "  ".repeat(depth + 1);
    let mut text = "{\n".to_owned();
    for field in fields {
        if !field.description.is_empty() {
            let _ = writeln!(text, "{indent}/** {} */", field.description);
        }
        let mark = if field.is_required { "" } else { "?" };
        let _ = writeln!(
            text,
            "{indent}{}{mark}: {};",
            quote(&field.name),
            render(&field.shape, depth + 1)
        );
    }
    text + &"  ".repeat(depth) + "}"
}
