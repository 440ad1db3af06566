//! Resolves the lifecycle of a server: restarts, health probes, the circuit breaker, and retries.

use std::time::Duration;

use crate::{
    fields::{ServerTable, breaker as breaker_fields, restart as restart_fields, retry, server},
    lifecycle::{BreakerPolicy, BreakerRule, Restart, Retry, RetryClass},
    problem::{Report, join},
};

/// The most waits in a schedule.
const MAX_WAITS: usize = 64;

/// Reports an invalid backoff schedule.
pub(super) fn check(values: ServerTable<'_>, path: &str, report: &mut Report) {
    if let Some(table) = values.table(&server::restart)
        && let Some(found) = table.find(&restart_fields::backoff)
        && let Some(problem) = bad_waits(&table.get(&restart_fields::backoff))
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
    let restart = Restart {
        start_wait: values.get(&server::start_wait),
        ..Restart::default()
    };
    match values.table(&server::restart) {
        Some(table) => restart.overlay(table),
        None => restart,
    }
}

pub(super) fn retries(values: ServerTable<'_>) -> Retry {
    let Some(table) = values.table(&server::retry) else {
        return Retry::default();
    };
    let mut retry = Retry::default().overlay(table);
    if let Some(argument) = table.get(&retry::key_argument) {
        retry.mode = Some(RetryClass::Key(argument));
    }
    retry
}

/// The circuit breaker; `None` for the board's policy.
pub(super) fn breaker(values: ServerTable<'_>) -> Option<BreakerPolicy> {
    let table = values.table(&server::breaker)?;
    if !table.get(&breaker_fields::enabled) {
        return Some(BreakerPolicy::Off);
    }
    Some(BreakerPolicy::On(BreakerRule::default().overlay(table)))
}
