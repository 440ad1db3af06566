//! The settings of a server from the arguments of `add`, and from the JSON of other programs.

use std::path::Path;

use pegboard::{
    Env,
    config::{ServerConfig, Transport},
};
use serde_json::{Map, Value, json};

use super::{advice, options::Add};
use crate::{
    cli::Global,
    commands::address,
    exit::Exit,
    settings::{Complaint, here},
};

/// What `--header`, `--env` and `--cwd` say.
#[derive(Debug, Default, Clone)]
pub(super) struct Extras {
    pub(super) headers: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) cwd: Option<String>,
}

impl Extras {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            headers: global.headers.clone(),
            env: global.env.clone(),
            cwd: global.cwds.last().cloned(),
        }
    }
}

/// The server of `--server NAME=…` with the settings of `--header`, `--env` and `--cwd`, as a config in JSON. `None` without such options.
pub(in crate::commands) fn for_this_run(global: &Global) -> Result<Option<String>, Complaint> {
    let mut settings = from_extras(&Extras::new(global))?;
    if settings.is_empty() {
        return Ok(None);
    }
    let mut added = global.servers.iter().filter(|server| server.contains('='));
    match (added.next(), added.next()) {
        (Some(server), None) => {
            let (name, target) = server.split_once('=').unwrap_or_default();
            // With every `$` escaped, its words come back as they were written; their variables are expanded when the config is read.
            let parsed = ServerConfig::parse(&server.replace('$', "$$"), &Env::process());
            match parsed.map(|(_, server)| server.transport) {
                Ok(Transport::Stdio(command)) => {
                    let args: Vec<&str> = command.args.iter().map(|arg| arg.expose()).collect();
                    settings.insert("args".to_owned(), args.into());
                    settings.insert("command".to_owned(), command.program.into());
                }
                // What is wrong with it is said when the config is read.
                Ok(_) | Err(_) => drop(settings.insert("url".to_owned(), target.trim().into())),
            }
            Ok(Some(json!({"servers": {name.trim(): settings}}).to_string()))
        }
        (None, _) => Err(usage(
            "`--header`, `--env` and `--cwd` are for a server of this command line",
            "add it with `--server NAME=COMMAND` or `--server NAME=URL`, or for good with `pegboard add`",
        )),
        (Some(_), Some(_)) => Err(usage(
            "`--header`, `--env` and `--cwd` do not say which `--server` they are for",
            "give one such server, and add the others with `pegboard add`",
        )),
    }
}

/// The settings that the arguments of `add` describe.
pub(super) fn from_arguments(add: &Add, extras: &Extras) -> Result<Value, Complaint> {
    let mut entry = Map::new();
    let target = target(add)?;
    let is_remote = target.is_url;
    match add.transport.as_deref() {
        Some("ws") => drop(entry.insert("type".into(), "websocket".into())),
        Some("stdio") if is_remote => return Err(usage("`--transport stdio` is for a command, not for a URL", "")),
        Some(kind) if kind != "stdio" && !is_remote => {
            return Err(usage(
                &format!("`--transport {kind}` is for a URL, not for a command"),
                "",
            ));
        }
        Some(kind) if is_remote => drop(entry.insert("type".into(), kind.into())),
        Some(_) | None => {}
    }
    let mut words = target.words.into_iter();
    let first = words.next().unwrap_or_default();
    if is_remote {
        entry.insert("url".into(), first.into());
        if !extras.env.is_empty() || extras.cwd.is_some() {
            let why = "`--env` and `--cwd` are for servers with a command";
            return Err(usage(why, "a URL takes `--header 'Name: value'`"));
        }
    } else {
        entry.insert("command".into(), program(&first).into());
        let args: Vec<String> = words.collect();
        if !args.is_empty() {
            entry.insert("args".into(), args.into());
        }
        if !extras.headers.is_empty() || add.bearer_env.is_some() {
            let why = "`--header` and `--bearer-env` are for servers with a URL";
            return Err(usage(why, "a command takes `--env NAME=VALUE`"));
        }
    }
    entry.extend(from_extras(extras)?);
    if let Some(variable) = &add.bearer_env {
        entry.insert("bearer_token".into(), format!("${{{variable}}}").into());
    }
    if let Some(description) = &add.description {
        entry.insert("description".into(), description.as_str().into());
    }
    for (key, globs) in [("allow", &add.allow), ("deny", &add.deny)] {
        if !globs.is_empty() {
            entry.insert(key.into(), json!(globs));
        }
    }
    if add.disabled {
        entry.insert("enabled".into(), false.into());
    }
    Ok(Value::Object(entry))
}

/// The settings of `--header`, `--env` and `--cwd`.
pub(super) fn from_extras(extras: &Extras) -> Result<Map<String, Value>, Complaint> {
    let mut entry = Map::new();
    let mut headers = Map::new();
    for header in &extras.headers {
        let colon = header.split_once(':').filter(|(name, _)| !name.contains('='));
        let pair = colon.or_else(|| header.split_once('='));
        let (name, value) = pair.filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
            usage(
                &format!("`--header {}` has no name", hide_value(header)),
                "write `--header 'Name: value'`",
            )
        })?;
        headers.insert(name.trim().to_owned(), value.trim().into());
    }
    let mut env = Map::new();
    for pair in &extras.env {
        let (name, value) = pair
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| {
                let hint = format!(
                    "write `--env {pair}=VALUE`, or `--env {pair}='${{{pair}}}'` to take it from your environment"
                );
                usage(&format!("`--env {}` has no value", hide_value(pair)), &hint)
            })?;
        env.insert(name.to_owned(), value.into());
    }
    for (key, map) in [("headers", headers), ("env", env)] {
        if !map.is_empty() {
            entry.insert(key.to_owned(), Value::Object(map));
        }
    }
    if let Some(cwd) = &extras.cwd {
        entry.insert("cwd".to_owned(), to_absolute(cwd).into());
    }
    Ok(entry)
}

/// A value that may be a secret, for an error.
fn hide_value(text: &str) -> &str {
    text.split(['=', ':', ' ']).next().unwrap_or_default()
}

struct EntryTarget {
    words: Vec<String>,
    is_url: bool,
}

fn target(add: &Add) -> Result<EntryTarget, Complaint> {
    let name = &add.name;
    if let (Some(word), []) | (None, [word]) = (&add.target, add.command.as_slice())
        && let Some(url) = address::without_scheme(word)
    {
        return Err(usage(
            &format!("`{}` has no scheme", strip_scheme(&url)),
            &format!("write `pegboard add {name} {url}`"),
        ));
    }
    match (&add.target, add.command.as_slice()) {
        (Some(url), []) if is_url(url) => Ok(EntryTarget {
            words: vec![url.clone()],
            is_url: true,
        }),
        (Some(words), []) => Ok(EntryTarget {
            words: words.split_whitespace().map(str::to_owned).collect(),
            is_url: false,
        }),
        (None, []) => Err(usage(
            "nothing says what the server is",
            &format!("write `pegboard add {name} -- COMMAND…` or `pegboard add {name} URL`"),
        )),
        (None, words) => Ok(EntryTarget {
            words: words.to_vec(),
            is_url: false,
        }),
        (Some(url), _) if is_url(url) => Err(usage(
            "a URL and a command after `--` cannot both be the server",
            &format!("write `pegboard add {name} URL` or `pegboard add {name} -- COMMAND…`"),
        )),
        (Some(program), args) => {
            let command: Vec<&str> = program
                .split_whitespace()
                .chain(args.iter().map(String::as_str))
                .collect();
            Err(usage(
                "a part of the command is before `--`",
                &format!("write `{}`", advice::add_line(name, &command)),
            ))
        }
    }
}

/// A URL without its scheme.
fn strip_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    text.starts_with("${") || matches!(scheme.as_deref(), Some("http" | "https" | "ws" | "wss"))
}

/// A program that is named relative to this folder keeps its meaning in a file elsewhere.
fn program(text: &str) -> String {
    if text.starts_with("./") || text.starts_with("../") {
        to_absolute(text)
    } else {
        text.to_owned()
    }
}

fn to_absolute(path: &str) -> String {
    if Path::new(path).is_absolute() || path.starts_with('~') || path.starts_with("${") {
        return path.to_owned();
    }
    let whole = here().join(path);
    let parts = whole.components().fold(std::path::PathBuf::new(), |mut path, part| {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
        path
    });
    parts.display().to_string()
}

/// The settings in a JSON text: those of one server, in our shape or in that of Claude, VS Code and others, or a file with this one server.
pub(super) fn from_json(name: &str, text: &str) -> Result<Value, Complaint> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let hint = "write an object such as `{\"command\": \"npx\", \"args\": [\"-y\", \"PACKAGE\"]}`";
        usage(&format!("the JSON cannot be read: {error}"), hint)
    })?;
    let mut value = value;
    for table in ["mcpServers", "servers", "mcp_servers", "context_servers"] {
        if let Some(Value::Object(servers)) = value.get_mut(table) {
            let only = if servers.len() == 1 {
                servers.keys().next().cloned()
            } else {
                None
            };
            let Some(inner) = servers.remove(name).or_else(|| servers.remove(&only?)) else {
                let why = format!("`{table}` has several servers, and none is `{name}`");
                return Err(usage(&why, "give the settings of one server, or use `pegboard import`"));
            };
            value = inner;
            break;
        }
    }
    match value {
        Value::Object(entry) if !entry.is_empty() => Ok(Value::Object(entry)),
        _ => Err(usage(
            "the settings of a server are a JSON object",
            "write `{\"url\": \"https://…\"}`",
        )),
    }
}

pub(super) fn usage(message: &str, hint: &str) -> Complaint {
    Complaint {
        message: message.to_owned(),
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
        exit: Exit::Usage,
    }
}
