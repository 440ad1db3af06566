//! A fake of the official registry: pages of entries in their published shape.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use pegboard_base::sync::Mutex;
use serde_json::{Value, json};

/// A registry on loopback. It answers until the test ends.
#[derive(Debug)]
pub(crate) struct FakeRegistry {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeRegistry {
    /// A registry with these entries, `page` of them on each page.
    pub(crate) fn with(entries: Vec<Value>, page: usize) -> Self {
        Self::answering(move |path| {
            let query = |name: &str| {
                let (_, query) = path.split_once('?')?;
                query
                    .split('&')
                    .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
            };
            let word = query("search").unwrap_or_default();
            let found: Vec<&Value> = entries
                .iter()
                .filter(|entry| entry["server"]["name"].as_str().unwrap_or(word).contains(word))
                .collect();
            let start: usize = query("cursor").map_or(0, |cursor| cursor.trim_start_matches("at%3A").parse().unwrap());
            let shown = &found[start.min(found.len())..(start + page).min(found.len())];
            let mut metadata = json!({"count": shown.len()});
            if start + page < found.len() {
                metadata["nextCursor"] = json!(format!("at:{}", start + page));
            }
            (200, json!({"servers": shown, "metadata": metadata}).to_string())
        })
    }

    /// A registry with this answer to every request.
    pub(crate) fn answering(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let path = request(&stream);
                let (status, body) = answer(&path);
                noted.lock().push(path);
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                // The client may have ended the connection.
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        Self { address, requests }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The paths that were asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

fn request(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap().unwrap();
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    first.split(' ').nth(1).unwrap().to_owned()
}

/// An entry with what the registry adds.
pub(crate) fn entry(server: &Value) -> Value {
    with_status(server, &json!({"status": "active"}))
}

pub(crate) fn with_status(server: &Value, official: &Value) -> Value {
    json!({"server": server, "_meta": {"io.modelcontextprotocol.registry/official": official}})
}

/// Entries in the shapes that publishers write.
pub(crate) fn published() -> Vec<Value> {
    vec![
        entry(&json!({
            "name": "ai.smithery/smithery-ai-github", "description": "Access the GitHub API.", "version": "1.0.0",
            "remotes": [{"type": "streamable-http", "url": "https://server.smithery.ai/@smithery-ai/github/mcp",
                "headers": [{"description": "Bearer token", "isRequired": true, "value": "Bearer {smithery_api_key}",
                             "isSecret": true, "name": "Authorization"}]}]})),
        entry(&json!({
            "name": "io.github.github/github-mcp-server", "title": "GitHub", "version": "1.12.1",
            "description": "Connect AI assistants to GitHub",
            "packages": [
                {"registryType": "oci", "identifier": "ghcr.io/github/github-mcp-server:1.12.1", "transport": {"type": "stdio"},
                 "runtimeArguments": [
                     {"type": "named", "name": "-p", "value": "127.0.0.1:8085:8085"},
                     {"type": "named", "name": "-e", "value": "GITHUB_PERSONAL_ACCESS_TOKEN={token}",
                      "variables": {"token": {"format": "string", "isSecret": true}}}]},
                {"registryType": "npm", "registryBaseUrl": "https://registry.npmjs.org", "identifier": "@example/github-mcp",
                 "version": "1.12.1", "runtimeHint": "npx", "transport": {"type": "stdio"},
                 "packageArguments": [{"type": "positional", "value": "stdio"},
                                      {"type": "named", "name": "--toolsets", "default": "repos"}],
                 "environmentVariables": [{"name": "GITHUB_TOKEN", "description": "Token", "isRequired": true, "isSecret": true},
                                          {"name": "LOG_LEVEL", "default": "info"}]},
                {"registryType": "mcpb", "identifier": "https://github.com/example/github.mcpb", "transport": {"type": "stdio"}}]})),
        with_status(
            &json!({"name": "com.example/old-github", "description": "Superseded", "version": "0.9.5", "websiteUrl": "https://example.com/setup"}),
            &json!({"status": "deprecated", "statusMessage": "Please use com.example/git"}),
        ),
    ]
}
