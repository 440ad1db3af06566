//! Builds a call's arguments from the words of the command line and the tool's schema.

use std::fs::File;

use pegboard::Arguments;
use serde_json::{Map, Value};

use super::{
    given::Given,
    input,
    large_integers::check,
    words::{self, Assigned, Word},
};

/// Reads files and gives every value the type that the schema declares. `order` is that of the arguments, if it is known.
pub(super) async fn build(words: &[Word], schema: &Value, order: Option<&[String]>) -> Result<Arguments, String> {
    let (mut texts, mut exact) = (Vec::new(), Vec::new());
    for Assigned { key, value } in words::assign(words, schema, order)? {
        let json = |text: &str| -> Result<Value, String> {
            let value = serde_json::from_str::<Value>(text).map_err(|error| format!("`{key}` is no JSON: {error}"))?;
            check(text).map_err(|problem| format!("`{key}`: {problem}"))?;
            Ok(value)
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
    check(arguments.as_str())?;
    let mut object: Map<String, Value> = serde_json::from_str(arguments.as_str()).unwrap_or_default();
    for (key, value) in exact {
        let is_declared = schema["properties"].get(&key).is_some();
        words::put(&mut object, &key, is_declared, value)?;
    }
    Ok(object.into())
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
