//! The tests of the fields at the top of a file.

use super::Row;

const DAEMON: &str = "../../pegboard-cli/tests/command_line/daemon_default.rs";

pub(super) const ROWS: &[Row] = &[
    (DAEMON, "no_daemon_is_started_where_none_is_wanted", &["config.daemon"]),
    (
        "engine/settings/top.rs",
        "every_server_starts_from_the_preset",
        &["config.preset"],
    ),
    (
        "engine/settings/top.rs",
        "tools_are_named_in_the_style_of_the_config",
        &["config.naming"],
    ),
    (
        "engine/settings/audit.rs",
        "calls_are_recorded_in_the_file_that_the_config_names",
        &["config.audit", "audit.file"],
    ),
    (
        "engine/settings/audit.rs",
        "a_log_goes_to_a_syslog_and_is_required_there_too",
        &["audit.to"],
    ),
    (
        "engine/settings/audit.rs",
        "a_required_log_refuses_calls_that_it_cannot_record",
        &["audit.required"],
    ),
    (
        "engine/settings/audit.rs",
        "a_full_file_is_followed_by_another_and_the_oldest_is_removed",
        &["audit.max_size", "audit.max_files"],
    ),
    (
        "engine/settings/masking.rs",
        "settings_choose_the_patterns",
        &["config.masking"],
    ),
    (
        "engine/settings/top.rs",
        "a_board_has_at_most_so_many_servers_and_processes",
        &["config.max_servers", "config.max_processes"],
    ),
    (
        "engine/settings/top.rs",
        "so_many_servers_are_started_at_once",
        &["config.max_starts"],
    ),
    (
        "engine/settings/top.rs",
        "a_message_larger_than_its_part_of_the_buffer_budget_fails",
        &["config.max_buffered"],
    ),
    (
        "engine/settings/queues.rs",
        "a_queue_bounds_the_calls_of_its_servers",
        &["config.queues"],
    ),
];
