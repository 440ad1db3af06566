//! Resolves the lifecycle of a server: restarts, health probes, the circuit breaker, and retries.

use std::time::Duration;

use crate::{
    fields::{ServerTable, breaker as breaker_fields, restart as restart_fields, retry, server},
    from_setting::{MAX_POOL, Waits},
    lifecycle::{BreakerPolicy, BreakerRule, Health, Restart, Retry, RetryClass},
    problem::{Report, join},
    setting::Setting,
};

/// The most waits in a schedule.
const MAX_WAITS: usize = 64;

/// Reports a scope that does not parse, and an invalid backoff schedule.
pub(super) fn check(values: ServerTable<'_>, path: &str, report: &mut Report) {
    if let Some(Setting::Text(text)) = values.find(&server::SCOPE).map(|found| &found.setting)
        && values.set(&server::SCOPE).is_none()
    {
        let message = format!("must be shared, session, or pool(N) with N from 1 to {MAX_POOL}");
        report.error(text.at, &join(path, server::SCOPE.name), message);
    }
    if let Some(table) = values.table(&server::RESTART)
        && let Some(found) = table.find(&restart_fields::BACKOFF)
        && let Some(problem) = bad_waits(&table.get(&restart_fields::BACKOFF).0)
    {
        report.error(found.at, &join(path, "restart.backoff"), problem);
    }
}

/// Why waits are not a valid schedule. The rules are those for a schedule that the embedding program sets.
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

pub(super) fn restart(values: ServerTable<'_>) -> Restart {
    let start_wait = values.get(&server::START_WAIT);
    let Some(table) = values.table(&server::RESTART) else {
        return Restart {
            start_wait,
            ..Restart::default()
        };
    };
    let Waits(waits) = table.get(&restart_fields::BACKOFF);
    Restart {
        enabled: table.get(&restart_fields::ENABLED),
        backoff: waits,
        max_attempts: table.get(&restart_fields::MAX_ATTEMPTS),
        wait: table.get(&restart_fields::CALL_WAIT),
        start_wait,
    }
}

pub(super) fn health(values: ServerTable<'_>) -> Health {
    Health {
        probe: values.get(&server::HEALTH_PROBE),
        interval: values.get(&server::HEALTH_INTERVAL).0,
        timeout: values.get(&server::HEALTH_TIMEOUT),
        restart: values.get(&server::HEALTH_RESTART),
    }
}

pub(super) fn retries(values: ServerTable<'_>) -> Retry {
    let Some(table) = values.table(&server::RETRY) else {
        return Retry::default();
    };
    let keyed = table.get(&retry::KEY_ARGUMENT).map(RetryClass::Key);
    Retry {
        mode: keyed.or_else(|| table.get(&retry::MODE)),
        attempts: table.get(&retry::ATTEMPTS),
        backoff: table.get(&retry::BACKOFF),
        jitter: table.get(&retry::JITTER),
        even_if_run: table.get(&retry::UNSAFE),
    }
}

/// The circuit breaker; `None` for the board's policy.
pub(super) fn breaker(values: ServerTable<'_>) -> Option<BreakerPolicy> {
    let table = values.table(&server::BREAKER)?;
    if !table.get(&breaker_fields::ENABLED) {
        return Some(BreakerPolicy::Off);
    }
    Some(BreakerPolicy::On(BreakerRule {
        failures: table.get(&breaker_fields::FAILURES),
        percent: table.get(&breaker_fields::PERCENT),
        of: table.get(&breaker_fields::OF),
        open: table.get(&breaker_fields::OPEN),
        probes: table.get(&breaker_fields::PROBES),
        successes: table.get(&breaker_fields::SUCCESSES),
    }))
}
