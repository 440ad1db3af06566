//! Converts the config files of other programs to our structure: a list of named server tables.

use super::{
    fields::TOP,
    problem::{Report, join},
    spelling::snake,
    tree::{KeyValue, Node, Value},
};

/// The most servers in one file. Every name is compared with every other.
const MAX_SERVERS: usize = 1000;

/// A file in our structure.
pub(super) struct Shaped {
    /// The servers: the entry with the name and location, and the flattened settings.
    pub(super) servers: Vec<(KeyValue, Vec<KeyValue>)>,
    /// All other top-level entries.
    pub(super) rest: Vec<KeyValue>,
}

/// Finds the servers in a file: `servers`, `mcpServers`, `mcp_servers`, `context_servers`, `mcp`, or a bare list of servers.
pub(super) fn shape(root: Node, report: &mut Report) -> Shaped {
    let mut shaped = Shaped {
        servers: Vec::new(),
        rest: Vec::new(),
    };
    match root.value {
        Value::Map(entries) => top(entries, &mut shaped, report),
        Value::List(_) => servers(root, &mut shaped, report),
        // An empty file has no settings; `Source::read` refuses the others.
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {}
    }
    shaped
}

fn top(entries: Vec<KeyValue>, shaped: &mut Shaped, report: &mut Report) {
    let mut foreign = false;
    for entry in entries {
        match snake(&entry.key).as_str() {
            "servers" => servers(entry.value, shaped, report),
            "mcp_servers" | "context_servers" => {
                foreign = true;
                servers(entry.value, shaped, report);
            }
            "mcp" => {
                foreign = true;
                inside_mcp(entry.value, shaped, report);
            }
            "$schema" => {}
            _ if entry.is_note() => {}
            _ => shaped.rest.push(entry),
        }
    }
    gather_reconnecting(shaped);
    let settings = shaped.servers.iter_mut().flat_map(|(_, settings)| settings);
    for setting in settings.chain(&mut shaped.rest) {
        count_first_starts(setting);
    }
    if foreign {
        leave_out_foreign(shaped, report);
    }
}

/// Moves minion's top-level settings for restarts into `restart`.
fn gather_reconnecting(shaped: &mut Shaped) {
    let is_one = |entry: &KeyValue| {
        let names = ["enable_auto_reconnect", "max_reconnect_retries", "reconnect_backoff"];
        names.contains(&snake(&entry.key).as_str())
    };
    let (parts, rest): (Vec<KeyValue>, Vec<KeyValue>) = std::mem::take(&mut shaped.rest).into_iter().partition(is_one);
    shaped.rest = rest;
    let Some(at) = parts.first().map(|part| part.at) else {
        return;
    };
    let entry = |key: &str, value: Node| KeyValue {
        key: key.to_owned(),
        at: value.at,
        value,
    };
    let restart = shaped.rest.iter_mut().find(|entry| snake(&entry.key) == "restart");
    match restart.map(|entry| &mut entry.value) {
        Some(Node {
            value: Value::Map(keys),
            ..
        }) => keys.extend(parts),
        Some(switch) => {
            let enabled = entry("enabled", switch.clone());
            switch.value = Value::Map(std::iter::once(enabled).chain(parts).collect());
        }
        None => shaped.rest.push(entry("restart", Node::new(Value::Map(parts), at))),
    }
}

/// Converts minion's number of starts after the first one to `max_attempts`, which counts all of them.
fn count_first_starts(setting: &mut KeyValue) {
    let Value::Map(parts) = &mut setting.value.value else {
        return;
    };
    if snake(&setting.key) != "restart" {
        return;
    }
    for part in parts
        .iter_mut()
        .filter(|part| snake(&part.key) == "max_reconnect_retries")
    {
        if let Value::Int(retries @ 0..) = &mut part.value.value {
            *retries = retries.saturating_add(1);
            part.key = "max_attempts".to_owned();
        }
    }
}

/// Reads `mcp`, which contains `servers` or is itself the table of servers.
fn inside_mcp(node: Node, shaped: &mut Shaped, report: &mut Report) {
    let Value::Map(entries) = &node.value else {
        return servers(node, shaped, report);
    };
    let holds_servers = |entry: &KeyValue| matches!(snake(&entry.key).as_str(), "servers" | "mcp_servers");
    if !entries.iter().any(holds_servers) {
        return servers(node, shaped, report);
    }
    let Value::Map(entries) = node.value else {
        return;
    };
    for entry in entries.into_iter().filter(holds_servers) {
        servers(entry.value, shaped, report);
    }
}

/// Removes the settings of the program that the file belongs to, with one warning for all of them.
fn leave_out_foreign(shaped: &mut Shaped, report: &mut Report) {
    let (ours, theirs): (Vec<KeyValue>, Vec<KeyValue>) = std::mem::take(&mut shaped.rest)
        .into_iter()
        .partition(|entry| TOP.find(&entry.key).is_some());
    shaped.rest = ours;
    let Some(first) = theirs.first() else {
        return;
    };
    let names: Vec<String> = theirs.iter().take(5).map(|entry| join("", &entry.key)).collect();
    let more = if theirs.len() > 5 { ", …" } else { "" };
    report.warn(
        first.at,
        "",
        format!(
            "settings of another program are passed over: {}{more}",
            names.join(", ")
        ),
    );
}

fn servers(node: Node, shaped: &mut Shaped, report: &mut Report) {
    let at = node.at;
    match node.value {
        Value::Null => {}
        Value::Map(entries) => {
            for entry in entries {
                server(entry, shaped, report);
            }
        }
        Value::List(items) => {
            for (index, item) in items.into_iter().enumerate() {
                match name_of(&item) {
                    Some(name) => {
                        let entry = KeyValue {
                            key: name,
                            at: item.at,
                            value: item,
                        };
                        server(entry, shaped, report);
                    }
                    None => report.error_with(
                        item.at,
                        &format!("servers[{index}]"),
                        "the server has no name",
                        "add `name`",
                    ),
                }
            }
        }
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {
            report.error(at, "servers", "must be a table of servers, or a list of them");
        }
    }
}

fn is_name(key: &str) -> bool {
    matches!(snake(key).as_str(), "name" | "server_name" | "id")
}

fn name_of(item: &Node) -> Option<String> {
    let Value::Map(entries) = &item.value else {
        return None;
    };
    let entry = entries.iter().find(|entry| is_name(&entry.key))?;
    match &entry.value.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    }
}

fn server(entry: KeyValue, shaped: &mut Shaped, report: &mut Report) {
    let path = join("servers", &entry.key);
    let Value::Map(settings) = &entry.value.value else {
        let message = format!("must be a table, not {}", entry.value.kind());
        return report.error(entry.at, &path, message);
    };
    if shaped.servers.len() >= MAX_SERVERS {
        let message = format!("a file has at most {MAX_SERVERS} servers");
        return report.error(entry.at, &path, message);
    }
    if shaped.servers.iter().any(|(known, _)| known.key == entry.key) {
        return report.error(entry.at, &path, "the server is there twice");
    }
    let mut flat = Vec::with_capacity(settings.len());
    for setting in settings.iter().filter(|setting| !is_name(&setting.key)) {
        flatten(setting, &mut flat);
    }
    shaped.servers.push((entry, flat));
}

/// Flattens `transport = { type, command, … }` and `command = { path, args, env }` into the server's table.
fn flatten(setting: &KeyValue, flat: &mut Vec<KeyValue>) {
    match (snake(&setting.key).as_str(), &setting.value.value) {
        ("transport", Value::Map(parts)) => flat.extend(parts.iter().cloned()),
        ("command", Value::Map(parts)) => flat.extend(parts.iter().cloned().map(|mut part| {
            if part.key == "path" {
                part.key = "command".into();
            }
            part
        })),
        _ => flat.push(setting.clone()),
    }
}
