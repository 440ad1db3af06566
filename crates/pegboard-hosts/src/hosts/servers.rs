//! Lists the servers of a host's file.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    entry,
    folders::{Folders, System},
    host::Host,
    pegboard_entry::is_pegboard,
    reader::Imported,
    variables::{Input, ProjectPaths},
};

/// A server in a host's file.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// Its name there.
    pub(crate) name: String,
    /// The keys under which it is; empty if it is in a list.
    pub(crate) keys: Vec<String>,
    /// The project for which alone the host uses it.
    pub(crate) project: Option<String>,
    /// The entry as written there.
    pub(crate) entry: Value,
    /// What it is in our config, or why it cannot be there.
    pub(crate) imported: Result<Imported, String>,
    /// Whether it is Pegboard itself.
    pub(crate) is_pegboard: bool,
    /// What the host asks its user for, to fill in the entry.
    pub(crate) inputs: Vec<Input>,
}

/// The servers in a file of a host. `project` is the folder that the file belongs to, if it is a project's.
pub(crate) fn servers_in(host: &Host, file: &Value, folders: &Folders, project: Option<&Path>) -> Vec<Listed> {
    let place = |project: Option<&Path>| ProjectPaths {
        project: project.map(Path::to_owned),
        is_windows: folders.system == System::Windows,
    };
    let inputs = inputs(file);
    let mut found = Vec::new();
    let mut add = |name: &str, entry: &Value, keys: Vec<String>, own: Option<&str>, is_off: bool| {
        let place = place(own.map(Path::new).or(project));
        let mut imported = entry::import(name, entry, host.dialect, &place);
        if is_off && let Ok(imported) = &mut imported {
            imported.settings.insert("enabled".to_owned(), false.into());
        }
        let asked = |input: &&Input| {
            imported
                .as_ref()
                .is_ok_and(|imported| imported.inputs.contains(&input.id))
        };
        found.push(Listed {
            inputs: inputs_of(&imported, inputs.iter().filter(asked)),
            name: name.to_owned(),
            keys,
            project: own.map(str::to_owned),
            entry: entry.clone(),
            is_pegboard: is_pegboard(entry),
            imported,
        });
    };
    let is_off = |name: &str| is_excluded(file, name);
    for keys in host.keys {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        match at(file, &keys) {
            Some(Value::Object(servers)) => {
                for (name, entry) in servers.iter().filter(|(name, entry)| is_server(name, entry)) {
                    let path = keys.iter().chain([name]).cloned().collect();
                    add(name, entry, path, None, is_off(name));
                }
            }
            Some(Value::Array(servers)) => {
                for entry in servers {
                    let name = entry.get("name").or_else(|| entry.get("uses"));
                    let name = name.and_then(Value::as_str).unwrap_or("server");
                    add(name, entry, Vec::new(), None, false);
                }
            }
            _ => {}
        }
    }
    for (folder, settings) in file.get("projects").and_then(Value::as_object).into_iter().flatten() {
        let disabled = settings.get("disabledMcpServers").and_then(Value::as_array);
        let is_off = |name: &str| disabled.is_some_and(|names| names.iter().any(|one| one == name));
        for (name, entry) in settings
            .get("mcpServers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let path = ["projects", folder, "mcpServers", name].map(str::to_owned).into();
            add(name, entry, path, Some(folder), is_off(name));
        }
    }
    found
}

/// The value under these keys.
pub(super) fn at<'v>(value: &'v Value, keys: &[String]) -> Option<&'v Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

/// Whether a key of the table of servers names one: some hosts have settings of their own among them.
fn is_server(name: &str, entry: &Value) -> bool {
    let Some(table) = entry.as_object() else {
        // An import says of what else is there that it cannot be used; a text may be a comment or the address of a schema.
        let is_remark = entry.is_string() && name.starts_with(['$', '_', '/', '#']);
        return !is_remark && !matches!(name, "servers" | "timeout");
    };
    let is_newer_form = matches!(name, "servers" | "timeout") && !is_connection(table);
    // `{"enabled": false}` only switches a server of another file.
    let is_switch = table.keys().all(|key| key == "enabled") && !table.is_empty();
    !is_newer_form && !is_switch
}

/// Whether a table says how to reach a server, and is no table of servers, of which one may have the name `command` or `url`.
pub(crate) fn is_connection(table: &Map<String, Value>) -> bool {
    let mut values = ["command", "url"].iter().filter_map(|key| table.get(*key));
    values.any(|value| !value.is_object() || value.get("path").is_some_and(Value::is_string))
}

/// Whether a list beside the servers switches this one off.
fn is_excluded(file: &Value, name: &str) -> bool {
    let has = |list: Option<&Value>| {
        let names = list.and_then(Value::as_array)?;
        Some(names.iter().any(|one| one.as_str() == Some(name)))
    };
    let mcp = file.get("mcp");
    let is_left_out = has(mcp.and_then(|mcp| mcp.get("allowed"))) == Some(false)
        && mcp
            .and_then(|mcp| mcp.get("allowed"))
            .and_then(Value::as_array)
            .is_some_and(|names| !names.is_empty());
    is_left_out || has(mcp.and_then(|mcp| mcp.get("excluded"))) == Some(true)
}

/// The declared inputs that an entry uses, and those that it uses without a declaration.
fn inputs_of<'i>(imported: &Result<Imported, String>, declared: impl Iterator<Item = &'i Input>) -> Vec<Input> {
    let mut inputs: Vec<Input> = declared.cloned().collect();
    for id in imported.iter().flat_map(|imported| &imported.inputs) {
        if !inputs.iter().any(|input| input.id == *id) {
            inputs.push(Input {
                id: id.clone(),
                description: id.clone(),
                is_secret: true,
                default: None,
                options: Vec::new(),
            });
        }
    }
    inputs
}

/// The inputs that a file declares.
fn inputs(file: &Value) -> Vec<Input> {
    let list = file.get("inputs").or_else(|| file.get("mcp")?.get("inputs"));
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let option = |value: &Value| text(Some(value)).or_else(|| text(value.get("value")));
    list.filter_map(|input| {
        let id = text(input.get("id"))?;
        Some(Input {
            description: text(input.get("description")).unwrap_or_else(|| id.clone()),
            is_secret: input.get("password").and_then(Value::as_bool).unwrap_or(false),
            default: text(input.get("default")),
            options: input
                .get("options")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(option)
                .collect(),
            id,
        })
    })
    .collect()
}
