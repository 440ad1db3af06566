//! Merges the settings of a server with weaker ones: those of the top of the file and those of a preset.
//!
//! Tables are merged key by key. A weaker setting that contradicts a stronger one is left out, so that a preset never
//! overrides the file.

use super::{
    field::{Applies, Field, Void},
    fields::{SERVER, result, server, summarise},
    from_setting::FromSetting as _,
    key::Table,
    lifecycle::{Probe, health_keys},
    setting::{Found, Setting, Values},
};

/// Fields that are short for a field of `result`.
static OF_RESULT: [(&Field, &Field); 2] = [
    (&server::max_result.field, &result::max_bytes.field),
    (&server::structured.field, &result::structured.field),
];

/// Replaces every short form by the table that it is short for.
pub(super) fn expand(mut values: Values) -> Values {
    for field in SERVER.fields() {
        let (Some(short), Some(found)) = (field.merged, values.find_mut(field)) else {
            continue;
        };
        if let Some((part, setting)) = short(&found.setting) {
            let mut table = Values::default();
            table.insert(part, found.beside(setting));
            found.setting = Setting::Table(table);
        }
    }
    for (field, part) in &OF_RESULT {
        let Some(short) = values.remove(field) else { continue };
        match values.find_mut(&server::result) {
            Some(Found {
                setting: Setting::Table(table),
                ..
            }) => {
                // The table overrides the short form.
                if table.find(part).is_none() {
                    table.insert(part, short);
                }
            }
            _ => {
                let mut table = Values::default();
                let found = short.beside(Setting::Bool(true));
                table.insert(part, short);
                let setting = Setting::Table(table);
                values.insert(&server::result, Found { setting, ..found });
            }
        }
    }
    values
}

/// Fills `values` from the weaker layer `lower`. Settings of `values` stay, tables are merged key by key.
///
/// Skips fields that apply only to the `other` kind of server, and fields that servers do not have.
pub(super) fn fill_from_weaker(values: &mut Values, lower: Values, other: Applies) {
    // Decided before the loop: settings of the same layer do not contradict each other.
    let are_probes_wanted = are_probes_wanted(values);
    for (name, mut found) in lower.into_iter() {
        let Some(field) = SERVER.fields().find(|field| field.name == name) else {
            continue;
        };
        // Masking of a server extends that of all servers; `resolve` merges the two.
        let is_separate = field.name == server::masking.name;
        let is_contradicted = are_probes_wanted && turns_probes_off(field, &found);
        if is_separate || field.applies == other || is_contradicted {
            continue;
        }
        match (values.find_mut(field), &mut found.setting) {
            (None, _) => values.insert(field, found),
            (
                Some(Found {
                    setting: Setting::Table(higher),
                    ..
                }),
                Setting::Table(lower),
            ) if field.merged.is_some() => fill(field, higher, std::mem::take(lower)),
            (Some(_), _) => {}
        }
    }
}

/// Whether the settings have an interval between health probes, which means that there are probes.
fn are_probes_wanted(values: &Values) -> bool {
    let interval = Table::<server::In>::new(values).set(&health_keys::interval);
    interval.is_some_and(|interval| interval.is_some())
}

fn turns_probes_off(field: &Field, found: &Found) -> bool {
    field.name == health_keys::probe.name && Probe::from_setting(&found.setting) == Some(Probe::Never)
}

/// Fills a table from the same table of a weaker layer.
fn fill(table: &Field, higher: &mut Values, mut lower: Values) {
    let Some(section) = table.kind.section() else { return };
    for field in section.fields() {
        let is_set = |name: &&str| {
            section
                .find(name)
                .is_some_and(|other| higher.find(other.field).is_some())
        };
        let is_void = match field.void {
            Void::Never => false,
            Void::IfTable => true,
            Void::IfSet(names) => names.iter().any(is_set),
        };
        if is_void {
            lower.remove(field);
        }
    }
    if table.name == server::summarise.name && lower.find(&summarise::url).is_some() {
        higher.remove(&summarise::model);
        higher.remove(&summarise::api_key);
    }
    higher.fill_from(lower);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
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

    /// The policy of a server with these settings at the top of the file, and of one with them in its own table.
    fn policies(preset: &str, settings: &str) -> [Policy; 2] {
        [server(preset, settings, ""), server(preset, "", settings)].map(|server| server.policy)
    }

    fn limits(preset: &str, settings: &str) -> [(Duration, Duration); 2] {
        [server(preset, settings, ""), server(preset, "", settings)]
            .map(|server| (server.limits.call_timeout, server.limits.call_total_timeout))
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
        assert_eq!((own.call_timeout, own.call_total_timeout), (secs(80), secs(80)));
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
                (policy.call_arguments.read, policy.call_arguments.check),
                (Reading::Cascade, Check::Strict)
            );
        }
        for policy in policies("tarsy", "call_arguments = 'strict'") {
            assert_eq!(
                (policy.call_arguments.read, policy.call_arguments.check),
                (Reading::Cascade, Check::Strict)
            );
        }
        for policy in policies("tarsy", "retry = { unsafe = true }") {
            assert_eq!((policy.retry.attempts, policy.retry.even_if_run), (1, true));
        }
        for policy in policies("minion", "restart = { wait = '3s' }") {
            assert_eq!(policy.restart.wait, secs(3));
            assert_eq!(policy.restart.backoff[0], secs(1));
            assert!(policy.restart.max_attempts.is_some());
        }
        for policy in policies("minion", "breaker = { failures = 9 }") {
            let Some(BreakerPolicy::On(rule)) = policy.breaker else {
                panic!()
            };
            assert_eq!((rule.failures, rule.percent, rule.probes), (9, 50, 3));
        }
        for policy in policies("ai-agent", "result = { max_lines = 9 }") {
            assert_eq!((policy.result.max_lines, policy.result.max_bytes), (Some(9), 12_288));
        }
    }

    #[test]
    fn a_short_form_changes_only_what_it_is_short_for() {
        for policy in policies("ai-agent", "max_result = '1MiB'\nstructured = 'content_only'") {
            let Results { max_bytes, ceiling, .. } = policy.result;
            assert_eq!((max_bytes, ceiling), (1 << 20, 1 << 20));
            assert_eq!(policy.result.structured, Structured::ContentOnly);
            assert_eq!(policy.result.join, crate::Join::Nothing);
        }
        for policy in policies("minion", "restart = true") {
            assert_eq!(policy.restart.backoff[0], secs(1));
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
            let Health {
                probe, interval: every, ..
            } = policy.health;
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
        assert_eq!(one.policy.retry.mode, Some(crate::RetryClass::Never));
        assert_eq!(one.policy.retry.attempts, 5);
        let two = server(
            "pegboard",
            "connect_timeout = '5s'\nenv_policy = 'inherit'",
            "connect_timeout = '6s'",
        );
        assert_eq!(two.limits.connect_timeout, secs(6));
        let remote = load("env_policy = 'inherit'\n[servers.x]\nurl = 'https://h/'");
        let told: Vec<String> = remote.problems.iter().map(ToString::to_string).collect();
        let is_told = told.iter().any(|told| told.contains("env_policy"));
        assert!(!is_told, "it says nothing about servers without a process: {told:?}");
    }
}
