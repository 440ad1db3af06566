//! One file per shape; all mean the same.

use std::time::Duration;

use super::*;
use pegboard_base::secret::{SafeUrl, Secret};

const FILES: &[(&str, &str)] = &[
    ("pegboard.toml", include_str!("../golden/pegboard.toml")),
    ("pegboard.yaml", include_str!("../golden/pegboard.yaml")),
    ("claude.json", include_str!("../golden/claude.json")),
    ("ai-agent.json", include_str!("../golden/ai-agent.json")),
    ("vscode.json", include_str!("../golden/vscode.json")),
    ("codex.toml", include_str!("../golden/codex.toml")),
    ("tarsy.yaml", include_str!("../golden/tarsy.yaml")),
    ("zed.json", include_str!("../golden/zed.json")),
    ("antwort.yaml", include_str!("../golden/antwort.yaml")),
    ("opencode.json", include_str!("../golden/opencode.json")),
    ("minion.yaml", include_str!("../golden/minion.yaml")),
];

fn endpoint(url: &str) -> Endpoint {
    Endpoint::from(SafeUrl::parse(url).unwrap())
}

fn wanted() -> BTreeMap<ServerName, ServerConfig> {
    let command = Command::new("uvx")
        .args(["mcp-server-time", "--local-timezone=UTC"])
        .env("TZ", "UTC");
    let mut time = ServerConfig::new(Transport::Stdio(command));
    time.limits.connect_timeout = Duration::from_secs(45);

    let mut to = endpoint("https://mcp.example.com/mcp");
    to.headers.insert("X-Api-Key".into(), Secret::new("s3cr3t"));
    let mut github = ServerConfig::new(Transport::http(to));
    github.allow = vec!["issues_*".into(), "search_code".into()];
    github.deny = vec!["*delete*".into()];
    github.limits.call_timeout = Duration::from_secs(90);
    github.required = true;

    let mut events = ServerConfig::new(Transport::sse(endpoint("https://events.example.com/sse")));
    events.enabled = false;
    [("time", time), ("github", github), ("events", events)]
        .map(|(name, server)| (ServerName::parse(name).unwrap(), server))
        .into()
}

/// Some shapes have no word for the type, so a URL's kind is left open there.
fn settled(mut config: Config) -> BTreeMap<ServerName, ServerConfig> {
    for server in config.servers.values_mut() {
        if let Transport::Remote { kind, endpoint } = &mut server.transport {
            if *kind == RemoteKind::Auto {
                *kind = RemoteKind::Http;
            }
            // A header that only the format of one program knows.
            let session = endpoint.headers.remove("X-Session-ID");
            assert!(session.is_none_or(|session| session.expose() == "{{SESSION_ID}}"));
        }
        // The files name the same secret by different fields and variables.
        server.hidden.clear();
    }
    config.servers
}

#[test]
fn every_shape_loads_to_the_same_servers() {
    for (name, text) in FILES {
        for format in [Format::from_path(name.as_ref()), None] {
            let loaded = Config::load(&[Source::text(*name, *text, format)], &env());
            let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
            assert_eq!(errors, Vec::<String>::new(), "{name} as {format:?}");
            assert_eq!(settled(loaded.config), wanted(), "{name} as {format:?}");
        }
    }
}

#[test]
fn what_is_passed_over_in_other_programs_files_is_said_once() {
    let warnings: Vec<String> = FILES
        .iter()
        .flat_map(|(name, text)| Config::load(&[Source::text(*name, *text, None)], &env()).problems)
        .map(|problem| problem.to_string())
        .collect();
    insta::assert_snapshot!(warnings.join("\n"), @r#"
    claude.json:15: servers.github.timeout: 90000 is taken as milliseconds (write it with a unit, such as `"30s"`)
    claude.json:20: settings of another program are passed over: globalShortcut
    codex.toml:1: settings of another program are passed over: model, approval_policy
    tarsy.yaml:1: settings of another program are passed over: agents
    tarsy.yaml:21: servers.github.timeout: 90 is taken as seconds (write it with a unit, such as `"30s"`)
    zed.json:2: settings of another program are passed over: theme
    zed.json:19: servers.github.timeout: 90 is taken as seconds (write it with a unit, such as `"30s"`)
    "#);
}

#[test]
fn the_schema_knows_every_key_of_the_files() {
    let schema = Config::schema();
    let top = schema["properties"].as_object().unwrap();
    let server = schema["$defs"]["server"]["properties"].as_object().unwrap();
    for (name, text) in FILES {
        let Ok(root) = tree::read(text, None) else {
            panic!("{name}")
        };
        let mut report = problem::Report::new(*name);
        if *name == "pegboard.toml" || *name == "vscode.json" {
            let tree::Value::Map(entries) = &root.value else {
                panic!("{name}")
            };
            for entry in entries {
                assert!(top.contains_key(&entry.key), "{name}: {}", entry.key);
            }
        }
        for (_, settings) in import::shape(root, &mut report).servers {
            for setting in settings {
                let key = spelling::camel(&spelling::snake(&setting.key));
                assert!(
                    server.contains_key(&setting.key) || server.contains_key(&key),
                    "{name}: {}",
                    setting.key
                );
            }
        }
    }
}
