//! Parses TOML into a located tree.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    lines::LineStarts,
    node::{KeyValue, Location, MAX_DEPTH, Node, SyntaxError, Value},
};

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    let lines = LineStarts::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(Location::START, |span| lines.place(span.start));
        SyntaxError::new(at, error.message().replace('\n', ", "))
    })?;
    let at = Location::START;
    Ok(Node::new(entries(table.get_ref(), &lines, 1)?, at))
}

fn entries(table: &DeTable<'_>, lines: &LineStarts<'_>, depth: usize) -> Result<Value, SyntaxError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        entries.push(KeyValue {
            key: key.get_ref().to_string(),
            at: lines.place(key.span().start),
            value: node(value, lines, depth + 1)?,
        });
    }
    // The parser sorts by key; problems are reported in the order of the file.
    entries.sort_by_key(|entry| entry.at);
    Ok(Value::Map(entries))
}

fn node(spanned: &Spanned<DeValue<'_>>, lines: &LineStarts<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let at = lines.place(spanned.span().start);
    if depth > MAX_DEPTH {
        return Err(SyntaxError::too_deep(at));
    }
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix());
            Value::Int(value.map_err(|_| SyntaxError::new(at, "the number is too large"))?)
        }
        DeValue::Float(float) => {
            let value = float.as_str().parse();
            Value::Float(value.map_err(|_| SyntaxError::new(at, "not a number"))?)
        }
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(datetime) => Value::Text(datetime.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| node(item, lines, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => entries(table, lines, depth)?,
    };
    Ok(Node::new(value, at))
}
