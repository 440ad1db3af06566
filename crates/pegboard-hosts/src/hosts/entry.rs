//! Translates one entry of a host's file into the settings of a server of ours.

use serde_json::Value;

use super::{
    entry_fields,
    host::Dialect,
    reader::{EntryReader, Imported, kind},
    variables::{ProjectPaths, translate},
};

/// Translates an entry, or says why it cannot be used.
pub(super) fn import(name: &str, entry: &Value, dialect: Dialect, place: &ProjectPaths) -> Result<Imported, String> {
    let Some(entry) = entry.as_object() else {
        return Err(format!("its entry must be a table, not {}", kind(entry)));
    };
    let mut reader = EntryReader::new(name, entry, dialect, place);
    if let Some(kind) = reader.text_of("type").filter(|kind| is_built_in(kind)) {
        return Err(format!("`{kind}` servers are part of the host"));
    }
    reader.flatten("transport");
    reader.flatten("command");
    reader.target()?;
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

impl EntryReader<'_> {
    /// The program or the URL, with what belongs to it, or why there is none.
    fn target(&mut self) -> Result<(), String> {
        let transport = self.text(&["type", "transport", "transport_type"]);
        let transport = transport.unwrap_or_default().to_lowercase();
        let command = self.take_named(&["command", "cmd", "executable"]);
        let is_http_url = self.has("http_url");
        let url = self.take_named(&["url", "uri", "server_url", "base_url", "http_url", "tcp"]);
        match (command, url) {
            (Some((key, command)), _) => self.process(key, &command),
            (None, Some((key, url))) => {
                let Some(url) = url.as_str() else {
                    return Err(format!("`{key}` must be a text, not {}", kind(&url)));
                };
                let url = self.translate_text(url, "url");
                let kind = match transport.replace(['-', '_'], "").as_str() {
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
                Ok(())
            }
            (None, None) => Err(self.no_target()),
        }
    }

    fn no_target(&self) -> String {
        match self.has("settings") || self.has("uses") {
            true => "its command comes from an extension of the host".to_owned(),
            false => "it has neither a command nor a URL".to_owned(),
        }
    }

    fn process(&mut self, key: &str, command: &Value) -> Result<(), String> {
        let mut words = match command {
            // Without its first word, another one would be taken for the program.
            Value::Array(list) => match list.first() {
                Some(Value::String(_)) => self.words_in(key, command),
                Some(first) => return Err(format!("`{key}[0]` must be a text, not {}", kind(first))),
                None => return Err(self.no_target()),
            },
            Value::String(line) if self.dialect.splits_command && !self.has("args") => split(line),
            Value::String(program) => vec![program.clone()],
            _ => return Err(format!("`{key}` must be a text, not {}", kind(command))),
        };
        if let Some((key, more)) = self.take_named(&["args", "arguments"]) {
            words.extend(self.words_in(key, &more));
        }
        if words.first().is_none_or(String::is_empty) {
            return Err(self.no_target());
        }
        if let Some((url, headers)) = remote_of(&words) {
            let url = self.translate_text(&url, "url");
            self.note("is reached directly, without `mcp-remote`");
            self.set("url", url);
            for (name, value) in headers {
                let value = self.translate_text(&value, &name);
                self.set_in("headers", &name, value);
            }
            let _ = self.take(&["env", "envs", "environment"]);
            return Ok(());
        }
        let mut words = words
            .into_iter()
            .map(|word| self.translate_text(&word, "arg"))
            .collect::<Vec<_>>()
            .into_iter();
        self.set("command", words.next().unwrap_or_default());
        let args: Vec<String> = words.collect();
        if !args.is_empty() {
            self.set("args", args);
        }
        self.environment();
        if let Some(folder) = self.text(&["cwd", "working_directory"]) {
            let folder = self.translate_text(&folder, "cwd");
            self.set("cwd", folder);
        } else if let Some(project) = &self.place.project {
            let project = project.display().to_string();
            self.set("cwd", project);
        }
        Ok(())
    }

    fn environment(&mut self) {
        let mut passed = Vec::new();
        if let Some((key, mut env)) = self.take_named(&["env", "envs", "environment"]) {
            if let Some(pairs) = env.as_object_mut().filter(|_| self.dialect.passes_empty_env) {
                let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
                let empty = pairs.iter().filter(|(_, value)| is_empty(value));
                passed.extend(empty.map(|(name, _)| name.clone()));
                pairs.retain(|_, value| !is_empty(value));
            }
            let env = self.table_in(key, &env);
            if !env.is_empty() {
                self.set("env", env);
            }
        }
        if let Some((key, named)) = self.take_named(&["env_keys", "env_vars"]) {
            if !named.is_array() {
                self.note_mistyped(key, &named, "a list");
            }
            for (at, one) in named.as_array().into_iter().flatten().enumerate() {
                match one.as_str().or_else(|| one.get("name")?.as_str()) {
                    Some(name) => passed.push(name.to_owned()),
                    None => self.note_mistyped(&format!("{key}[{at}]"), one, "a text"),
                }
            }
        }
        if !passed.is_empty() {
            self.note(format!("needs {} in the environment", passed.join(", ")));
        }
        self.add_to("env_pass", passed);
        if let Some(file) = self.text(&["env_file"]) {
            let file = self.translate_text(&file, "env_file");
            self.set("env_file", file);
        }
    }

    fn headers(&mut self) {
        if let Some((key, own)) = self.take_named(&["headers", "http_headers"]) {
            self.headers_in(key, own);
        }
        match self.take(&["request_options"]) {
            Some(Value::Object(options)) => {
                for (key, value) in options {
                    self.request_option(&key, value);
                }
            }
            Some(value) => self.note_mistyped("request_options", &value, "a table"),
            None => {}
        }
        for theirs in ["env_http_headers", "env_headers"] {
            match self.take(&[theirs]) {
                Some(table @ Value::Object(_)) => self.set("env_headers", table),
                Some(value) => self.note_mistyped(theirs, &value, "a table"),
                None => {}
            }
        }
        for key in ["env_keys", "env_vars"] {
            let named = self.texts(&[key]);
            if !named.is_empty() {
                self.note(format!("needs {} in the environment", named.join(", ")));
            }
        }
        let _ = self.take(&["envs"]);
        let _ = self.take(&["env"]);
    }

    fn headers_in(&mut self, key: &str, mut table: Value) {
        if let Some(file) = self.bearer_file(&mut table) {
            self.set_in("auth", "bearer_file", file);
        }
        for (name, value) in self.table_in(key, &table) {
            self.set_in("headers", &name, value);
        }
    }

    fn request_option(&mut self, key: &str, value: Value) {
        let path = format!("request_options.{key}");
        match (key, value) {
            (_, Value::Null) | ("verifySsl", Value::Bool(true)) => {}
            ("headers", table) => self.headers_in(&path, table),
            ("verifySsl", Value::Bool(false)) => self.set("insecure", true),
            ("verifySsl", value) => self.note_mistyped(&path, &value, "true or false"),
            ("caBundlePath", value) => {
                if let Some(file) = self.text_in(&path, &value) {
                    self.set_in("tls", "ca", file);
                }
            }
            ("clientCertificate", Value::Object(certificate)) => {
                for (part, value) in certificate.into_iter().filter(|(_, value)| !value.is_null()) {
                    let path = format!("{path}.{part}");
                    if !matches!(part.as_str(), "cert" | "key") {
                        self.note_unknown(&path);
                    } else if let Some(file) = self.text_in(&path, &value) {
                        self.set_in("tls", &part, file);
                    }
                }
            }
            ("clientCertificate", value) => self.note_mistyped(&path, &value, "a table"),
            _ => self.note_unknown(&path),
        }
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
