//! The settings of a server's life: who shares it, how it is started again and asked, and which of its calls are made again.

use std::{collections::BTreeMap, time::Duration};

use crate::config::{
    BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry, RetryClass, Scope,
    problem::{Report, join},
    setting::{Setting, Values},
};

/// The most connections of one pool.
const MAX_POOL: usize = 64;
/// The longest list of waits. It is one that a person writes.
const MAX_WAITS: usize = 64;
/// How far a single wait is doubled.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the settings of a server's life come to.
pub(super) struct Life {
    pub(super) scope: Scope,
    pub(super) idle_stop: IdleStop,
    pub(super) restart: Restart,
    pub(super) health: Health,
    pub(super) retries: Retry,
    pub(super) breaker: Option<BreakerPolicy>,
}

impl Life {
    pub(super) fn of(values: &Values) -> Self {
        Self {
            scope: scope(values),
            idle_stop: match (values.word("idle_stop"), values.duration("idle_stop")) {
                (Some("off"), _) => IdleStop::Never,
                (_, Some(idle)) => IdleStop::After(idle),
                _ => IdleStop::Auto,
            },
            restart: restart(values),
            health: health(values),
            retries: retries(values),
            breaker: breaker(values),
        }
    }
}

/// Reports a scope that is none, and waits that cannot be a schedule.
pub(super) fn check(values: &Values, path: &str, report: &mut Report) {
    if let Some(Setting::Text(text)) = values.get("scope")
        && pool(&text.value).is_none()
    {
        let message = format!("must be shared, session, or pool(N) with N from 1 to {MAX_POOL}");
        report.error(text.at, &join(path, "scope"), message);
    }
    if let Some(table) = values.table("restart")
        && let Some(found) = table.find("backoff")
        && let Some(problem) = bad_waits(&waits(table))
    {
        report.error(found.at, &join(path, "restart.backoff"), problem);
    }
}

fn scope(values: &Values) -> Scope {
    match values.get("scope") {
        Some(Setting::Word("session")) => Scope::Session,
        Some(Setting::Table(table)) => table.count("pool").map_or(Scope::Shared, Scope::Pool),
        Some(Setting::Text(text)) => pool(&text.value).map_or(Scope::Shared, Scope::Pool),
        _ => Scope::Shared,
    }
}

fn restart(values: &Values) -> Restart {
    let defaults = Restart {
        start_wait: values.duration("start_wait").unwrap_or_default(),
        ..Restart::default()
    };
    let Some(table) = values.table("restart") else {
        return defaults;
    };
    Restart {
        enabled: table.bool("enabled").unwrap_or(defaults.enabled),
        waits: waits(table),
        max_attempts: table.count("max_attempts").and_then(|most| u32::try_from(most).ok()),
        wait: table.duration("wait").unwrap_or(defaults.wait),
        start_wait: defaults.start_wait,
    }
}

/// The waits before restarts. A single one doubles up to [`LONGEST_WAIT`].
fn waits(restart: &Values) -> Vec<Duration> {
    let Some(Setting::Duration(first)) = restart.get("backoff") else {
        return durations(restart, "backoff");
    };
    let doubled = std::iter::successors(Some(*first), |wait| {
        (!wait.is_zero() && *wait < LONGEST_WAIT).then(|| (*wait * 2).min(LONGEST_WAIT))
    });
    doubled.collect()
}

/// The same rules as for a schedule that a program sets.
fn bad_waits(waits: &[Duration]) -> Option<&'static str> {
    match waits.last() {
        None => Some("needs at least one wait"),
        Some(last) if last.is_zero() => {
            Some("must not end with zero: a broken server would be started without a pause")
        }
        Some(_) if waits.len() > MAX_WAITS => Some("has more waits than anybody needs"),
        Some(_) if !waits.is_sorted() => Some("must only grow"),
        Some(_) => None,
    }
}

/// `pool(4)`.
fn pool(text: &str) -> Option<usize> {
    let size = text.trim().strip_prefix("pool")?.trim_start();
    let size = size.strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()?;
    (1..=MAX_POOL).contains(&size).then_some(size)
}

fn durations(table: &Values, name: &str) -> Vec<Duration> {
    match table.get(name) {
        Some(Setting::List(items)) => items
            .iter()
            .filter_map(|item| match item {
                Setting::Duration(wait) => Some(*wait),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn health(values: &Values) -> Health {
    let defaults = Health::default();
    Health {
        probe: match values.word("health_probe") {
            Some("list_tools") => Probe::ListTools,
            Some("none") => Probe::Never,
            // `ping` and `discover` are the words of one era each; a server is asked in those of its own.
            _ => Probe::Auto,
        },
        every: match values.word("health_interval") {
            Some(_) => None,
            None => values.duration("health_interval").or(defaults.every),
        },
        within: values.duration("health_timeout").unwrap_or(defaults.within),
        restarts: values.bool("health_restart").unwrap_or(defaults.restarts),
    }
}

fn retries(values: &Values) -> Retry {
    let defaults = Retry::default();
    let Some(table) = values.table("retry") else {
        return defaults;
    };
    Retry {
        mode: table
            .value("key_argument")
            .map(RetryClass::Key)
            .or_else(|| table.word("mode").map(class)),
        attempts: table
            .count("attempts")
            .and_then(|attempts| u32::try_from(attempts).ok())
            .unwrap_or(defaults.attempts),
        waits: durations(table, "backoff"),
        jitter: table
            .count("jitter")
            .and_then(|percent| u32::try_from(percent).ok())
            .unwrap_or(defaults.jitter),
        even_if_run: table.bool("unsafe").unwrap_or(false),
    }
}

fn class(word: &str) -> RetryClass {
    match word {
        "safe" => RetryClass::Safe,
        "idempotent" => RetryClass::Idempotent,
        _ => RetryClass::Never,
    }
}

fn breaker(values: &Values) -> Option<BreakerPolicy> {
    let table = values.table("breaker")?;
    if table.bool("enabled") == Some(false) {
        return Some(BreakerPolicy::Off);
    }
    let defaults = BreakerRule::default();
    let count = |name: &str, default: u32| {
        let count = table.count(name).and_then(|count| u32::try_from(count).ok());
        count.unwrap_or(default)
    };
    Some(BreakerPolicy::On(BreakerRule {
        failures: count("failures", defaults.failures),
        percent: count("percent", defaults.percent),
        of: table.count("of").unwrap_or(defaults.of),
        open: table.duration("open").unwrap_or(defaults.open),
        probes: count("probes", defaults.probes),
        successes: count("successes", defaults.successes),
    }))
}

/// The queues of single tools.
pub(super) fn tool_queues(values: &Values) -> BTreeMap<String, String> {
    let Some(Setting::Map(tools)) = values.get("tools") else {
        return BTreeMap::new();
    };
    let queue = |tool: &Setting| match tool {
        Setting::Table(tool) => tool.value("queue"),
        _ => None,
    };
    tools
        .iter()
        .filter_map(|(name, tool)| Some((name.clone(), queue(tool)?)))
        .collect()
}
