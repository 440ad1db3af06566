//! Configs, servers and outcomes that are stored and read back.

use std::{path::PathBuf, time::Duration};

use pegboard::{
    Answer, Config, Content, Env, Failure, Format, Kind, Outcome, ServerConfig,
    config::{
        AuditConfig, Auth, BreakerPolicy, Command, Endpoint, IdleStop, Preset, RetryClass, SandboxNetwork, Transport,
    },
};
use serde_json::{Value, json};

/// A setting of nearly every kind, and secrets in every place that can have one.
const TEXT: &str = r#"
preset = "antwort"
naming = "dot"
max_servers = 7
masking = { style = "whole", custom = [{ pattern = "id-[0-9]+", description = "ids" }] }

[queues]
slow = { concurrent = 2 }

[servers.files]
command = "npx"
args = ["-y", "files", "--token", "s3cret-argument-1"]
env = { API_KEY = "s3cret-environment-1" }
cwd = "/srv"
env_policy = "inherit"
scope = "pool(3)"
start = "lazy"
era = "2025-06-18"
idle_stop = "90s"
queue = "slow"
cache = "1500ms"
tools_cache = { get_it = "off", list_it = "2m" }
restart = { backoff = ["0s", "1s"], max_attempts = 4 }
retry = { attempts = 3, key_argument = "key" }
breaker = { failures = 9 }
rlimits = { open_files = 64 }
sandbox = { level = "basic", read = ["/usr/share"], network = [443] }
rate = "60/min"
taint = "ask"
allow = ["get_*"]
tools.delete_it = { approval = "always", retry = "never", result = { max_bytes = 1000 } }
summarise = { url = "https://models.example.com/v1", model = "small", api_key = "s3cret-key-1" }

[servers.remote]
url = "https://user:s3cret-user-1@example.com/mcp?key=s3cret-query-1"
headers = { X-Key = "s3cret-header-1" }
health_interval = "off"
idle_stop = "off"
breaker = "off"

[servers.signed]
url = "https://example.com/mcp"
auth = { bearer = "s3cret-bearer-1" }

[servers.broken]
url = "ftp://example.com"
"#;

fn config() -> Config {
    let mut config = Config::from_text(TEXT, Format::Toml, &Env::process()).config;
    config.audit = Some(AuditConfig::new("/var/log/audit.jsonl"));
    assert_eq!((config.servers.len(), config.misconfigured.len()), (3, 1));
    config
}

#[test]
fn a_config_stored_with_its_secrets_is_read_as_it_was() {
    let config = config();
    let stored = serde_json::to_string_pretty(&config.with_secrets()).unwrap();
    let read: Config = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, config);
    assert_eq!(serde_json::to_string_pretty(&read.with_secrets()).unwrap(), stored);
    assert_eq!(
        format!("{read:?}"),
        format!("{config:?}"),
        "what is printed stays hidden"
    );
    for server in config.servers.values() {
        let stored = serde_json::to_value(server.with_secrets()).unwrap();
        assert_eq!(&serde_json::from_value::<ServerConfig>(stored).unwrap(), server);
    }
}

#[test]
fn a_config_stored_without_its_secrets_has_none_and_is_not_read() {
    let config = config();
    let stored = serde_json::to_string(&config).unwrap();
    assert!(!stored.contains("s3cret"), "{stored}");
    let refused = serde_json::from_str::<Config>(&stored).unwrap_err().to_string();
    assert!(refused.contains("with_secrets()"), "{refused}");
    for (name, server) in &config.servers {
        let hidden = serde_json::to_value(server).unwrap();
        assert!(serde_json::from_value::<ServerConfig>(hidden).is_err(), "{name}");
    }
}

#[test]
fn a_config_without_secrets_is_stored_as_it_is() {
    let text = "[servers.docs]\nurl = 'https://example.com/mcp'\n[servers.time]\ncommand = 'time-server'\n";
    let config = Config::from_text(text, Format::Toml, &Env::process())
        .into_result()
        .unwrap();
    let stored = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&stored).unwrap(), config);
}

#[test]
fn settings_that_are_missing_have_their_defaults_and_unknown_ones_are_ignored() {
    let read: ServerConfig = serde_json::from_value(json!({
        "transport": {"type": "stdio", "program": "uvx", "colour": "blue"}, "weight": 3
    }))
    .unwrap();
    assert_eq!(read, ServerConfig::stdio(Command::new("uvx")));
    let read: ServerConfig =
        serde_json::from_value(json!({"transport": {"type": "auto", "url": "https://example.com/mcp"}})).unwrap();
    assert_eq!(read, ServerConfig::http("https://example.com/mcp").unwrap());
    assert_eq!(serde_json::from_value::<Config>(json!({})).unwrap(), Config::new());
    for bad in [
        json!({"transport": {"type": "pigeon"}}),
        json!({"transport": {"type": "http", "url": "nowhere"}}),
        json!({"transport": {"type": "stdio", "program": "x"}, "limits": {"connect_timeout": "soon"}}),
        json!({}),
    ] {
        assert!(serde_json::from_value::<ServerConfig>(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn the_shape_of_a_stored_server_is_readable() {
    let stored = serde_json::to_value(&config().servers["files"]).unwrap();
    for (path, expected) in [
        ("/transport/type", json!("stdio")),
        ("/transport/args", json!(["****", "****", "****", "****"])),
        ("/policy/scope", json!("pool(3)")),
        ("/policy/idle_stop", json!({"after": "90s"})),
        ("/policy/cache", json!("1500ms")),
        ("/policy/tools_cache", json!({"get_it": null, "list_it": "2m"})),
        ("/era", json!("2025-06-18")),
        ("/start", json!("lazy")),
    ] {
        assert_eq!(stored.pointer(path), Some(&expected), "{path} of {stored:#}");
    }
}

#[test]
fn every_preset_is_stored_and_read_back() {
    for preset in ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"] {
        let text = format!("preset = '{preset}'\n[servers.time]\ncommand = 'time-server'\n");
        let config = Config::from_text(&text, Format::Toml, &Env::process())
            .into_result()
            .unwrap();
        assert_eq!(config.preset, preset.parse::<Preset>().unwrap());
        let stored = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&stored).unwrap(), config, "{preset}");
    }
}

#[test]
fn settings_with_data_are_stored_and_read_back() {
    let mut server = ServerConfig::stdio(Command::new("x"));
    for idle in [
        IdleStop::Auto,
        IdleStop::Never,
        IdleStop::After(Duration::from_nanos(1)),
    ] {
        server.policy.idle_stop = idle;
        for breaker in [None, Some(BreakerPolicy::Off), Some(BreakerPolicy::default())] {
            server.policy.breaker = breaker;
            let classes = [
                RetryClass::Never,
                RetryClass::Safe,
                RetryClass::Idempotent,
                RetryClass::Key("k".into()),
            ];
            for class in classes {
                server.policy.retry.mode = Some(class);
                let stored = serde_json::to_string(&server).unwrap();
                assert_eq!(
                    serde_json::from_str::<ServerConfig>(&stored).unwrap(),
                    server,
                    "{stored}"
                );
            }
        }
    }
    for network in [
        SandboxNetwork::All,
        SandboxNetwork::Off,
        SandboxNetwork::Ports(vec![443]),
    ] {
        let mut command = Command::new("x");
        command.sandbox.network = network;
        let server = ServerConfig::stdio(command);
        let stored = serde_json::to_string(&server).unwrap();
        assert_eq!(
            serde_json::from_str::<ServerConfig>(&stored).unwrap(),
            server,
            "{stored}"
        );
    }
}

#[test]
fn a_config_is_written_in_code() {
    let endpoint = Endpoint::new("https://example.com/mcp").unwrap().bearer("t0ken");
    let endpoint = endpoint.header("X-Team", "blue").header("x-team", "red");
    assert_eq!(endpoint.headers.len(), 1, "names of headers ignore case");
    assert_eq!(endpoint.auth.kind(), "bearer");
    let config = Config::new()
        .server(
            "time",
            ServerConfig::stdio(Command::new("uvx").arg("mcp-server-time").cwd("/srv")),
        )
        .and_then(|config| config.server("remote", ServerConfig::http(endpoint).unwrap()))
        .and_then(|config| config.server("socket", ServerConfig::websocket("wss://example.com/mcp").unwrap()))
        .unwrap();
    assert_eq!(config.servers["time"].cwd(), Some(&PathBuf::from("/srv")));
    assert!(
        matches!(&config.servers["remote"].transport, Transport::Remote { endpoint, .. } if endpoint.auth == Auth::Bearer("t0ken".into()))
    );
    assert_eq!(config.servers["socket"].transport.kind(), "websocket");
    assert!(
        Config::new()
            .server("a b", ServerConfig::stdio(Command::new("x")))
            .is_err()
    );

    for (bad, reason) in [
        ("", "relative URL without a base"),
        ("example.com", "relative URL without a base"),
        ("https://", "empty host"),
        (
            "ftp://example.com",
            "it must start with `http://` or `https://` or `ws://` or `wss://`",
        ),
    ] {
        assert_eq!(Endpoint::new(bad).unwrap_err().reason(), reason);
    }
    assert!(ServerConfig::websocket("https://example.com").is_err() && ServerConfig::http("ws://example.com").is_err());
    let secret = Endpoint::new("ftp://user:hunter2@example.com").unwrap_err().to_string();
    assert!(!secret.contains("hunter2"), "{secret}");
}

#[test]
fn all_errors_of_a_config_are_one_error() {
    let text = "[servers.a]\nurl = 'ftp://example.com'\n[servers.b]\ncommand = 'x'\nstart = 'soon'\n[servers.c]\ncommand = 'y'\n";
    let loaded = Config::from_text(text, Format::Toml, &Env::process());
    let errors = loaded.errors().count();
    let bad = loaded.into_result().unwrap_err();
    let lines: Vec<String> = bad.to_string().lines().map(str::to_owned).collect();
    assert_eq!((bad.problems.len(), lines.len()), (errors, errors));
    assert!(
        lines.iter().any(|line| line.contains("servers.a.url"))
            && lines.iter().any(|line| line.contains("servers.b.start")),
        "{bad}"
    );
    assert!(std::error::Error::source(&bad).is_some());
}

#[test]
fn outcomes_answers_and_failures_have_documented_json() {
    let check = |outcome: Outcome, expected: Value| {
        let written = serde_json::to_value(&outcome).unwrap();
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Outcome>(written).unwrap(), outcome);
    };
    check(
        Outcome::Done(Answer::from_text("hi")),
        json!({"status": "done", "content": [{"type": "text", "text": "hi"}], "structured": null}),
    );
    let mut failed = Answer::from_content([Content::text("no")]);
    failed.error_code = Some(-32602);
    check(
        Outcome::ToolFailed(failed),
        json!({"status": "tool_failed", "content": [{"type": "text", "text": "no"}], "structured": null, "error_code": -32602}),
    );
    check(
        Outcome::Refused(Failure::new(Kind::UnknownTool, "no such tool").hint("list them")),
        json!({"status": "refused", "kind": "unknown_tool", "message": "no such tool", "hint": "list them", "may_have_executed": false}),
    );
    let lost = Failure::new(Kind::Transport, "lost")
        .after_sending()
        .code(-32000)
        .retry_after(Duration::from_millis(1500));
    check(
        Outcome::Lost(lost.caused_by(&std::io::Error::other("reset"))),
        json!({"status": "lost", "kind": "transport", "message": "lost", "hint": null, "may_have_executed": true, "code": -32000,
               "retry_after_ms": 1500, "causes": ["reset"]}),
    );
}
