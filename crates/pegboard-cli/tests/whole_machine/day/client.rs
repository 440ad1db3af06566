//! A client of the gateway: sessions over `/mcp`, and the routes that tell how it is.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Response, Served};

/// How long a call may wait for its response. Some presets let calls wait for a server that is away. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(150);

const TOKEN: (&str, &str) = ("Authorization", "Bearer pgb_day");
const JSON: (&str, &str) = ("Accept", "application/json");

/// A session of a client.
#[derive(Debug, Clone)]
pub(crate) struct Session(String);

impl Session {
    pub(crate) fn open(served: &Served) -> Self {
        Self(served.initialize("/mcp", &[TOKEN]).0)
    }

    /// Calls a tool. Every call is answered, with a result or an error.
    pub(crate) fn call(&self, served: &Served, tool: &str) -> Answer {
        let params = json!({"name": tool, "arguments": {}});
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let mut stream = served.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers = [TOKEN, ("Mcp-Session-Id", self.0.as_str())];
        served.write(&mut stream, "/mcp", &headers, &request.to_string());
        Answer(Response::read(stream).message())
    }

    /// The names of the tools that the session lists.
    pub(crate) fn tools(&self, served: &Served) -> Vec<String> {
        let listed = served.ask("/mcp", &[TOKEN], &self.0, "tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        tools.iter().map(name).collect()
    }

    pub(crate) fn close(self, served: &Served) {
        let response = served.send("DELETE", "/mcp", &[TOKEN, ("Mcp-Session-Id", &self.0)], "");
        assert!(response.status < 300, "{response:?}");
    }
}

/// The response to a call.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Value);

impl Answer {
    pub(crate) fn is_ok(&self) -> bool {
        let result = &self.0["result"];
        result.is_object() && result["isError"] != true
    }

    /// Fails with the whole response if the tool did not run.
    pub(crate) fn ok(self) -> Result<Self, String> {
        if self.is_ok() {
            Ok(self)
        } else {
            Err(self.0.to_string())
        }
    }

    /// The text blocks of the result, without the marks that some presets put around them.
    pub(crate) fn text(&self) -> String {
        let blocks = self.0["result"]["content"].as_array().cloned().unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let is_mark = |text: &&str| text.starts_with("<untrusted-") || text.starts_with("</untrusted-");
        texts.filter(|text| !is_mark(text)).collect()
    }
}

/// `GET` of a document, with its status.
pub(crate) fn get(served: &Served, path: &str) -> (u16, Value) {
    let response = served.send("GET", path, &[TOKEN, JSON], "");
    let document = serde_json::from_str(&response.body);
    let document = document.unwrap_or_else(|error| panic!("{path}: {error}: {response:?}"));
    (response.status, document)
}

/// A change that needs the rights of an administrator.
pub(crate) fn change(served: &Served, method: &str, path: &str) -> (u16, Value) {
    let response = served.send(method, path, &[TOKEN, JSON], "");
    let document = serde_json::from_str(&response.body).unwrap_or(Value::Null);
    (response.status, document)
}

/// The servers that `/readyz` waits for; none if it is ready. It is ready with one instance of a server, also while that of another principal is not.
pub(crate) fn not_ready(served: &Served) -> Vec<String> {
    let (status, document) = get(served, "/readyz");
    assert_eq!(document["ready"], status == 200, "{document}");
    if status == 200 {
        return Vec::new();
    }
    let rows = document["not_ready"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<String> = rows
        .iter()
        .map(|row| row["server"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names.dedup();
    assert!(!names.is_empty(), "{document}");
    names
}

/// The servers that warnings name.
pub(crate) fn warned_of(served: &Served) -> Vec<String> {
    let (_, document) = get(served, "/api/v1/mcp/warnings");
    let rows = document.as_array().or_else(|| document["warnings"].as_array());
    let rows = rows.unwrap_or_else(|| panic!("{document}")).iter();
    let mut names: Vec<String> = rows
        .filter_map(|row| Some(row["server"].as_str()?.to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// One word of `/health`, and the servers in trouble.
pub(crate) fn health(served: &Served) -> (String, Vec<String>) {
    let (_, document) = get(served, "/health");
    let rows = document["servers"]["troubled"].as_array().cloned().unwrap_or_default();
    let troubled = rows.iter().map(|row| row["server"].as_str().unwrap().to_owned());
    (document["status"].as_str().unwrap().to_owned(), troubled.collect())
}
