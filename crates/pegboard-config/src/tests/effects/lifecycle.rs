//! The tests of restarts, the circuit breaker, pools, resource limits and the sandbox.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "engine/settings/processes.rs",
        "a_process_has_the_limits_of_its_config",
        &[
            "rlimits.open_files",
            "rlimits.memory",
            "rlimits.processes",
            "rlimits.file_size",
        ],
    ),
    (
        "processes/sandbox/settings.rs",
        "a_server_reads_and_writes_what_its_config_names",
        &["sandbox.read", "sandbox.write"],
    ),
    (
        "processes/sandbox/settings.rs",
        "a_server_reaches_only_the_network_of_its_config",
        &["sandbox.network"],
    ),
    (
        "processes/sandbox/settings.rs",
        "a_server_whose_sandbox_cannot_be_enforced_is_not_started_unless_that_is_allowed",
        &["server.sandbox", "sandbox.level", "sandbox.require"],
    ),
    (
        "engine/settings/lifecycle.rs",
        "a_server_is_shared_or_started_for_each_session_or_in_a_pool",
        &["scope.pool"],
    ),
    (
        "engine/settings/restarts.rs",
        "a_lost_server_is_restarted_unless_that_is_off",
        &["restart.enabled"],
    ),
    (
        "engine/settings/restarts.rs",
        "failed_starts_are_repeated_by_the_schedule_and_so_often",
        &["restart.backoff", "restart.max_attempts"],
    ),
    (
        "engine/settings/restarts.rs",
        "a_call_waits_for_a_restart_as_long_as_the_config_says",
        &["restart.wait"],
    ),
    (
        "engine/settings/breaker.rs",
        "a_breaker_opens_after_failures_in_a_row_unless_it_is_off",
        &["breaker.enabled", "breaker.failures"],
    ),
    (
        "engine/settings/breaker.rs",
        "a_breaker_opens_when_too_large_a_part_of_the_last_calls_failed",
        &["breaker.percent", "breaker.of"],
    ),
    (
        "engine/settings/breaker.rs",
        "a_breaker_is_open_for_its_time",
        &["breaker.open"],
    ),
    (
        "engine/settings/breaker.rs",
        "a_half_open_breaker_lets_some_probes_through_at_once",
        &["breaker.probes"],
    ),
    (
        "engine/settings/breaker.rs",
        "a_half_open_breaker_closes_after_enough_successes",
        &["breaker.successes"],
    ),
];
