//! The tests of retries, queues, arguments and single tools.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "engine/settings/retries.rs",
        "a_call_that_may_have_run_is_retried_as_the_server_is_configured",
        &["retry.mode", "retry.attempts", "retry.unsafe"],
    ),
    (
        "engine/settings/retries.rs",
        "a_call_with_its_key_is_retried",
        &["retry.key_argument"],
    ),
    (
        "engine/settings/retries.rs",
        "the_waits_before_retries_are_those_of_the_config",
        &["retry.backoff"],
    ),
    (
        "engine/settings/retries.rs",
        "waits_vary_by_the_jitter",
        &["retry.jitter"],
    ),
    (
        "engine/settings/retries.rs",
        "a_tool_has_a_retry_rule_of_its_own",
        &["tool.retry", "tool_retry.key_argument"],
    ),
    (
        "engine/settings/queues.rs",
        "a_queue_bounds_the_calls_of_its_servers",
        &["tool.queue", "queue.concurrent"],
    ),
    (
        "engine/settings/policy.rs",
        "tools_are_shown_and_hidden_by_globs_and_by_their_own_setting",
        &["tool.enabled"],
    ),
    (
        "engine/settings/policy.rs",
        "a_person_is_asked_about_the_calls_that_need_approval",
        &["tool.approval"],
    ),
    (
        "engine/settings/call_limits.rs",
        "an_agent_calls_no_more_often_than_the_rate",
        &["tool.rate"],
    ),
    (
        "engine/settings/call_limits.rs",
        "a_call_is_repeated_no_more_often_than_the_loop_limit",
        &["tool.loop_limit"],
    ),
    (
        "engine/settings/policy.rs",
        "a_model_is_given_the_instructions_of_a_server_and_of_its_tools",
        &["tool.instructions"],
    ),
    (
        "engine/settings/policy.rs",
        "a_tool_requires_capabilities_of_the_view",
        &["tool.requires"],
    ),
    (
        "engine/settings/results.rs",
        "a_result_above_a_limit_is_truncated",
        &["tool.max_result"],
    ),
    (
        "engine/settings/results.rs",
        "the_form_of_a_result_that_is_its_text_is_chosen",
        &["tool.structured"],
    ),
    (
        "engine/settings/arguments.rs",
        "a_text_is_read_as_the_config_says",
        &["call_arguments.read"],
    ),
    (
        "engine/settings/arguments.rs",
        "arguments_are_checked_as_the_config_says",
        &["call_arguments.check"],
    ),
];
