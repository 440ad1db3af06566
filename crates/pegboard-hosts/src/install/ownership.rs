//! What an entry of Pegboard in a host's file starts, and what is kept of it.

use std::path::Path;

use serde_json::Value;

use crate::own_entries::url_of;

/// Where hosts have the program of a server.
const PROGRAMS: [&[&str]; 4] = [&["command"], &["command", "path"], &["cmd"], &["transport", "command"]];

fn program_of(entry: &Value) -> Option<(&'static [&'static str], &Value)> {
    PROGRAMS.iter().find_map(|keys| {
        let found = keys.iter().try_fold(entry, |value, key| value.get(key))?;
        (found.is_string() || found.is_array()).then_some((*keys, found))
    })
}

/// What an entry starts or connects to, without the query of a URL.
pub(super) fn target_of(entry: &Value) -> Option<String> {
    if let Some(list) = entry.get("mcpServers").and_then(Value::as_array) {
        return target_of(list.first()?);
    }
    if let Some(url) = url_of(entry) {
        return url.split(['?', '#']).next().map(str::to_owned);
    }
    let (_, program) = program_of(entry)?;
    let words = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        value => vec![value.clone()],
    };
    let all = [Some(program), entry.get("args")].into_iter().flatten().flat_map(words);
    let all: Vec<String> = all.filter_map(|word| word.as_str().map(str::to_owned)).collect();
    Some(all.join(" "))
}

/// The edit that makes an entry start `program` if the one that it starts is gone: where in the entry, and what goes there.
pub(super) fn repair(entry: &Value, program: &str) -> Option<(&'static [&'static str], Value)> {
    if let Some(list) = entry.get("mcpServers").and_then(Value::as_array) {
        let mut list = list.clone();
        let first = list.first_mut()?;
        let (keys, value) = repair(first, program)?;
        let place = keys.iter().try_fold(first, |inner, key| inner.get_mut(key))?;
        *place = value;
        return Some((&["mcpServers"], Value::Array(list)));
    }
    let (keys, found) = program_of(entry)?;
    let (old, value) = match found {
        Value::Array(words) => {
            let mut words = words.clone();
            let old = std::mem::replace(words.first_mut()?, program.into());
            (old, Value::Array(words))
        }
        old => (old.clone(), program.into()),
    };
    let path = Path::new(old.as_str()?);
    // Another program, such as `npx`, has arguments that do not fit this one.
    let is_named = matches!(path.file_name()?.to_str()?, "pegboard" | "pegboard.exe");
    let is_gone = path.is_absolute() && path.try_exists().is_ok_and(|is_there| !is_there);
    (is_named && is_gone).then_some((keys, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_program_that_is_gone_is_replaced() {
        let gone = json!({"command": ["/nowhere/bin/pegboard", "mcp", "--daemon"]});
        let (keys, value) = repair(&gone, "/new/pegboard").unwrap();
        assert_eq!(
            (keys, value),
            (&["command"][..], json!(["/new/pegboard", "mcp", "--daemon"]))
        );
        let block = json!({"mcpServers": [{"command": "/nowhere/pegboard", "args": ["mcp"]}]});
        let (_, value) = repair(&block, "/new/pegboard").unwrap();
        assert_eq!(value, json!([{"command": "/new/pegboard", "args": ["mcp"]}]));
        for kept in [
            json!({"command": "pegboard", "args": ["mcp"]}),
            json!({"command": "/nowhere/npx", "args": ["pegboard", "mcp"]}),
            json!({"url": "http://127.0.0.1:7337/mcp"}),
        ] {
            assert_eq!(repair(&kept, "/new/pegboard"), None);
        }
    }
}
