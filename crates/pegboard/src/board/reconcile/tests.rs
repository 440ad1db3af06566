//! One row per setting, and properties over random configs.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use pegboard_base::secret::{SafeUrl, Secret};
use pegboard_config::{Auth, Command, Endpoint, EnvPolicy, EraChoice, Pins, Scope, Start, ToolPolicy, Transport};

type Servers = BTreeMap<ServerName, ServerConfig>;

fn name(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

fn stdio() -> ServerConfig {
    ServerConfig::new(Transport::Stdio(
        Command::new("serve").args(["--quiet"]).env("KEY", "1"),
    ))
}

fn http() -> ServerConfig {
    let url = SafeUrl::parse("https://example.com/mcp").unwrap();
    ServerConfig::new(Transport::http(Endpoint::from(url)))
}

/// The change that follows from changing one setting.
fn check(config: &ServerConfig, what: &str, expected: &str, edit: impl FnOnce(&mut ServerConfig)) {
    let mut edited = config.clone();
    edit(&mut edited);
    let servers = |config: &ServerConfig| Servers::from([(name("x"), config.clone())]);
    let changes = reconcile(&servers(config), &servers(&edited));
    let [change] = changes.as_slice() else {
        panic!("{what}: {changes:?}");
    };
    assert_eq!(kind(change), expected, "{what}");
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Remove(_) => "remove",
        Change::Disable(..) => "disable",
        Change::Retune(..) => "retune",
        Change::Replace(..) => "replace",
        Change::Enable(..) => "enable",
        Change::Add(..) => "add",
    }
}

fn command(config: &mut ServerConfig) -> &mut Command {
    match &mut config.transport {
        Transport::Stdio(command) => command,
        Transport::Remote { .. } => panic!("not stdio"),
    }
}

fn endpoint(config: &mut ServerConfig) -> &mut Endpoint {
    match &mut config.transport {
        Transport::Remote { endpoint, .. } => endpoint,
        Transport::Stdio(_) => panic!("not http"),
    }
}

#[test]
fn what_a_connection_is_made_of_replaces_it() {
    let (stdio, http) = (stdio(), http());
    check(&stdio, "transport", "replace", |c| c.transport = http.transport.clone());
    check(&stdio, "program", "replace", |c| command(c).program = "other".into());
    check(&stdio, "args", "replace", |c| command(c).args.clear());
    check(&stdio, "env", "replace", |c| {
        command(c).env.insert("KEY".into(), Secret::new("2"));
    });
    check(&stdio, "env_policy", "replace", |c| {
        command(c).env_policy = EnvPolicy::Inherit
    });
    check(&stdio, "cwd", "replace", |c| command(c).cwd = Some("/".into()));
    check(&http, "url", "replace", |c| {
        endpoint(c).url = SafeUrl::parse("https://example.com/").unwrap()
    });
    check(&http, "headers", "replace", |c| {
        endpoint(c).headers.insert("x".into(), Secret::new("y"));
    });
    check(&http, "auth", "replace", |c| {
        endpoint(c).auth = Auth::Bearer(Secret::new("t"))
    });
    check(&http, "tls", "replace", |c| endpoint(c).tls.insecure = true);
    check(&stdio, "era", "replace", |c| c.era = EraChoice::Legacy);
    check(&stdio, "scope", "replace", |c| c.policy.scope = Scope::Session);
    check(&stdio, "roots", "replace", |c| c.roots.push("file:///tmp".into()));
    check(&stdio, "message_bytes", "replace", |c| c.limits.max_message = 1);
    check(&stdio, "write", "replace", |c| c.limits.write_timeout = Duration::ZERO);
    check(&stdio, "stop", "replace", |c| c.limits.stop_timeout = Duration::ZERO);
    check(&stdio, "pins", "replace", |c| c.policy.pins = Pins::Block);
    check(&stdio, "tool_schemas", "replace", |c| {
        c.tool_schemas.insert("a".into(), serde_json::json!({}));
    });
    check(&stdio, "hidden", "replace", |c| c.hidden.push(Secret::new("s3cret")));
}

#[test]
fn what_is_looked_at_at_each_call_retunes_it() {
    let stdio = stdio();
    check(&stdio, "allow", "retune", |c| c.allow.push("a*".into()));
    check(&stdio, "deny", "retune", |c| c.deny.push("b*".into()));
    check(&stdio, "required", "retune", |c| c.required = true);
    check(&stdio, "start", "retune", |c| c.start = Start::Lazy);
    check(&stdio, "description", "retune", |c| c.description = Some("d".into()));
    check(&stdio, "instructions", "retune", |c| c.instructions = Some("i".into()));
    check(&stdio, "call_idle", "retune", |c| {
        c.limits.call_timeout = Duration::ZERO
    });
    check(&stdio, "in_flight", "retune", |c| c.limits.max_in_flight = 1);
    check(&stdio, "queue", "retune", |c| c.policy.queue = Some("slow".into()));
    check(&stdio, "trust", "retune", |c| c.policy.trust = true);
    check(&stdio, "restart", "retune", |c| c.policy.restart.enabled = false);
    check(&stdio, "health", "retune", |c| c.policy.health.interval = None);
    check(&stdio, "masking", "retune", |c| c.policy.masking.enabled = false);
    check(&stdio, "tools", "retune", |c| {
        c.policy.tool_queues.insert("a".into(), "slow".into());
        c.policy.tools.insert("a".into(), ToolPolicy::default());
    });
    let mut rooted = stdio.clone();
    rooted.roots.push("file:///tmp".into());
    check(&rooted, "roots", "retune", |c| c.roots.push("file:///srv".into()));
}

#[test]
fn switching_on_and_off_takes_the_other_changes_along() {
    let (on, mut off) = (stdio(), stdio());
    off.enabled = false;
    check(&on, "off", "disable", |c| c.enabled = false);
    check(&off, "on", "enable", |c| c.enabled = true);
    check(&off, "on elsewhere", "enable", |c| *c = http());
    check(&off, "changed while off", "retune", |c| {
        command(c).program = "other".into()
    });
}

#[test]
fn what_ends_comes_before_what_begins() {
    let mut off = stdio();
    off.enabled = false;
    let mut filtered = stdio();
    filtered.allow.push("a".into());
    let servers = |list: &[(&str, &ServerConfig)]| -> Servers {
        list.iter().map(|(n, config)| (name(n), (*config).clone())).collect()
    };
    let on = stdio();
    let running = servers(&[
        ("a", &on),
        ("b", &on),
        ("c", &off),
        ("d", &on),
        ("y", &on),
        ("z", &on),
        ("k", &on),
    ]);
    let wanted = servers(&[
        ("a", &http()),
        ("b", &filtered),
        ("c", &on),
        ("d", &off),
        ("e", &on),
        ("f", &off),
        ("k", &on),
    ]);
    let changes = reconcile(&running, &wanted);
    let kind: Vec<_> = changes
        .iter()
        .map(|change| format!("{} {}", kind(change), change.server()))
        .collect();
    assert_eq!(
        kind,
        [
            "remove y",
            "remove z",
            "disable d",
            "retune b",
            "replace a",
            "enable c",
            "add e",
            "add f"
        ]
    );
}

fn config() -> impl Strategy<Value = ServerConfig> {
    let transport = prop_oneof![
        "[ab]{1}".prop_map(|program| Transport::Stdio(Command::new(program))),
        ("[ab]{1}", "[ab]{1}").prop_map(|(path, token)| {
            let mut endpoint = Endpoint::from(SafeUrl::parse(&format!("https://h/{path}")).unwrap());
            endpoint.auth = Auth::Bearer(Secret::new(token));
            Transport::http(endpoint)
        }),
    ];
    let filters = (
        prop::collection::vec("[ab]{1}", 0..2),
        prop::collection::vec("[ab]{1}", 0..2),
    );
    (transport, any::<[bool; 4]>(), 1usize..3, filters).prop_map(|(transport, flags, size, (allow, deny))| {
        let mut config = ServerConfig::new(transport);
        [config.enabled, config.required, config.policy.serial, _] = flags;
        config.limits.max_in_flight = size;
        if flags[3] {
            config.era = EraChoice::Modern;
        }
        (config.allow, config.deny) = (allow, deny);
        config
    })
}

fn servers() -> impl Strategy<Value = Servers> {
    prop::collection::btree_map("[a-e]{1}".prop_map(|text| name(&text)), config(), 0..5)
}

fn apply(running: &Servers, changes: Vec<Change>) -> Servers {
    let mut servers = running.clone();
    for change in changes {
        match change {
            Change::Remove(name) => {
                assert!(servers.remove(&name).is_some());
            }
            Change::Add(name, config) => assert!(servers.insert(name, *config).is_none()),
            Change::Disable(name, config)
            | Change::Retune(name, config)
            | Change::Replace(name, config)
            | Change::Enable(name, config) => assert!(servers.insert(name, *config).is_some()),
        }
    }
    servers
}

proptest! {
    #[test]
    fn carrying_the_changes_out_gives_what_is_wanted(running in servers(), wanted in servers()) {
        let changes = reconcile(&running, &wanted);
        prop_assert_eq!(reconcile(&running, &wanted), changes.clone());
        prop_assert_eq!(apply(&running, changes), wanted);
    }

    #[test]
    fn equal_configs_need_no_change(servers in servers()) {
        prop_assert_eq!(reconcile(&servers, &servers), []);
    }

    #[test]
    fn a_change_of_filters_never_ends_a_connection(
        running in servers(),
        allow in prop::collection::vec("[a-z*]{1,3}", 0..3),
        deny in prop::collection::vec("[a-z*]{1,3}", 0..3),
    ) {
        let mut wanted = running.clone();
        for config in wanted.values_mut() {
            (config.allow, config.deny) = (allow.clone(), deny.clone());
        }
        for change in reconcile(&running, &wanted) {
            prop_assert_eq!(kind(&change), "retune");
        }
    }

    #[test]
    fn another_transport_never_goes_unnoticed(running in servers(), wanted in servers()) {
        let changes = reconcile(&running, &wanted);
        for (name, new) in &wanted {
            let Some(old) = running.get(name) else { continue };
            if old.enabled && new.enabled && (&old.transport, &old.era) != (&new.transport, &new.era) {
                prop_assert!(changes.contains(&Change::Replace(name.clone(), Box::new(new.clone()))));
            }
        }
    }
}
