//! The entry that makes a host use Pegboard.

use serde_json::{Value, json};

use super::host::EntryForm;

/// How the host reaches Pegboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It starts the program.
    Process {
        /// The path of the program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It connects to a running `pegboard serve`.
    Url(String),
}

/// The entry in the form of a host; `None` if the host cannot connect to a URL.
pub(crate) fn entry_for(form: EntryForm, connection: &Connection, name: &str) -> Option<Value> {
    Some(match connection {
        Connection::Process { program, args } => process(form, program, args, name),
        Connection::Url(url) => remote(form, url, name)?,
    })
}

fn process(form: EntryForm, program: &str, args: &[String], name: &str) -> Value {
    match form {
        EntryForm::ProcessOnly | EntryForm::Plain | EntryForm::Windsurf | EntryForm::HttpUrl | EntryForm::Mcporter => {
            json!({"command": program, "args": args})
        }
        EntryForm::Typed => json!({"type": "stdio", "command": program, "args": args}),
        EntryForm::ClaudeCode => json!({"type": "stdio", "command": program, "args": args, "env": {}}),
        EntryForm::Zed => json!({"source": "custom", "command": program, "args": args, "env": {}}),
        EntryForm::Goose => json!({
            "type": "stdio", "name": name, "description": "", "cmd": program, "args": args,
            "envs": {}, "env_keys": [], "enabled": true, "bundled": null, "timeout": 300,
        }),
        EntryForm::Cline => json!({"command": program, "args": args, "disabled": false}),
        EntryForm::Copilot => json!({"type": "local", "command": program, "args": args, "tools": ["*"]}),
        EntryForm::OpenCode => {
            let command: Vec<&str> = std::iter::once(program)
                .chain(args.iter().map(String::as_str))
                .collect();
            // Its usual limit of 5 s is short for a gateway that starts its servers.
            json!({"type": "local", "command": command, "enabled": true, "timeout": 30_000})
        }
        EntryForm::ContinueBlock => json!({
            "name": "Pegboard", "version": "1.0.0", "schema": "v1",
            "mcpServers": [{"name": name, "type": "stdio", "command": program, "args": args}],
        }),
    }
}

fn remote(form: EntryForm, url: &str, name: &str) -> Option<Value> {
    Some(match form {
        EntryForm::ProcessOnly => return None,
        EntryForm::Plain | EntryForm::Zed => json!({"url": url}),
        EntryForm::Typed | EntryForm::ClaudeCode => json!({"type": "http", "url": url}),
        EntryForm::Windsurf => json!({"serverUrl": url}),
        EntryForm::HttpUrl => json!({"httpUrl": url}),
        EntryForm::Goose => json!({
            "type": "streamable_http", "name": name, "description": "", "uri": url, "headers": {},
            "envs": {}, "env_keys": [], "enabled": true, "bundled": null, "timeout": 300,
        }),
        EntryForm::Cline => json!({"type": "streamableHttp", "url": url, "disabled": false}),
        EntryForm::Copilot => json!({"type": "http", "url": url, "tools": ["*"]}),
        EntryForm::OpenCode => json!({"type": "remote", "url": url, "enabled": true, "timeout": 30_000}),
        EntryForm::ContinueBlock => json!({
            "name": "Pegboard", "version": "1.0.0", "schema": "v1",
            "mcpServers": [{"name": name, "type": "streamable-http", "url": url}],
        }),
        EntryForm::Mcporter => json!({"baseUrl": url}),
    })
}

/// Whether an entry starts `pegboard mcp`, in the form of any host.
pub(crate) fn is_pegboard(entry: &Value) -> bool {
    let entry = match entry.get("transport") {
        Some(transport @ Value::Object(_)) => transport,
        _ => entry,
    };
    let mut words: Vec<&str> = Vec::new();
    match entry.get("command").or_else(|| entry.get("cmd")) {
        Some(Value::String(program)) => words.push(program),
        Some(Value::Array(list)) => words.extend(list.iter().filter_map(Value::as_str)),
        Some(old @ Value::Object(_)) => {
            return is_pegboard(&json!({"command": old.get("path"), "args": old.get("args")}));
        }
        _ => return false,
    }
    words.extend(
        entry
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    );
    let is_ours = |word: &&str| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        matches!(name, "pegboard" | "pegboard.exe") || name.starts_with("pegboard@")
    };
    match words.iter().position(is_ours) {
        // `npx pegboard mcp` and `uvx pegboard mcp` have a program in front.
        Some(at) if at <= 3 => words.get(at + 1..).unwrap_or_default().contains(&"mcp"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pegboard_is_recognised_in_every_form_that_it_is_written_in() {
        let forms = [
            EntryForm::ProcessOnly,
            EntryForm::Plain,
            EntryForm::Typed,
            EntryForm::ClaudeCode,
            EntryForm::Windsurf,
            EntryForm::HttpUrl,
            EntryForm::Zed,
            EntryForm::Goose,
            EntryForm::Cline,
            EntryForm::Copilot,
            EntryForm::OpenCode,
            EntryForm::Mcporter,
        ];
        for form in forms {
            let connection = Connection::Process {
                program: "/opt/bin/pegboard".to_owned(),
                args: vec!["mcp".to_owned(), "--daemon".to_owned()],
            };
            assert!(
                is_pegboard(&entry_for(form, &connection, "pegboard").unwrap()),
                "{form:?}"
            );
        }
        assert!(is_pegboard(
            &json!({"transport": {"command": "C:\\bin\\pegboard.exe", "args": ["mcp"]}})
        ));
        assert!(is_pegboard(&json!({"command": {"path": "pegboard", "args": ["mcp"]}})));
        assert!(is_pegboard(
            &json!({"command": "npx", "args": ["-y", "pegboard", "mcp"]})
        ));
        assert!(!is_pegboard(&json!({"command": "pegboard", "args": ["demo-server"]})));
        assert!(!is_pegboard(&json!({"command": "uvx", "args": ["mcp-server-time"]})));
    }
}
