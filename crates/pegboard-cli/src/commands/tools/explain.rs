//! Explains one tool in full: what it does, its arguments with nested fields and limits, its result, an example call.

use std::fmt::Write as _;

use pegboard::ListedTool;
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr as _;

use super::{
    example,
    schema_text::{SchemaNode, signature},
};
use crate::output::{Paint, clean, one_line};

/// The most lines about fields of one schema.
const MAX_FIELDS: usize = 400;

/// The explanation, wrapped at `width` columns.
pub(super) fn explain(listed: &ListedTool, paint: Paint, width: usize) -> String {
    let tool = &listed.tool;
    let (input, order) = (tool.input_schema.value(), tool.argument_names().unwrap_or_default());
    let arguments = SchemaNode::in_order(&input, &order);
    let output = tool.output_schema.as_ref().map(|schema| schema.value());
    let mut text = format!("{}\n", paint.bold(&one_line(&tool.dotted_name())));
    wrap(&mut text, &signature(&tool.name, arguments, output.as_ref()), 2, width);
    let descriptions = [tool.title.as_deref(), tool.description.as_deref()];
    for description in descriptions.into_iter().flatten() {
        text.push('\n');
        description
            .trim()
            .lines()
            .for_each(|line| wrap(&mut text, line, 2, width));
    }
    fields(&mut text, "Arguments", arguments, paint, width);
    if let Some(output) = &output {
        fields(&mut text, "Result", SchemaNode::root(output), paint, width);
    }
    let hints = hints(tool.annotations.as_ref());
    if !hints.is_empty() {
        let _ = writeln!(text, "\n{}\n  {}", paint.bold("The server says"), hints.join(", "));
    }
    let command = example::command(&tool.dotted_name(), arguments);
    let _ = writeln!(text, "\n{}\n  {}", paint.bold("Example"), one_line(&command));
    text
}

fn fields(text: &mut String, title: &str, root: SchemaNode<'_>, paint: Paint, width: usize) {
    let properties = root.properties();
    if properties.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", paint.bold(title));
    let mut left = MAX_FIELDS;
    for (name, node, is_required) in properties {
        field(text, name, node, is_required, 2, width, &mut left);
    }
}

/// A field, its description, and the fields in it.
fn field(
    text: &mut String,
    name: &str,
    node: SchemaNode<'_>,
    is_required: bool,
    indent: usize,
    width: usize,
    left: &mut usize,
) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let mut facts = vec![node.type_text()];
    if is_required {
        facts.push("required".to_owned());
    }
    facts.extend(node.limits());
    wrap(text, &format!("{name}: {}", facts.join(", ")), indent, width);
    if let Some(description) = node.get("description").and_then(Value::as_str) {
        wrap(text, description, indent + 4, width);
    }
    let inner = [Some(node), node.items()]
        .into_iter()
        .flatten()
        .chain(node.alternatives());
    for (name, node, is_required) in inner.flat_map(SchemaNode::properties) {
        field(text, name, node, is_required, indent + 2, width, left);
    }
}

/// The server's hints on a tool's effects. They are claims, not facts.
fn hints(annotations: Option<&Map<String, Value>>) -> Vec<&'static str> {
    let hint = |key: &str| annotations.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let mut hints = Vec::new();
    hints.extend(hint("readOnlyHint").map(|yes| if yes { "read-only" } else { "changes something" }));
    hints.extend(hint("destructiveHint").map(|yes| if yes { "destructive" } else { "not destructive" }));
    hints.extend(hint("idempotentHint").map(|yes| if yes { "idempotent" } else { "not idempotent" }));
    hints.extend(hint("openWorldHint").map(|yes| if yes { "open world" } else { "closed world" }));
    hints
}

/// Appends a text with lines of at most `width` columns where its words allow it.
fn wrap(into: &mut String, text: &str, indent: usize, width: usize) {
    let text = clean(text);
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.width() > width {
            into.push('\n');
            column = 0;
        }
        let gap = if column == 0 { indent } else { 1 };
        into.push_str(&" ".repeat(gap));
        into.push_str(word);
        column += gap + word.width();
    }
    into.push('\n');
}
