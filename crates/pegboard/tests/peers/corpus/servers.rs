//! The servers of `scripts/peers` that list their tools without authentication.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::{
    Config, Pegboard, ServerConfig, ServerName,
    config::{Command, EraChoice, Transport},
};

/// Longer than ten servers take to start on a busy machine, shorter than a stuck test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// All of them on one board.
pub(crate) fn board() -> Pegboard {
    let mut config = Config::default();
    for (name, command) in commands() {
        let mut server = ServerConfig::new(Transport::Stdio(command));
        // Some of them never answer the probe for the modern era.
        server.era = EraChoice::Legacy;
        server.limits.connect_timeout = PATIENCE;
        config.servers.insert(ServerName::parse(name).unwrap(), server);
    }
    Pegboard::builder(config).tools_only().open()
}

fn home() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let home = repository.join("target/peers");
    assert!(home.join("npm/.stamp").exists(), "run scripts/peers first");
    home
}

fn node(program: &str) -> Command {
    let packages = home().join("npm/node_modules");
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    Command::new(path(packages.join(".bin/node"))).args([path(packages.join(program))])
}

fn python(program: &str) -> Command {
    Command::new(home().join("python-modern/bin").join(program).to_str().unwrap())
}

/// The servers require tokens to start, and never use them here.
fn commands() -> Vec<(&'static str, Command)> {
    let reference = |name: &str| node(&format!("@modelcontextprotocol/{name}/dist/index.js"));
    vec![
        (
            "brave",
            node("@brave/brave-search-mcp-server/dist/index.js")
                .args(["--transport", "stdio"])
                .env("BRAVE_API_KEY", "none"),
        ),
        (
            "chrome",
            node("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js")
                .args(["--headless", "--no-usage-statistics"])
                .env("CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS", "1"),
        ),
        (
            "cloudflare",
            node("@cloudflare/mcp-server-cloudflare/dist/index.js")
                .args(["run", "none"])
                .env("CLOUDFLARE_API_TOKEN", "none"),
        ),
        ("everything", reference("server-everything")),
        ("files", reference("server-filesystem").args(["/"])),
        ("git", python("mcp-server-git")),
        (
            "github",
            reference("server-github").env("GITHUB_PERSONAL_ACCESS_TOKEN", "none"),
        ),
        (
            "gitlab",
            node("@zereight/mcp-gitlab/build/index.js")
                .env("GITLAB_PERSONAL_ACCESS_TOKEN", "none")
                .env("GITLAB_TOOLSETS", "all"),
        ),
        (
            "hubspot",
            node("@hubspot/mcp-server/dist/index.js").env("PRIVATE_APP_ACCESS_TOKEN", "none"),
        ),
        ("memory", reference("server-memory")),
        (
            "notion",
            node("@notionhq/notion-mcp-server/bin/cli.mjs").env("NOTION_TOKEN", "none"),
        ),
        (
            "playwright",
            node("@playwright/mcp/cli.js").args([
                "--headless",
                "--caps=vision,pdf,devtools,testing,storage,network,config",
            ]),
        ),
        ("time", python("mcp-server-time").args(["--local-timezone", "Etc/UTC"])),
    ]
}
