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

/// Where hosts have the arguments of a server.
const ARGUMENTS: [&[&str]; 4] = [&["args"], &["command"], &["command", "args"], &["transport", "args"]];

/// The edit that makes an entry start `pegboard mcp` with or without a daemon as `new` does: where in the entry, and what goes there. `repaired`
/// is what goes into the entry before. An entry with options of its own stays.
pub(super) fn update(entry: &Value, new: &Value, repaired: Option<&Value>) -> Option<(&'static [&'static str], Value)> {
    let in_list = |entry: &Value| Some(entry.get("mcpServers")?.as_array()?.first()?.clone());
    if let (Some(first), Some(new)) = (in_list(entry), in_list(new)) {
        let mut list = repaired.or(entry.get("mcpServers"))?.as_array()?.clone();
        let (keys, value) = update(&first, &new, None)?;
        let place = keys
            .iter()
            .try_fold(list.first_mut()?, |inner, key| inner.get_mut(key))?;
        *place = value;
        return Some((&["mcpServers"], Value::Array(list)));
    }
    ARGUMENTS.iter().find_map(|keys| {
        let find = |entry: &Value| {
            let found = keys.iter().try_fold(entry, |value, key| value.get(key))?;
            found.as_array().cloned()
        };
        let old = find(entry)?;
        let (_, wanted) = split_at_mcp(&find(new)?)?;
        let (mut words, options) = split_at_mcp(&old)?;
        if options.iter().any(|option| option != "--daemon") || options == wanted {
            return None;
        }
        if let Some(Value::Array(repaired)) = repaired.filter(|_| *keys == ["command"]) {
            words = split_at_mcp(repaired)?.0;
        }
        words.extend(wanted);
        Some((*keys, Value::Array(words)))
    })
}

/// Words up to the command `mcp`, and its options.
fn split_at_mcp(words: &[Value]) -> Option<(Vec<Value>, Vec<Value>)> {
    let at = words.iter().rposition(|word| word == "mcp")? + 1;
    Some((words[..at].to_vec(), words[at..].to_vec()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_without_options_gets_the_daemon_and_loses_it() {
        let plain = json!({"command": "/x/pegboard", "args": ["mcp"], "env": {"A": "b"}});
        let shared = json!({"command": "/x/pegboard", "args": ["mcp", "--daemon"]});
        let args = |value: Value| Some((&["args"][..], value));
        assert_eq!(update(&plain, &shared, None), args(json!(["mcp", "--daemon"])));
        assert_eq!(update(&shared, &plain, None), args(json!(["mcp"])));
        assert_eq!(update(&plain, &plain, None), None);
        let with_options = json!({"command": "/x/pegboard", "args": ["mcp", "--view", "x"]});
        assert_eq!(update(&with_options, &shared, None), None);
        let npx = json!({"command": "npx", "args": ["-y", "pegboard", "mcp"]});
        assert_eq!(
            update(&npx, &shared, None),
            args(json!(["-y", "pegboard", "mcp", "--daemon"]))
        );
    }

    #[test]
    fn the_program_and_the_daemon_change_together() {
        let old = json!({"command": ["/nowhere/pegboard", "mcp"]});
        let new = json!({"command": ["/new/pegboard", "mcp", "--daemon"]});
        let (_, repaired) = repair(&old, "/new/pegboard").unwrap();
        let (keys, value) = update(&old, &new, Some(&repaired)).unwrap();
        assert_eq!((keys, value), (&["command"][..], new["command"].clone()));
        let old = json!({"mcpServers": [{"command": "/nowhere/pegboard", "args": ["mcp"]}]});
        let new = json!({"mcpServers": [{"command": "/new/pegboard", "args": ["mcp", "--daemon"]}]});
        let (_, repaired) = repair(&old, "/new/pegboard").unwrap();
        let (keys, value) = update(&old, &new, Some(&repaired)).unwrap();
        assert_eq!((keys, value), (&["mcpServers"][..], new["mcpServers"].clone()));
    }

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
