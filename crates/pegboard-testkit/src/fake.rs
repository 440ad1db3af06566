//! The builder of fake servers, and the handle of one in memory.

use std::{
    io,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use pegboard_protocol::Version;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::{
    control::Control,
    fault::{Fault, When},
    script::{Era, HttpStyle, Later, Refusal, Script, Tool},
    server::{Server, lock},
    wire::{
        memory,
        net::{NetHandle, Wire},
    },
};

/// The builder of a fake MCP server, which then starts it on one of the transports.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeServer {
    script: Script,
}

impl FakeServer {
    /// A healthy legacy server without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            script: Script::new(name),
        }
    }

    /// The server of a script.
    #[must_use]
    pub fn from_script(script: Script) -> Self {
        Self { script }
    }

    /// The server's script.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    fn change(mut self, change: impl FnOnce(&mut Script)) -> Self {
        change(&mut self.script);
        self
    }

    /// Speaks these eras.
    #[must_use]
    pub fn era(self, era: Era) -> Self {
        self.change(|script| script.era = era)
    }

    /// Speaks this version only, and the era it belongs to.
    #[must_use]
    pub fn version(self, version: &str) -> Self {
        let modern = version >= Version::FIRST_MODERN.as_str();
        self.change(|script| {
            if modern {
                script.era = Era::Modern;
                script.modern_versions = vec![version.into()];
            } else {
                script.versions = vec![version.into()];
            }
        })
    }

    /// Speaks these legacy versions, oldest first.
    #[must_use]
    pub fn versions(self, versions: &[&str]) -> Self {
        self.change(|script| script.versions = versions.iter().map(|version| (*version).into()).collect())
    }

    /// Offers this tool.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.change(|script| script.tools.push(tool))
    }

    /// Offers these tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.change(|script| script.tools.extend(tools))
    }

    /// Offers a binary resource, given in base64.
    #[must_use]
    pub fn blob(self, uri: &str, mime_type: &str, base64: &str) -> Self {
        let resource = serde_json::json!({ "uri": uri, "name": uri, "mimeType": mime_type, "blob": base64 });
        self.change(|script| script.resources.push(resource))
    }

    /// Offers a resource with this text.
    #[must_use]
    pub fn resource(self, uri: &str, text: &str) -> Self {
        let resource = serde_json::json!({ "uri": uri, "name": uri, "text": text });
        self.change(|script| script.resources.push(resource))
    }

    /// Offers resources with members of their own: objects as in [`Script::resources`].
    #[must_use]
    pub fn resources(self, resources: impl IntoIterator<Item = Value>) -> Self {
        self.change(|script| script.resources.extend(resources))
    }

    /// Offers a resource template: an object as in [`Script::templates`].
    #[must_use]
    pub fn template(self, template: Value) -> Self {
        self.change(|script| script.templates.push(template))
    }

    /// Offers prompts with members of their own: objects as in [`Script::prompts`].
    #[must_use]
    pub fn prompts(self, prompts: impl IntoIterator<Item = Value>) -> Self {
        self.change(|script| script.prompts.extend(prompts))
    }

    /// Offers a prompt with this text.
    #[must_use]
    pub fn prompt(self, name: &str, text: &str) -> Self {
        let prompt = serde_json::json!({ "name": name, "text": text });
        self.change(|script| script.prompts.push(prompt))
    }

    /// Gives instructions in the handshake.
    #[must_use]
    pub fn instructions(self, text: &str) -> Self {
        self.change(|script| script.instructions = Some(text.into()))
    }

    /// Declares exactly these capabilities.
    #[must_use]
    pub fn capabilities(self, capabilities: impl Into<Value>) -> Self {
        self.change(|script| script.capabilities = Some(capabilities.into()))
    }

    /// Lists this many tools per page.
    #[must_use]
    pub fn pages_of(self, tools: usize) -> Self {
        self.change(|script| script.page_size = Some(tools))
    }

    /// Gives modern lists this time to live and scope.
    #[must_use]
    pub fn cached(self, ttl_ms: u64, scope: &str) -> Self {
        self.change(|script| (script.ttl_ms, script.cache_scope) = (ttl_ms, scope.into()))
    }

    /// As a modern-only server, refuses `initialize` in this way.
    #[must_use]
    pub fn on_initialize(self, refusal: Refusal) -> Self {
        self.change(|script| script.on_initialize = refusal)
    }

    /// As a legacy-only server, refuses `server/discover` in this way.
    #[must_use]
    pub fn on_discover(self, refusal: Refusal) -> Self {
        self.change(|script| script.on_discover = refusal)
    }

    /// Sets the behaviour over HTTP.
    #[must_use]
    pub fn http(self, style: HttpStyle) -> Self {
        self.change(|script| script.http = style)
    }

    /// Responds over HTTP with event streams instead of JSON bodies.
    #[must_use]
    pub fn streams(self) -> Self {
        self.change(|script| script.http.streams = true)
    }

    /// Requires this bearer token on the network transports.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.change(|script| script.bearer = Some(token.into()))
    }

    /// Responds to cancelled requests too.
    #[must_use]
    pub fn ignores_cancel(self) -> Self {
        self.change(|script| script.ignores_cancel = true)
    }

    /// Records every executed nonce in this file, the ledger.
    #[must_use]
    pub fn ledger(self, path: impl Into<PathBuf>) -> Self {
        self.change(|script| script.ledger = Some(path.into()))
    }

    /// Logs every start and every received message to this file; see [`crate::read_log`].
    #[must_use]
    pub fn log(self, path: impl Into<PathBuf>) -> Self {
        self.change(|script| script.log = Some(path.into()))
    }

    /// Adds a fault on its usual requests.
    #[must_use]
    pub fn fault(self, fault: Fault) -> Self {
        self.fault_on(When::default(), fault)
    }

    /// Adds a fault on these requests.
    #[must_use]
    pub fn fault_on(self, when: When, fault: Fault) -> Self {
        self.change(|script| script.add_fault(fault, when))
    }

    /// Follows another script after this many starts. A process counts them in its log file, so it needs one.
    #[must_use]
    pub fn then_after(self, starts: u32, later: Self) -> Self {
        self.change(|script| {
            script.later = Some(Later {
                after: starts,
                script: Box::new(later.script),
            })
        })
    }

    /// Starts the server in memory and connects once: one message per line, on tokio's clock.
    ///
    /// # Panics
    /// When the log file of the script cannot be opened.
    #[must_use]
    pub fn connect(&self) -> (DuplexStream, MemoryHandle) {
        let server = Server::new(self.script.clone()).expect("the log file of the script can be opened");
        let handle = MemoryHandle {
            control: Control { server },
            alive: Arc::default(),
        };
        (handle.connect(), handle)
    }

    /// Starts the server with streamable HTTP on a free loopback port.
    ///
    /// # Errors
    /// When the port or the log file cannot be opened.
    pub async fn serve_http(&self) -> io::Result<NetHandle> {
        self.serve(Wire::Http).await
    }

    /// Starts the server with the transport of 2024-11-05 (HTTP with SSE).
    ///
    /// # Errors
    /// When the port or the log file cannot be opened.
    pub async fn serve_sse(&self) -> io::Result<NetHandle> {
        self.serve(Wire::Sse).await
    }

    /// Starts the server with WebSocket.
    ///
    /// # Errors
    /// When the port or the log file cannot be opened.
    pub async fn serve_ws(&self) -> io::Result<NetHandle> {
        self.serve(Wire::WebSocket).await
    }

    async fn serve(&self, wire: Wire) -> io::Result<NetHandle> {
        let server = Server::new(self.script.clone())?;
        NetHandle::start(server, wire, "127.0.0.1:0").await
    }

    /// The program and the arguments that start the server as a process on stdio.
    ///
    /// # Panics
    /// When the binary was not built, see [`fake_server_binary`].
    #[must_use]
    pub fn command(&self) -> (PathBuf, Vec<String>) {
        (fake_server_binary(), self.arguments())
    }

    /// The arguments that start this server as a process on stdio, for a program that calls [`crate::serve_if_asked`].
    ///
    /// # Panics
    /// Never: a script is plain data.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let script = serde_json::to_string(&self.script).expect("a script is plain data");
        vec!["--script".into(), script]
    }

    /// Like [`Self::command`] with the script in a file, for scripts too long for a command line.
    ///
    /// # Errors
    /// When the file cannot be written.
    ///
    /// # Panics
    /// When the binary was not built, see [`fake_server_binary`].
    pub fn command_with_file(&self, path: &Path) -> io::Result<(PathBuf, Vec<String>)> {
        std::fs::write(path, serde_json::to_vec(&self.script)?)?;
        Ok((
            fake_server_binary(),
            vec!["--script-file".into(), path.display().to_string()],
        ))
    }
}

/// The path of the built `fake-mcp-server`, near the running test.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn fake_server_binary() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let name = format!("fake-mcp-server{}", std::env::consts::EXE_SUFFIX);
    // Tests run in target/debug/deps, programs and examples one or two folders above.
    let found = test
        .ancestors()
        .skip(1)
        .take(3)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "no `{name}` near {}: run `cargo build -p pegboard-testkit` first",
            test.display()
        )
    })
}

/// A fake server in memory. Each connection ends when the client drops its end.
#[derive(Debug, Clone)]
pub struct MemoryHandle {
    control: Control,
    /// Cancelled, and replaced, when the test kills the server.
    alive: Arc<Mutex<CancellationToken>>,
}

impl MemoryHandle {
    /// Opens another connection, which counts as a new start of the server.
    #[must_use]
    pub fn connect(&self) -> DuplexStream {
        memory::connect(&self.control.server, &lock(&self.alive))
    }

    /// Ends every connection at once, as a crash would.
    pub fn kill(&self) {
        std::mem::take(&mut *lock(&self.alive)).cancel();
    }
}

impl Deref for MemoryHandle {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.control
    }
}
