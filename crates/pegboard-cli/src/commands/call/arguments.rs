//! Builds a call's arguments from the words of the command line and the tool's schema.

use std::fs::File;

use pegboard::Arguments;
use serde_json::{Map, Value};

use super::{
    function_form::cut,
    given::Given,
    input,
    words::{self, Assigned, Word},
};

/// Reads files and gives every value the type that the schema declares. `order` is that of the arguments, if it is known.
pub(super) async fn build(words: &[Word], schema: &Value, order: Option<&[String]>) -> Result<Arguments, String> {
    let (mut texts, mut exact) = (Vec::new(), Vec::new());
    for Assigned { key, value } in words::assign(words, schema, order)? {
        let json = |text: &str| {
            let value = serde_json::from_str::<Value>(text).map_err(|error| format!("`{key}` is no JSON: {error}"))?;
            match inexact_integer(text) {
                None => Ok(value),
                Some(number) => Err(format!(
                    "`{key}`: the integer {} has more than 64 bits and would be rounded; write it as a text if the tool takes one, or \
                     with an exponent, such as 1e30",
                    cut(number)
                )),
            }
        };
        match value {
            Given::Text(text) => texts.push((key, text)),
            Given::File(path) => texts.push((key, file(path).await?)),
            Given::Json(value) => exact.push((key, value)),
            Given::JsonText(text) => {
                let value = json(&text)?;
                exact.push((key, value));
            }
            Given::JsonFile(path) => {
                let value = json(&file(path).await?)?;
                exact.push((key, value));
            }
        }
    }
    let pairs = texts.iter().map(|(key, text)| (key.as_str(), text.as_str()));
    let arguments = Arguments::from_pairs(pairs, schema).map_err(|error| error.to_string())?;
    if exact.is_empty() {
        return Ok(arguments);
    }
    let mut object: Map<String, Value> = serde_json::from_str(arguments.as_str()).unwrap_or_default();
    for (key, value) in exact {
        let is_declared = schema["properties"].get(&key).is_some();
        words::put(&mut object, &key, is_declared, value)?;
    }
    Ok(object.into())
}

/// The first integer in valid JSON that does not fit into 64 bits. It would be sent as the nearest number with a fraction.
fn inexact_integer(json: &str) -> Option<&str> {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_string(text);
            continue;
        }
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let is_integer = !number.contains(['.', 'e', 'E']);
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows the closing quote of a JSON string.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// The text of a file; `-` is stdin.
async fn file(path: String) -> Result<String, String> {
    match path.as_str() {
        "-" => input::from("stdin", || Ok(std::io::stdin())).await,
        name => {
            let opened = path.clone();
            input::from(name, move || File::open(opened)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_that_would_be_rounded_are_inexact() {
        for (json, inexact) in [
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("[1, -9223372036854775809]", Some("-9223372036854775809")),
            ("{\"a\": [18446744073709551616]}", Some("18446744073709551616")),
            ("[18446744073709551615, -9223372036854775808, 1e30, 1.5, -0]", None),
            ("\"99999999999999999999\"", None),
            (r#"{"a\"99999999999999999999": true}"#, None),
        ] {
            assert_eq!(inexact_integer(json), inexact, "{json}");
        }
    }
}
