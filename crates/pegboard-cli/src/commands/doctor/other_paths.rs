//! Tries the usual paths of MCP servers where the configured one was not found.

use std::time::Duration;

use pegboard::{
    Config, Pegboard, ServerConfig, ServerName, State,
    config::{SafeUrl, Transport},
    url::Url,
};

/// The paths at which most servers listen.
const PATHS: &[&str] = &["/mcp", "/sse", "/mcp/", "/", "/api/mcp"];
/// How long all paths together may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The first address of the same host at which an MCP server answers. It differs from that of the server in its path only, and has its secrets.
pub(super) async fn find(server: &ServerConfig) -> Option<Url> {
    let url = server.transport.endpoint()?.url.expose();
    let mut config = Config::default();
    let mut tried = Vec::new();
    for (at, path) in PATHS.iter().filter(|path| **path != url.path()).enumerate() {
        let mut other = url.clone();
        other.set_path(path);
        let name = ServerName::parse(&format!("path-{at}")).ok()?;
        let mut server = server.clone();
        server.limits.connect_timeout = server.limits.connect_timeout.min(LIMIT);
        match &mut server.transport {
            Transport::Remote { endpoint, .. } => endpoint.url = SafeUrl::parse(other.as_str()).ok()?,
            Transport::Stdio(_) => return None,
        }
        config.servers.insert(name.clone(), server);
        tried.push((name, other));
    }
    let board = Pegboard::builder(config).tools_only().open();
    board.settle(LIMIT).await;
    let status = board.status();
    let answers = |name: &ServerName| {
        let found = status.servers.iter().find(|one| one.name == *name);
        found.is_some_and(|one| matches!(one.state, State::Ready | State::NeedsAuth))
    };
    let found = tried.into_iter().find(|(name, _)| answers(name)).map(|(_, url)| url);
    // What does not end in time is killed when the board is dropped.
    let _ = tokio::time::timeout(LIMIT, board.shutdown()).await;
    found
}
