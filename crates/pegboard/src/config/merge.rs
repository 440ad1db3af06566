//! Merges the settings of a server with weaker ones: those of the top of the file and those of a preset.
//!
//! Tables are merged key by key. A weaker setting that would contradict a stronger one is left out, so that a preset never
//! fights the file.

use super::{
    fields::SERVER,
    setting::{Found, Setting, Values},
};

/// The key of a table that a short form stands for, and its value; `None` for a setting that is not in its short form.
type Long = fn(&Setting) -> Option<(&'static str, Setting)>;

/// Settings that have a short form.
const SHORT: &[(&str, Long)] = &[
    ("restart", switch),
    ("breaker", switch),
    ("summarise", switch),
    ("retry", |setting| match setting {
        Setting::Count(_) => Some(("attempts", setting.clone())),
        Setting::Word(_) => Some(("mode", setting.clone())),
        _ => None,
    }),
    ("call_arguments", |setting| match setting {
        Setting::Word(_) => Some(("check", setting.clone())),
        _ => None,
    }),
];

/// Settings that are short for one key of `result`.
const OF_RESULT: [(&str, &str); 2] = [("max_result", "max_bytes"), ("structured", "structured")];

fn switch(setting: &Setting) -> Option<(&'static str, Setting)> {
    match setting {
        Setting::Bool(_) => Some(("enabled", setting.clone())),
        // `off` is the only word.
        Setting::Word(_) => Some(("enabled", Setting::Bool(false))),
        _ => None,
    }
}

/// Whether a setting is a table that is merged key by key.
pub(super) fn is_merged(name: &str) -> bool {
    name == "result" || SHORT.iter().any(|(short, _)| *short == name)
}

/// The settings with every short form written out as the table that it is short for.
pub(super) fn plain(mut values: Values) -> Values {
    for (name, long) in SHORT {
        let Some(found) = values.find_mut(name) else { continue };
        if let Some((key, setting)) = long(&found.setting) {
            let mut table = Values::default();
            table.insert(key, found.beside(setting));
            found.setting = Setting::Table(table);
        }
    }
    for (name, key) in OF_RESULT {
        let Some(short) = values.remove(name) else { continue };
        match values.find_mut("result") {
            Some(Found {
                setting: Setting::Table(table),
                ..
            }) => {
                // Of the two the table wins.
                if table.find(key).is_none() {
                    table.insert(key, short);
                }
            }
            _ => {
                let mut table = Values::default();
                let found = short.beside(Setting::Bool(true));
                table.insert(key, short);
                let setting = Setting::Table(table);
                values.insert("result", Found { setting, ..found });
            }
        }
    }
    values
}

/// Puts `lower` under `values`: what is set stays, tables are filled key by key.
///
/// Settings in `useless` are left out, and so is what is said about other things than single servers.
pub(super) fn under(values: &mut Values, lower: Values, useless: &[&str]) {
    for (name, mut found) in lower.into_iter() {
        // Masking is not replaced but added to: see `load`.
        let is_servers = SERVER.fields.iter().any(|field| field.name == name) && name != "masking";
        if !is_servers || useless.contains(&name) || is_contradicted(values, name, &found.setting) {
            continue;
        }
        match (values.find_mut(name), &mut found.setting) {
            (None, _) => values.insert(name, found),
            (
                Some(Found {
                    setting: Setting::Table(higher),
                    ..
                }),
                Setting::Table(lower),
            ) if is_merged(name) => fill(name, higher, std::mem::take(lower)),
            (Some(_), _) => {}
        }
    }
}

/// Whether a stronger setting has no meaning beside this one.
fn is_contradicted(values: &Values, name: &str, setting: &Setting) -> bool {
    // A server that is asked every so often is asked somehow.
    name == "health_probe" && setting.word() == Some("none") && values.duration("health_interval").is_some()
}

/// Puts the keys of a table under those of a stronger one.
fn fill(name: &str, higher: &mut Values, mut lower: Values) {
    let sets = |names: &[&str]| names.iter().any(|name| higher.find(name).is_some());
    let void: &[&str] = match name {
        // A limit is meant as it is written, so that the other table's ceiling does not raise it.
        "result" if sets(&["max_bytes"]) => &["max_bytes", "ceiling"],
        // Two ways to say the same.
        "retry" if sets(&["mode", "key_argument"]) => &["mode", "key_argument", "unsafe"],
        // What says how, says that.
        "restart" if sets(&["backoff", "max_attempts"]) => &["enabled"],
        "breaker" => &["enabled"],
        // A key is only ever sent to the address that it stands beside.
        "summarise" if sets(&["url"]) => &["enabled", "url", "model", "api_key"],
        "summarise" => &["enabled"],
        _ => &[],
    };
    for name in void {
        lower.remove(name);
    }
    if name == "summarise" && lower.find("url").is_some() {
        higher.remove("model");
        higher.remove("api_key");
    }
    for (name, found) in lower.into_iter() {
        if higher.find(name).is_none() {
            higher.insert(name, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::{
        BreakerPolicy, BreakerRule, Check, Config, Env, Format, Health, Loaded, Policy, Probe, Reading, Results,
        ServerConfig, Structured,
    };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn load(text: &str) -> Loaded {
        Config::from_text(text, Format::Toml, &Env::new(|_| None))
    }

    fn server(preset: &str, top: &str, settings: &str) -> ServerConfig {
        let text = format!("preset = '{preset}'\n{top}\n[servers.x]\ncommand = 'a'\n{settings}\n");
        let loaded = load(&text);
        assert_eq!(loaded.problems, [], "{text}");
        loaded.config.servers.into_values().next().unwrap()
    }

    /// The policies of a server that says something itself, and of one for which the top of the file says it.
    fn policies(preset: &str, settings: &str) -> [Policy; 2] {
        [server(preset, settings, ""), server(preset, "", settings)].map(|server| server.policy)
    }

    fn limits(preset: &str, settings: &str) -> [(Duration, Duration); 2] {
        [server(preset, settings, ""), server(preset, "", settings)]
            .map(|server| (server.limits.call_idle, server.limits.call_total))
    }

    #[test]
    fn a_written_limit_moves_the_presets_other_one() {
        for (preset, total) in [("tarsy", 60), ("minion", 250)] {
            let longer = total + 30;
            let both = [(secs(longer), secs(longer)); 2];
            assert_eq!(limits(preset, &format!("call_timeout = '{longer}s'")), both, "{preset}");
            let ten = [(secs(10), secs(10)); 2];
            assert_eq!(limits(preset, "call_total_timeout = '10s'"), ten, "{preset}");
        }
        assert_eq!(
            limits("ai-agent", "requestTimeoutMs = 600000")[1],
            (secs(600), secs(600))
        );
        assert_eq!(
            limits("pegboard", "call_total_timeout = '10s'")[1],
            (secs(10), secs(10))
        );
        // The server's own setting moves the one for all servers, too.
        let own = server("tarsy", "call_total_timeout = '70s'", "call_timeout = '80s'").limits;
        assert_eq!((own.call_idle, own.call_total), (secs(80), secs(80)));
    }

    #[test]
    fn two_limits_that_were_both_written_must_fit_each_other() {
        let both = "call_timeout = '90s'\ncall_total_timeout = '60s'\n";
        let told = |text: &str| {
            let problems = load(text).problems;
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let server = "[servers.x]\ncommand = 'a'\n";
        let message = "must not be less than `call_timeout`";
        assert_eq!(
            told(&format!("preset = 'tarsy'\n{server}{both}")),
            [format!("config:5: servers.x.call_total_timeout: {message}")]
        );
        assert_eq!(
            told(&format!("preset = 'tarsy'\n{both}{server}[servers.y]\ncommand = 'b'")),
            [format!("config:3: call_total_timeout: {message}")],
            "once, not for every server"
        );
    }

    #[test]
    fn a_table_is_filled_key_by_key() {
        for policy in policies("tarsy", "call_arguments = { check = 'strict' }") {
            assert_eq!(
                (policy.args.reading, policy.args.check),
                (Reading::Cascade, Check::Strict)
            );
        }
        for policy in policies("tarsy", "call_arguments = 'strict'") {
            assert_eq!(
                (policy.args.reading, policy.args.check),
                (Reading::Cascade, Check::Strict)
            );
        }
        for policy in policies("tarsy", "retry = { unsafe = true }") {
            assert_eq!((policy.retries.attempts, policy.retries.even_if_run), (1, true));
        }
        for policy in policies("minion", "restart = { wait = '3s' }") {
            assert_eq!(policy.restart.wait, secs(3));
            assert_eq!(policy.restart.waits[0], secs(1));
            assert!(policy.restart.max_attempts.is_some());
        }
        for policy in policies("minion", "breaker = { failures = 9 }") {
            let Some(BreakerPolicy::On(rule)) = policy.breaker else {
                panic!()
            };
            assert_eq!((rule.failures, rule.percent, rule.probes), (9, 50, 3));
        }
        for policy in policies("ai-agent", "result = { max_lines = 9 }") {
            assert_eq!((policy.results.max_lines, policy.results.max_bytes), (Some(9), 12_288));
        }
    }

    #[test]
    fn a_short_form_changes_only_what_it_is_short_for() {
        for policy in policies("ai-agent", "max_result = '1MiB'\nstructured = 'content_only'") {
            let Results { max_bytes, ceiling, .. } = policy.results;
            assert_eq!((max_bytes, ceiling), (1 << 20, 1 << 20));
            assert_eq!(policy.results.structured, Structured::ContentOnly);
            assert_eq!(policy.results.join, crate::config::Join::Nothing);
        }
        for policy in policies("minion", "restart = true") {
            assert_eq!(policy.restart.waits[0], secs(1));
        }
    }

    #[test]
    fn what_is_written_turns_on_what_the_preset_turns_off() {
        for policy in policies("tarsy", "breaker = { failures = 3 }") {
            let rule = BreakerRule {
                failures: 3,
                ..BreakerRule::default()
            };
            assert_eq!(policy.breaker, Some(BreakerPolicy::On(rule)));
        }
        for policy in policies("tarsy", "restart = { backoff = ['1s'] }") {
            assert!(policy.restart.enabled);
        }
        for policy in policies("tarsy", "restart = { wait = '1s' }") {
            assert!(!policy.restart.enabled, "a wait alone does not restart");
        }
        for policy in policies("goat", "health_interval = '30s'") {
            let Health { probe, every, .. } = policy.health;
            assert_eq!((probe, every), (Probe::Auto, Some(secs(30))));
        }
    }

    #[test]
    fn a_server_says_again_what_the_top_of_the_file_says_otherwise() {
        let one = server(
            "pegboard",
            "retry = { key_argument = 'id', attempts = 5 }",
            "retry = 'never'",
        );
        assert_eq!(one.policy.retries.mode, Some(crate::config::RetryClass::Never));
        assert_eq!(one.policy.retries.attempts, 5);
        let two = server(
            "pegboard",
            "connect_timeout = '5s'\nenv_policy = 'inherit'",
            "connect_timeout = '6s'",
        );
        assert_eq!(two.limits.connect, secs(6));
        let remote = load("env_policy = 'inherit'\n[servers.x]\nurl = 'https://h/'");
        let told: Vec<String> = remote.problems.iter().map(ToString::to_string).collect();
        let is_told = told.iter().any(|told| told.contains("env_policy"));
        assert!(!is_told, "it says nothing about servers without a process: {told:?}");
    }
}
