//! Translates one entry of a host's file into the settings of a server of ours.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    entry_fields,
    host::{Dialect, Unit},
    variables::{Place, translate, variable_name},
};

/// The settings of a server, with what a person must know about them.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Imported {
    pub(crate) settings: Map<String, Value>,
    /// What is different from before, in sentences without a subject: "`x` is left out".
    pub(crate) notes: Vec<String>,
    /// The ids of the values that a person is asked for.
    pub(crate) inputs: BTreeSet<String>,
}

/// Translates an entry, or says why it cannot be used.
pub(super) fn import(name: &str, entry: &Value, dialect: Dialect, place: &Place) -> Result<Imported, String> {
    let Some(entry) = entry.as_object() else {
        return Err("its entry is not a table".to_owned());
    };
    let mut reader = Reader::new(name, entry, dialect, place);
    if let Some(kind) = reader.text_of("type").filter(|kind| is_built_in(kind)) {
        return Err(format!("`{kind}` servers are part of the host"));
    }
    reader.flatten("transport");
    reader.flatten("command");
    let has_target = reader.target();
    if !has_target {
        return Err(match reader.has("settings") || reader.has("uses") {
            true => "its command comes from an extension of the host".to_owned(),
            false => "it has neither a command nor a URL".to_owned(),
        });
    }
    entry_fields::tools(&mut reader);
    entry_fields::timeouts(&mut reader);
    entry_fields::sign_in(&mut reader);
    entry_fields::others(&mut reader);
    match reader.needs_open_folder {
        true => Err("`${workspaceFolder}` is known to the host only: write a folder in its place".to_owned()),
        false => Ok(reader.finish()),
    }
}

fn is_built_in(kind: &str) -> bool {
    matches!(
        kind,
        "builtin"
            | "platform"
            | "frontend"
            | "inline_python"
            | "sdk"
            | "sse-ide"
            | "ws-ide"
            | "claudeai-proxy"
            | "registry"
    )
}

/// The keys of an entry that are not translated yet, and the settings so far.
pub(super) struct Reader<'a> {
    name: &'a str,
    left: BTreeMap<String, Value>,
    pub(super) dialect: Dialect,
    place: &'a Place,
    done: Imported,
    /// Whether it needs the folder that is open in the host, and there is none.
    needs_open_folder: bool,
}

impl<'a> Reader<'a> {
    fn new(name: &'a str, entry: &Map<String, Value>, dialect: Dialect, place: &'a Place) -> Self {
        let keys = entry.iter().filter(|(_, value)| !value.is_null());
        Self {
            name,
            left: keys.map(|(key, value)| (snake_case(key), value.clone())).collect(),
            dialect,
            place,
            done: Imported::default(),
            needs_open_folder: false,
        }
    }

    /// Takes a key, by the first of these names that the entry has.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<Value> {
        names.iter().filter_map(|name| self.left.remove(*name)).next()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        self.left.get(name)?.as_str().map(str::to_owned)
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.done.settings.insert(key.to_owned(), value.into());
    }

    /// Sets a key of a table.
    pub(super) fn set_in(&mut self, table: &str, key: &str, value: impl Into<Value>) {
        let table = self.done.settings.entry(table).or_insert_with(|| json!({}));
        if let Some(table) = table.as_object_mut() {
            table.insert(key.to_owned(), value.into());
        }
    }

    /// Adds texts to a list.
    pub(super) fn add_to(&mut self, list: &str, more: Vec<String>) {
        if more.is_empty() {
            return;
        }
        let list = self.done.settings.entry(list).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(more.into_iter().map(Value::from));
        }
    }

    /// Its name in the host's file.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn is_process(&self) -> bool {
        self.done.settings.contains_key("command")
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.done.notes.push(note.into());
    }

    /// Replaces a table by its own keys, as in `transport: {type, command}` and `command: {path, args}`.
    fn flatten(&mut self, key: &str) {
        let Some(Value::Object(inner)) = self.left.get(key).cloned() else {
            return;
        };
        self.left.remove(key);
        for (inner, value) in inner {
            let inner = if inner == "path" {
                "command".to_owned()
            } else {
                snake_case(&inner)
            };
            self.left.entry(inner).or_insert(value);
        }
    }

    /// The text in our notation. `key` names what it is the value of.
    pub(super) fn translated(&mut self, text: &str, key: &str) -> String {
        let variable = match is_variable(key) {
            true => key.to_owned(),
            false => variable_name(&format!("{}_{key}", self.name)),
        };
        let done = translate(text, self.dialect.variables, self.place, &variable);
        for lost in &done.lost {
            self.note(format!(
                "`{lost}` is known to the host only: set the variable {variable}"
            ));
        }
        self.needs_open_folder |= done.needs_open_folder;
        self.done.inputs.extend(done.inputs);
        done.text
    }

    /// A table of texts in our notation; numbers and truth values become texts.
    fn table(&mut self, value: &Value) -> Map<String, Value> {
        let pairs = value.as_object().into_iter().flatten();
        let pairs: Vec<(String, String)> = pairs
            .filter_map(|(key, value)| Some((key.clone(), plain_text(value)?)))
            .collect();
        let pairs = pairs.into_iter().map(|(key, text)| {
            let text = self.translated(&text, &key);
            (key, Value::from(text))
        });
        pairs.collect()
    }

    /// The program or the URL, with what belongs to it.
    fn target(&mut self) -> bool {
        let kind = self.take(&["type", "transport", "transport_type"]);
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let command = self.take(&["command", "cmd", "executable"]);
        let is_http_url = self.has("http_url");
        let url = self.take(&["url", "uri", "server_url", "base_url", "http_url", "tcp"]);
        match (command, url.as_ref().and_then(Value::as_str)) {
            (Some(command), _) => self.process(&command),
            (None, Some(url)) => {
                let url = self.translated(url, "url");
                let kind = match kind.replace(['-', '_'], "").as_str() {
                    "sse" => Some("sse"),
                    "ws" | "websocket" => Some("websocket"),
                    "http" | "streamablehttp" => Some("http"),
                    "" if self.dialect.is_sse_by_default => Some("sse"),
                    _ if is_http_url => Some("http"),
                    _ => None,
                };
                // What we would guess anyway is not written.
                let path = url.split(['?', '#']).next().unwrap_or_default();
                let guess = match () {
                    () if url.starts_with("ws") => "websocket",
                    () if path.trim_end_matches('/').ends_with("/sse") => "sse",
                    () => "http",
                };
                if let Some(kind) = kind.filter(|kind| *kind != guess) {
                    self.set("type", kind);
                }
                self.set("url", url);
                self.headers();
                true
            }
            (None, None) => false,
        }
    }

    fn process(&mut self, command: &Value) -> bool {
        let mut words = match command {
            Value::Array(words) => words.iter().filter_map(plain_text).collect(),
            Value::String(line) if self.dialect.splits_command && !self.has("args") => split(line),
            Value::String(program) => vec![program.clone()],
            _ => Vec::new(),
        };
        let more = self.take(&["args", "arguments"]);
        words.extend(
            more.as_ref()
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(plain_text),
        );
        if words.first().is_none_or(String::is_empty) {
            return false;
        }
        if let Some((url, headers)) = remote_of(&words) {
            let url = self.translated(&url, "url");
            self.note("is reached directly, without `mcp-remote`");
            self.set("url", url);
            for (name, value) in headers {
                let value = self.translated(&value, &name);
                self.set_in("headers", &name, value);
            }
            let _ = self.take(&["env", "envs", "environment"]);
            return true;
        }
        let mut words = words
            .into_iter()
            .map(|word| self.translated(&word, "arg"))
            .collect::<Vec<_>>()
            .into_iter();
        self.set("command", words.next().unwrap_or_default());
        let args: Vec<String> = words.collect();
        if !args.is_empty() {
            self.set("args", args);
        }
        self.environment();
        if let Some(folder) = self
            .take(&["cwd", "working_directory"])
            .as_ref()
            .and_then(Value::as_str)
        {
            let folder = self.translated(folder, "cwd");
            self.set("cwd", folder);
        } else if let Some(project) = &self.place.project {
            let project = project.display().to_string();
            self.set("cwd", project);
        }
        true
    }

    fn environment(&mut self) {
        let env = self.take(&["env", "envs", "environment"]).unwrap_or_default();
        let mut passed = Vec::new();
        if self.dialect.passes_empty_env {
            let pairs = env.as_object().into_iter().flatten();
            let empty = pairs.filter(|(_, value)| value.is_null() || value.as_str() == Some(""));
            passed.extend(empty.map(|(name, _)| name.clone()));
        }
        let mut env = self.table(&env);
        env.retain(|name, _| !passed.contains(name));
        if !env.is_empty() {
            self.set("env", env);
        }
        let named = self.take(&["env_keys", "env_vars"]);
        for one in named.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let name = one.as_str().or_else(|| one.get("name")?.as_str());
            passed.extend(name.map(str::to_owned));
        }
        if !passed.is_empty() {
            self.note(format!("needs {} in the environment", passed.join(", ")));
        }
        self.add_to("env_pass", passed);
        if let Some(file) = self.take(&["env_file"]).as_ref().and_then(Value::as_str) {
            let file = self.translated(file, "env_file");
            self.set("env_file", file);
        }
    }

    fn headers(&mut self) {
        let options = self.take(&["request_options"]).unwrap_or_default();
        let own = self.take(&["headers", "http_headers"]).unwrap_or_default();
        for table in [own, options.get("headers").cloned().unwrap_or_default()] {
            let mut table = table;
            if let Some(file) = self.bearer_file(&mut table) {
                self.set_in("auth", "bearer_file", file);
            }
            for (name, value) in self.table(&table) {
                self.set_in("headers", &name, value);
            }
        }
        if options.get("verifySsl").and_then(Value::as_bool) == Some(false) {
            self.set("insecure", true);
        }
        if let Some(file) = options.get("caBundlePath").and_then(Value::as_str) {
            self.set_in("tls", "ca", file);
        }
        for key in ["cert", "key"] {
            let value = options.get("clientCertificate").and_then(|of| of.get(key)?.as_str());
            if let Some(file) = value {
                self.set_in("tls", key, file);
            }
        }
        for (theirs, ours) in [("env_http_headers", "env_headers"), ("env_headers", "env_headers")] {
            if let Some(table @ Value::Object(_)) = self.take(&[theirs]) {
                self.set(ours, table);
            }
        }
        for key in ["env_keys", "env_vars"] {
            let named = texts(self.take(&[key]).as_ref());
            if !named.is_empty() {
                self.note(format!("needs {} in the environment", named.join(", ")));
            }
        }
        let _ = self.take(&["envs"]);
        let _ = self.take(&["env"]);
    }

    /// Takes the header whose token the host reads from a file, and returns the file.
    fn bearer_file(&self, headers: &mut Value) -> Option<String> {
        let headers = headers.as_object_mut()?;
        let name = headers
            .keys()
            .find(|name| name.eq_ignore_ascii_case("authorization"))?
            .clone();
        let token = headers.get(&name)?.as_str()?.strip_prefix("Bearer ")?;
        let done = translate(token, self.dialect.variables, self.place, "FILE");
        let file = match done.files.as_slice() {
            [file] if done.text == "${FILE}" => file.clone(),
            _ => return None,
        };
        headers.remove(&name);
        Some(file)
    }

    fn finish(mut self) -> Imported {
        let unknown: Vec<String> = self.left.keys().map(|key| format!("`{key}`")).collect();
        if !unknown.is_empty() {
            self.note(format!("{} left out: not known to Pegboard", unknown.join(", ")));
        }
        self.done
    }

    /// A duration with its unit.
    pub(super) fn duration(&self, value: &Value, unit: Unit) -> Option<String> {
        let amount = value.as_f64().filter(|amount| *amount > 0.0)?;
        let millis = match unit {
            Unit::Millis => amount,
            Unit::Seconds => amount * 1000.0,
        };
        let millis = millis.round().max(1.0);
        Some(match millis % 1000.0 == 0.0 {
            true => format!("{}s", millis / 1000.0),
            false => format!("{millis}ms"),
        })
    }
}

/// The texts of a list; a text with commas is one too.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .flat_map(|text| text.split(','))
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect(),
        Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The URL and the headers of a command that runs `mcp-remote`; `None` if it has other options that we cannot translate.
fn remote_of(words: &[String]) -> Option<(String, Vec<(String, String)>)> {
    let at = words
        .iter()
        .position(|word| word == "mcp-remote" || word.starts_with("mcp-remote@"))?;
    let runner = words.first()?.rsplit(['/', '\\']).next()?;
    if !matches!(runner, "npx" | "npx.cmd" | "bunx" | "pnpx") {
        return None;
    }
    let mut rest = words.get(at + 1..)?.iter();
    let url = rest.next().filter(|url| url.starts_with("http"))?.clone();
    let mut headers = Vec::new();
    while let Some(option) = rest.next() {
        if option != "--header" {
            return None;
        }
        let (name, value) = rest.next()?.split_once(':')?;
        // Its values may be variables of its own environment, which we do not have.
        if value.contains("${") {
            return None;
        }
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Some((url, headers))
}

/// Splits a command line at spaces outside of quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_open = false;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                is_open = true;
            }
            None if c.is_whitespace() => {
                if is_open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            _ => word.push(c),
        }
    }
    if is_open || !word.is_empty() {
        words.push(word);
    }
    words
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

fn is_variable(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    key.starts_with(|c: char| c.is_ascii_uppercase()) && key.chars().all(is_part)
}

/// `httpUrl` as `http_url`, `CLIENT_ID` as `client_id`.
pub(super) fn snake_case(key: &str) -> String {
    if !key.chars().any(char::is_lowercase) {
        return key.to_lowercase();
    }
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        match c {
            '-' => snake.push('_'),
            c if c.is_uppercase() => {
                if !snake.is_empty() && !snake.ends_with('_') {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
            }
            c => snake.push(c),
        }
    }
    snake
}
