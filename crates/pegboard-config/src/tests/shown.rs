//! What `config show` and `config schema` print.

use super::*;

#[test]
fn the_resolved_config_is_complete_and_hides_secrets() {
    let loaded = toml(
        "[servers.x]\ncommand = 'uvx'\nargs = ['--zone', '${ZONE}']\nenv = { KEY = '${GITHUB_TOKEN}', TZ = 'UTC' }\ntimeout = '90s'\n",
    );
    let mut shown = loaded.show();
    shown.as_object_mut().unwrap().remove("origins");
    shown["servers"]["x"].as_object_mut().unwrap().remove("origins");
    insta::assert_snapshot!(format!("{shown:#}"), @r#"
    {
      "daemon": true,
      "max_buffered": "256MiB",
      "max_processes": 256,
      "max_servers": 100,
      "max_starts": 64,
      "misconfigured": {},
      "naming": "dunder",
      "preset": "pegboard",
      "queues": {},
      "servers": {
        "x": {
          "allow": [],
          "allow_loader_env": false,
          "always_load": [],
          "approval": "auto",
          "approval_exempt": [],
          "args": [
            "--zone",
            "${ZONE}"
          ],
          "cache": false,
          "call_timeout": "90s",
          "call_total_timeout": "10m",
          "capabilities": [
            "tools",
            "resources",
            "prompts"
          ],
          "case_insensitive": false,
          "command": "uvx",
          "connect_timeout": "30s",
          "crossing": "block",
          "deny": [],
          "enabled": true,
          "env": {
            "KEY": "${GITHUB_TOKEN}",
            "TZ": "****"
          },
          "env_pass": [],
          "env_policy": "allowlist",
          "era": "auto",
          "era_silence": "25s",
          "health_interval": "1m",
          "health_probe": "auto",
          "health_restart": false,
          "health_timeout": "5s",
          "idle_stop": "auto",
          "list_timeout": "30s",
          "loop_limit": 0,
          "max_in_flight": 32,
          "max_items": 2048,
          "max_message": "8MiB",
          "max_pages": 100,
          "origin": {
            "file": "pegboard.toml",
            "line": 1
          },
          "output_check": "warn",
          "pins": "warn",
          "preset": "pegboard",
          "required": false,
          "roots": [],
          "scan": "warn",
          "scope": "shared",
          "serial": false,
          "start": "eager",
          "start_wait": "0s",
          "stop_timeout": "2s",
          "taint": "off",
          "tools_cache": {},
          "trust": false,
          "type": "stdio",
          "write_timeout": "10s"
        }
      },
      "sources": [
        "pegboard.toml"
      ],
      "views": {}
    }
    "#);
}

#[test]
fn every_value_says_where_it_comes_from() {
    let top = "preset = 'tarsy'\nconnectTimeout = '5s'\n";
    let loaded = toml(&format!(
        "{top}[servers.x]\ncommand = 'a'\nargs = ['${{ZONE}}']\ntimeout = '90s'\nretry = {{ unsafe = true }}\n\
         [servers.y]\nurl = 'https://h/mcp'\npreset = 'goat'\n"
    ));
    let shown = loaded.show();
    let of = |server: &str, field: &str| shown["servers"][server]["origins"][field].as_str().unwrap().to_owned();
    for (server, field, from) in [
        ("x", "command", "pegboard.toml:4"),
        ("x", "call_timeout", "pegboard.toml:6"),
        ("x", "call_total_timeout", "follows from call_timeout"),
        ("x", "connect_timeout", "pegboard.toml:2, for all servers"),
        ("x", "retry.unsafe", "pegboard.toml:7"),
        ("x", "retry.attempts", "preset tarsy"),
        ("x", "restart.enabled", "preset tarsy"),
        ("x", "preset", "pegboard.toml:1, for all servers"),
        ("x", "type", "follows from command"),
        ("x", "max_pages", "default"),
        ("y", "preset", "pegboard.toml:10"),
        ("y", "scope", "preset goat"),
    ] {
        assert_eq!(of(server, field), from, "{server}.{field}");
    }
    assert_eq!(shown["servers"]["x"]["preset"], "tarsy");
    assert_eq!(shown["servers"]["y"]["preset"], "goat");
    assert_eq!(shown["origins"]["naming"], "preset tarsy");
    let explained = loaded.explain();
    let one = |field: &str| {
        explained
            .iter()
            .find(|one| one.server.is_some() && one.field == field)
            .unwrap()
    };
    assert_eq!(one("args").variables, ["ZONE"]);
    let over: Vec<String> = one("call_total_timeout")
        .over
        .iter()
        .map(|over| format!("{} {}", over.value, over.from))
        .collect();
    assert_eq!(over, ["\"1m\" preset tarsy", "\"10m\" default"]);
}

#[test]
fn a_server_added_by_hand_is_shown_too() {
    let mut loaded = toml("");
    let server = ServerConfig::new(Transport::Stdio(Command::new("uvx").args(["secret"])));
    loaded.config.servers.insert(ServerName::parse("x").unwrap(), server);
    assert_eq!(loaded.show()["servers"]["x"]["command"], "uvx");
    assert!(!loaded.show().to_string().contains("secret"));
}

/// The defaults of a section as a file would write them, tables included.
fn defaults(section: &field::Section) -> serde_json::Map<String, serde_json::Value> {
    let mut all = serde_json::Map::new();
    for field in section.fields().filter(|field| field.applies != field::Applies::Remote) {
        // Summaries, a breaker and restart waits of a server's own take the place of the board's, even with the same values; a
        // table for the sandbox asks for one, and an audit log needs a file.
        let is_boards = ["summarise", "breaker", "backoff", "sandbox", "audit"].contains(&field.name);
        let value = match (redact::render_default(field.default), field.kind.section()) {
            _ if is_boards => continue,
            (Some(default), _) => default,
            (None, Some(parts)) if !matches!(field.kind, field::ValueKind::Table(_)) || field.name == "result" => {
                defaults(parts).into()
            }
            (None, _) => continue,
        };
        all.insert(field.name.to_owned(), value);
    }
    all
}

#[test]
fn documented_defaults_are_the_real_ones() {
    let mut server = defaults(fields::SERVER);
    server.insert("command".into(), "a".into());
    assert_eq!(
        (&server["retry"]["attempts"], &server["result"]["max_bytes"]),
        (&2.into(), &"48KiB".into())
    );
    let mut config = defaults(fields::TOP);
    config.insert("servers".into(), serde_json::json!({"x": server}));
    let text = serde_json::Value::from(config).to_string();
    let loaded = Config::from_text(&text, Format::Json, &env());
    assert_eq!(loaded.problems, []);
    let plain = Config::from_text("[servers.x]\ncommand = 'a'", Format::Toml, &env());
    assert_eq!(loaded.config, plain.config);
    let new = ServerConfig::new(Transport::Stdio(Command::new("a")));
    assert_eq!(plain.config.servers.into_values().next(), Some(new));
    assert_eq!(plain.config.limits, BoardLimits::default());
}

#[test]
fn documented_defaults_of_the_audit_log_are_the_real_ones() {
    let field = fields::TOP.find("audit").unwrap().field;
    let mut parts = defaults(field.kind.section().unwrap());
    parts.insert("file".into(), "calls.jsonl".into());
    for audit in [parts.into(), serde_json::Value::from("calls.jsonl")] {
        let loaded = Config::from_text(&serde_json::json!({"audit": audit}).to_string(), Format::Json, &env());
        assert_eq!(loaded.problems, []);
        assert_eq!(loaded.config.audit, Some(AuditConfig::new("calls.jsonl")));
    }
}

#[test]
fn what_is_no_audit_log_is_a_problem() {
    for audit in [
        "audit = { required = true }",
        "audit = ''",
        "audit = { file = '' }",
        "audit = { to = 'stdout', file = 'x' }",
        "audit = { to = 'stderr' }",
    ] {
        let loaded = Config::from_text(audit, Format::Toml, &env());
        assert_eq!(loaded.errors().count(), 1, "{audit}: {:?}", loaded.problems);
    }
}

#[test]
fn a_rate_that_does_not_parse_makes_its_server_unusable() {
    for settings in ["rate = 'often'", "tools.x.rate = '0/min'"] {
        let loaded = Config::from_text(&format!("[servers.a]\ncommand = 'a'\n{settings}"), Format::Toml, &env());
        assert_eq!(
            (loaded.config.servers.len(), loaded.errors().count()),
            (0, 1),
            "{settings}"
        );
    }
    assert_eq!(
        Config::from_text("rate = '5/fortnight'", Format::Toml, &env())
            .errors()
            .count(),
        1
    );
}

#[test]
fn documented_defaults_of_summaries_and_breakers_are_the_real_ones() {
    for table in ["summarise", "breaker"] {
        let field = fields::SERVER.find(table).unwrap().field;
        let parts = defaults(field.kind.section().unwrap());
        let text = serde_json::json!({"servers": {"x": {"command": "a", table: parts}}}).to_string();
        let loaded = Config::from_text(&text, Format::Json, &env());
        assert_eq!(loaded.problems, []);
        let policy = loaded.config.servers.into_values().next().unwrap().policy;
        match table {
            "breaker" => assert_eq!(policy.breaker, Some(BreakerPolicy::default())),
            _ => assert_eq!(policy.summarise, Some(Summarise::default())),
        }
    }
}

#[test]
fn the_schema_documents_every_field_and_its_references_resolve() {
    fn references(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                found.extend(map.get("$ref").and_then(|r| r.as_str()).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let schema = Config::schema();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.len() > 100);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        let target = schema.pointer(pointer).unwrap_or_else(|| panic!("{reference}"));
        assert!(target.is_object(), "{reference}");
    }
    let properties = schema["$defs"]["server"]["properties"].as_object().unwrap();
    for field in fields::SERVER.fields() {
        assert!(
            field.names().all(|name| properties.contains_key(name)),
            "{}",
            field.name
        );
        assert!(
            field.effect == field::Effect::Foreign || !field.doc.is_empty(),
            "{}",
            field.name
        );
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    let text = r#"
        [servers.a]
        command = "uvx"
        args = ["x", "${ZONE}"]
        env = { A = "${ZONE}" }
        env_policy = "inherit"
        cwd = "/w"
        rlimits = { open_files = 256, memory = "1GiB" }
        start = "lazy"
        era = "2025-06-18"
        connect_timeout_ms = 1500
        max_message = "1MiB"
        allow = ["a*"]
        instructions = "be kind"
        scope = "session"
        cache = "5m"
        approval = "writes"
        tools = { "x_*" = { approval = "never", enabled = false, instructions = "mind it" } }
        masking = { groups = ["basic"], custom = [{ pattern = "x", replacement = "y" }] }
        summarise = true
        retry = { mode = "safe", attempts = 2 }
        restart = { backoff = ["0ms", "1s"] }
        sandbox = { level = "basic", write = ["/w/out"], network = [443] }
        [servers.b]
        url = "https://h/mcp"
        type = "http"
        headers = { A = "${ZONE}" }
        auth = { user = "me", password = "${GITHUB_TOKEN}" }
        tls = { ca = "/ca.pem", verify = false }
        required = true
        call_timeout = "20m"
    "#;
    let first = toml(text);
    assert_eq!(first.errors().count(), 0, "{:?}", first.problems);
    let mut shown = first.show();
    for server in shown["servers"].as_object_mut().unwrap().values_mut() {
        for told in ["origin", "origins"] {
            server.as_object_mut().unwrap().remove(told);
        }
    }
    for told in ["sources", "origins", "misconfigured"] {
        shown.as_object_mut().unwrap().remove(told);
    }
    let second = Config::from_text(&shown.to_string(), Format::Json, &env());
    assert_eq!(second.errors().count(), 0, "{:?}", second.problems);
    assert_eq!(second.config, first.config);
}
