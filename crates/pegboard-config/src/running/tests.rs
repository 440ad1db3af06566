use std::collections::BTreeSet;

use super::*;
use crate::{Env, Format, Source, field::Effect, fields};

/// What a reload does with a setting of the whole board: `true` if it applies it, `false` if it takes effect at the next start.
type Row = (&'static str, bool, &'static str);

/// Every setting at the top of a file that is not one of servers, and of `serve`, with another value than the default.
const ROWS: &[Row] = &[
    ("preset", true, "preset = 'minion'"),
    ("queues", true, "queues = { q = 3 }"),
    ("masking", true, "masking = false"),
    ("audit", false, "audit = '/tmp/other.jsonl'"),
    ("naming", true, "naming = 'dot'"),
    ("views", true, "views.v = { servers = ['x'] }"),
    ("daemon", true, "daemon = false"),
    ("max_servers", true, "max_servers = 200"),
    ("max_processes", false, "max_processes = 2"),
    ("max_starts", false, "max_starts = 2"),
    ("max_buffered", false, "max_buffered = '2MiB'"),
    ("serve.listen", false, "serve.listen = ['127.0.0.1:1']"),
    ("serve.hosts", true, "serve.hosts = ['a.example']"),
    ("serve.origins", true, "serve.origins = ['https://a.example']"),
    ("serve.public_url", true, "serve.public_url = 'https://a.example'"),
    ("serve.max_connections", false, "serve.max_connections = 2"),
    ("serve.max_in_flight", false, "serve.max_in_flight = 2"),
    ("serve.max_body", false, "serve.max_body = '2KiB'"),
    ("serve.max_sessions", false, "serve.max_sessions = 2"),
    ("serve.session_idle", false, "serve.session_idle = '2s'"),
    (
        "serve.state_key",
        false,
        "serve.state_key = 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='",
    ),
    (
        "serve.previous_state_key",
        false,
        "serve.previous_state_key = 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='",
    ),
    ("serve.store", false, "serve.store = 'file:/srv/x'"),
    ("serve.replicas", false, "serve.replicas.listen = '127.0.0.1:1'"),
    ("serve.allow_new_servers", true, "serve.allow_new_servers = true"),
    ("serve.links_in_text", true, "serve.links_in_text = false"),
    ("serve.tls", false, "serve.tls = { cert = 'c.pem', key = 'k.pem' }"),
    ("serve.access_log", false, "serve.access_log = 'stderr'"),
    ("serve.dashboard", false, "serve.dashboard = false"),
    (
        "serve.telemetry",
        false,
        "serve.telemetry.endpoint = 'http://127.0.0.1:4318'",
    ),
    ("serve.metrics", false, "serve.metrics.max_tools = 5"),
    ("serve.dashboard_calls", true, "serve.dashboard_calls = 'off'"),
    (
        "serve.oauth",
        true,
        "serve.oauth = { issuer = 'https://i.example', audience = 'gateway', rules = [{}] }",
    ),
    (
        "serve.tokens",
        true,
        "serve.tokens.a.sha256 = '0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c0c4c'",
    ),
];

fn config(text: &str) -> Config {
    let text = format!("{text}\n[servers.x]\ncommand = 'x'\n[servers.y]\ncommand = 'y'\n");
    let loaded = Config::load(
        &[Source::text("pegboard.toml", text, Some(Format::Toml))],
        &Env::from_pairs::<&str, &str>([]),
    );
    let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
    assert_eq!(errors, Vec::<String>::new());
    loaded.config
}

#[test]
fn every_setting_of_the_board_is_applied_by_a_reload_or_named() {
    for (name, is_applied, text) in ROWS {
        let new = config(text);
        assert_ne!(new, config(""), "{name}");
        let mut running = RunningSettings::new(&config(""), true);
        let expected: Vec<&str> = if *is_applied { Vec::new() } else { vec![*name] };
        assert_eq!(running.apply(&new).settings, expected, "{name}");
        assert_eq!(running.apply(&new).settings, expected, "{name}, at the next reload");
        assert_eq!(
            running.apply(&config("")).settings,
            Vec::<&str>::new(),
            "{name}, set back"
        );
    }
}

#[test]
fn no_setting_of_the_board_is_forgotten() {
    let of_servers: BTreeSet<&str> = fields::SERVER.fields().map(|field| field.name).collect();
    // These are settings of the board, and of servers that override them.
    let own = ["preset", "masking"];
    let top = fields::TOP.fields().filter(|field| field.effect == Effect::Now);
    let top = top.filter(|field| own.contains(&field.name) || !of_servers.contains(field.name));
    let top = top
        .filter(|field| field.name != "serve")
        .map(|field| field.name.to_owned());
    let serve = fields::serve::SECTION
        .fields()
        .filter(|field| field.effect == Effect::Now);
    let serve = serve.map(|field| format!("serve.{}", field.name));
    let declared: BTreeSet<String> = top.chain(serve).collect();
    let listed: BTreeSet<String> = ROWS.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    assert_eq!(listed, declared);
}

#[test]
fn limits_that_only_grow_are_in_effect_at_their_largest() {
    let mut running = RunningSettings::new(&config("max_processes = 10"), false);
    let mut withheld = |text| running.apply(&config(text)).settings;
    assert_eq!(withheld("max_processes = 20"), Vec::<&str>::new());
    assert_eq!(withheld("max_processes = 10"), ["max_processes"]);
    assert_eq!(withheld("max_processes = 20"), Vec::<&str>::new());
    assert_eq!(withheld("max_processes = 20\nmax_servers = 2"), Vec::<&str>::new());
    assert_eq!(
        withheld("max_processes = 20\nmax_servers = 1"),
        ["max_servers"],
        "two servers run"
    );
}

#[test]
fn settings_of_a_gateway_mean_nothing_without_one() {
    let mut running = RunningSettings::new(&config(""), false);
    let new = config("serve.listen = ['127.0.0.1:1']");
    assert_eq!(running.apply(&new), Withheld::default());
}

#[test]
fn an_audit_log_that_is_required_from_now_on_is_missed() {
    let required = config("audit = { file = '/tmp/a.jsonl', required = true }");
    let optional = config("audit = '/tmp/a.jsonl'");
    let missed = |started: &Config, new: &Config| RunningSettings::new(started, true).apply(new).misses_required_audit;
    assert!(missed(&config(""), &required));
    assert!(missed(&optional, &required));
    assert!(!missed(&required, &required));
    assert!(!missed(&required, &optional));
}
