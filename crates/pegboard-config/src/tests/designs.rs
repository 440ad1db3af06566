//! The configurations that the five designs describe, each under its own preset, and editors' files under all of them.

use std::time::Duration;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Loads a file and checks what is said about it.
#[track_caller]
fn load(name: &str, text: &str, told: &[&str]) -> Config {
    let env = Env::from_pairs([
        ("KUBECONFIG", "/k/config"),
        ("TOKEN", "s3cr3t"),
        ("GITHUB_TOKEN", "s3cr3t"),
        ("HOME", "/home/me"),
    ]);
    let loaded = Config::load(&[Source::text(name, text, None)], &env);
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, told, "{name}");
    loaded.config
}

fn get<'a>(config: &'a Config, name: &str) -> &'a ServerConfig {
    &config.servers[&ServerName::parse(name).unwrap()]
}

#[test]
fn tarsy_with_its_transport_config() {
    let text = r#"
preset: tarsy
mcp_servers:
  kubernetes-server:
    transport:
      type: stdio
      command: npx
      args: ["-y", "kubernetes-mcp-server"]
      env:
        KUBECONFIG: "{{.KUBECONFIG}}"
    data_masking: { enabled: true, pattern_groups: [kubernetes] }
    summarization: { enabled: true, size_threshold_tokens: 5000, summary_max_token_limit: 1000 }
  argocd-server:
    transport:
      type: http
      url: https://argocd.example.com/mcp
      bearer_token: "{{.TOKEN}}"
      verify_ssl: true
      timeout: 90
  events-server:
    transport: { type: sse, url: "https://events.example.com/sse", timeout: 0 }
"#;
    let config = load(
        "tarsy.yaml",
        text,
        &[
            "tarsy.yaml:19: servers.argocd-server.timeout: 90 is taken as seconds (write it with a unit, such as `\"30s\"`)",
            "tarsy.yaml:21: servers.events-server.timeout: 0 means that it is not set (leave the setting out; the longest limit is `\"24h\"`)",
        ],
    );
    let stdio = get(&config, "kubernetes-server");
    assert_eq!(
        (stdio.limits.call_timeout, stdio.limits.call_total_timeout),
        (secs(60), secs(60))
    );
    assert_eq!(stdio.policy.scope, Scope::Session);
    assert_eq!(stdio.policy.call_arguments.read, Reading::Cascade);
    assert_eq!(stdio.policy.summarise.as_ref().unwrap().threshold_tokens, 5000);
    let Transport::Stdio(command) = &stdio.transport else {
        panic!()
    };
    assert_eq!(
        (command.env_policy, command.env["KUBECONFIG"].expose()),
        (EnvPolicy::Inherit, "/k/config")
    );
    let http = get(&config, "argocd-server");
    assert_eq!(
        (http.limits.call_timeout, http.limits.call_total_timeout),
        (secs(90), secs(90))
    );
    let to = http.transport.endpoint().unwrap();
    assert_eq!(
        (&to.auth, to.tls.insecure),
        (&Auth::Bearer(pegboard_base::secret::Secret::new("s3cr3t")), false)
    );
    let sse = get(&config, "events-server");
    assert_eq!((sse.transport.kind(), sse.limits.call_timeout), ("sse", secs(60)));
}

#[test]
fn ai_agent_with_its_server_config() {
    let text = r#"{
  "preset": "ai-agent",
  "mcpServers": {
    "github": {
      "type": "stdio", "command": "npx", "args": ["-y", "github-mcp"], "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" },
      "toolsAllowed": ["search_code", "get_*"], "toolsDenied": ["delete_*"], "shared": true, "healthProbe": "ping",
      "queue": "heavy", "requestTimeoutMs": 600000
    },
    "ws": { "type": "websocket", "url": "wss://ws.example.com", "headers": { "Authorization": "Bearer ${TOKEN}" } },
    "http": { "type": "http", "url": "https://http.example.com/mcp", "shared": false, "healthProbe": "listTools" },
    "sse": { "type": "sse", "url": "https://sse.example.com/sse" }
  },
  "queues": { "default": { "concurrent": 4 }, "heavy": { "concurrent": 1 } }
}"#;
    let config = load("ai-agent.json", text, &[]);
    let github = get(&config, "github");
    assert_eq!(
        (github.limits.call_timeout, github.limits.call_total_timeout),
        (secs(600), secs(600))
    );
    assert_eq!((github.allow.len(), github.policy.queue.as_deref()), (2, Some("heavy")));
    assert_eq!(github.limits.connect_timeout, secs(60));
    assert_eq!(get(&config, "ws").transport.kind(), "websocket");
    let http = get(&config, "http");
    assert_eq!(
        (http.policy.scope, http.policy.health.probe),
        (Scope::Session, Probe::ListTools)
    );
    assert_eq!(
        (http.limits.call_timeout, http.limits.call_total_timeout),
        (secs(300), secs(300))
    );
    assert_eq!(config.queues["heavy"].concurrent, 1);
}

#[test]
fn antwort_with_its_three_transports() {
    let text = r#"
preset: antwort
Servers:
  - Name: local
    Transport: stdio
    Command: mcp-local
    Args: [--verbose]
    Env: { LOG: debug }
  - Name: legacy
    Transport: sse
    URL: https://legacy.example.com/sse
  - Name: modern
    Transport: streamable-http
    URL: https://modern.example.com/mcp
    Headers: { X-Tenant: a }
"#;
    let config = load("antwort.yaml", text, &[]);
    let kinds = ["local", "legacy", "modern"].map(|name| get(&config, name).transport.kind());
    assert_eq!(kinds, ["stdio", "sse", "http"]);
    assert!(config.servers.values().all(|server| server.start == Start::Lazy));
    assert_eq!(config.naming, NameStyle::Bare);
}

#[test]
fn goat_with_its_union_of_servers() {
    let text = r#"{
  "preset": "goat",
  "mcpServers": {
    "filesystem": { "command": "npx", "args": ["@modelcontextprotocol/server-filesystem"], "env": { "A": "b" } },
    "remote": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "X-Key": "${TOKEN}" } },
    "old": { "type": "sse", "url": "https://old.example.com/sse" }
  }
}"#;
    let told = "goat.json:6: servers.old.url: the server is reached over sse, and `transports` of preset `goat` allows stdio and http \
                (write `transports = [\"sse\"]` in the server's table if it is meant)";
    let config = load("goat.json", text, &[told]);
    assert_eq!(config.servers.len(), 2);
    let filesystem = get(&config, "filesystem");
    assert_eq!(
        (filesystem.start, filesystem.policy.scope),
        (Start::Explicit, Scope::Session)
    );
    assert_eq!(config.misconfigured.len(), 1);
}

#[test]
fn minion_with_its_manager_and_clients() {
    let text = r#"
preset: minion
MaxServers: 10
DefaultTimeout: 90s
EnableAutoReconnect: true
MaxReconnectRetries: 5
ReconnectBackoff: 2s
Servers:
  - ServerName: github
    Description: GitHub
    Transport: stdio
    Command: npx
    Args: ["-y", "@modelcontextprotocol/server-github"]
    Env: { GITHUB_TOKEN: "${GITHUB_TOKEN}" }
    WorkingDir: /work
    Capabilities: [tools]
    ConnectTimeout: 20s
    RequestTimeout: 45s
  - ServerName: custom
    Transport: http
    HTTPUrl: http://mcp.example.com/api
    AuthType: apikey
    AuthConfig: { APIKey: "${TOKEN}" }
  - ServerName: secured
    Transport: http
    URL: https://secured.example.com/mcp
    AuthType: bearer
    AuthConfig: { Token: "${TOKEN}" }
  - ServerName: signed
    Transport: http
    URL: https://signed.example.com/mcp
    AuthType: oauth
"#;
    let told = "minion.yaml:29: servers.signed.auth_type: this program was built without sign-in with OAuth, so that the server would be asked \
                without credentials (build it with the feature `oauth` of the crate `pegboard`, or give it a token: `auth = { bearer = \"${TOKEN}\" }`)";
    let told: &[&str] = if cfg!(feature = "oauth") { &[] } else { &[told] };
    let config = load("minion.yaml", text, told);
    assert_eq!(config.limits.max_servers, 10);
    let github = get(&config, "github");
    assert_eq!(
        (github.limits.connect_timeout, github.limits.call_timeout),
        (secs(20), secs(45))
    );
    let custom = get(&config, "custom");
    assert_eq!(custom.limits.call_timeout, secs(90));
    assert!(custom.limits.call_total_timeout >= secs(90));
    let to = custom.transport.endpoint().unwrap();
    assert_eq!(
        (to.url.to_string().as_str(), to.headers["X-API-Key"].expose()),
        ("http://mcp.example.com/api", "s3cr3t")
    );
    for server in config.servers.values() {
        let restart = &server.policy.restart;
        assert_eq!((restart.enabled, restart.max_attempts), (true, Some(6)));
        assert_eq!(restart.backoff, [2, 4, 8, 16, 30].map(secs));
    }
}

#[test]
fn minions_manager_can_turn_reconnecting_off() {
    let text = "preset = 'minion'\nEnableAutoReconnect = false\n[servers.x]\ncommand = 'a'\n";
    assert!(!server(text).policy.restart.enabled);
    for (retries, starts) in [(0, 1), (1, 2), (5, 6)] {
        let text = format!("preset = 'minion'\nMaxReconnectRetries = {retries}\n[servers.x]\ncommand = 'a'\n");
        assert_eq!(
            server(&text).policy.restart.max_attempts,
            Some(starts),
            "{retries} retries"
        );
    }
    assert_eq!(
        problems("MaxReconnectRetries = -1\nEnableAutoReconnect = true\nrestart = false"),
        [
            "pegboard.toml:1: restart.MaxReconnectRetries: must be between 1 and 1000000",
            "pegboard.toml:2: restart.EnableAutoReconnect: `enabled` and `EnableAutoReconnect` are the same setting (keep one of them)",
        ]
    );
}

#[test]
fn editors_files_load_under_every_preset() {
    let claude = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server-filesystem", "/data"], "env": {"A": "b"}},
        "hub": {"type": "http", "url": "https://hub.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    }}"#;
    let cursor = r#"{"mcpServers": {
        "files": {"command": "uvx", "args": ["files"], "envFile": null},
        "hub": {"url": "https://hub.example.com/mcp"}
    }}"#;
    let vscode = r#"{"inputs": [], "servers": {
        "files": {"type": "stdio", "command": "node", "args": ["${workspaceFolder:-.}/x.js"]},
        "hub": {"type": "http", "url": "https://hub.example.com/mcp"}
    }}"#;
    for preset in ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"] {
        for (name, text) in [("claude.json", claude), ("cursor.json", cursor), ("mcp.json", vscode)] {
            let text = text.replacen('{', &format!("{{\"preset\": \"{preset}\", "), 1);
            let config = load(name, &text, &[]);
            assert_eq!(config.preset.as_str(), preset);
            let kinds = ["files", "hub"].map(|name| get(&config, name).transport.kind());
            assert_eq!(kinds, ["stdio", "http"], "{preset} {name}");
        }
    }
}

#[test]
fn the_golden_files_load_under_the_preset_that_they_are_written_for() {
    for (preset, text) in [
        ("tarsy", include_str!("../golden/tarsy.yaml")),
        ("antwort", include_str!("../golden/antwort.yaml")),
    ] {
        let loaded = Config::from_text(&format!("preset: {preset}\n{text}"), Format::Yaml, &env());
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(errors, Vec::<String>::new(), "{preset}");
        let github = get(&loaded.config, "github");
        assert_eq!(github.limits.call_timeout, secs(90), "{preset}");
        assert!(github.limits.call_total_timeout >= secs(90), "{preset}");
    }
}
