//! The metrics of a board, with their types, labels and meanings. `docs/reference/metrics.md` has the same tables.

use super::family::{Family, FamilyType};

/// Declares the metrics, and the list of all of them.
macro_rules! families {
    ($( $id:ident = $is:ident $name:literal [$($label:literal),*] $help:literal; )+) => {
        $( pub(super) const $id: Family = Family { name: $name, is: FamilyType::$is, labels: &[$($label),*], help: $help }; )+

        /// The metrics of a board.
        pub const BOARD_FAMILIES: &[&Family] = &[$( &$id ),+];
    };
}

families! {
    // From `Metrics`.
    CALLS = Counter "pegboard_calls_total" ["server", "kind"] "Tool calls that have ended, by kind of outcome.";
    CALL_DURATION = Histogram "pegboard_call_duration_seconds" ["server"] "Time from a tool call to its reply.";
    QUEUE_WAIT = Histogram "pegboard_call_queue_seconds" ["server"] "Time that tool calls were queued. Calls that were not queued are left out.";
    IN_FLIGHT = Gauge "pegboard_calls_in_flight" ["server"] "Tool calls in flight, including queued ones.";
    ATTEMPTS = Counter "pegboard_call_attempts_total" ["server"] "Times that a call was sent to the server.";
    RETRIES = Counter "pegboard_call_retries_total" ["server"] "Attempts that were retries.";
    RECEIVED = Counter "pegboard_received_bytes_total" ["server"] "Payload bytes of responses, as received.";
    MASKED = Counter "pegboard_masked_total" ["server"] "Secrets that were masked in responses.";
    TRUNCATED = Counter "pegboard_truncated_total" ["server"] "Results that were too long and were truncated.";
    CACHED = Counter "pegboard_cached_total" ["server"] "Replies that came from the cache.";
    TOOL_CALLS = Counter "pegboard_tool_calls_total" ["server", "tool", "kind"] "Tool calls that have ended, by tool and kind of outcome.";
    TOOL_TIME = Counter "pegboard_tool_call_seconds_total" ["server", "tool"] "Time that the calls of a tool have taken together.";
    PRINCIPAL_CALLS = Counter "pegboard_principal_calls_total" ["principal", "kind"] "Tool calls that have ended, by principal and kind of outcome.";
    PRINCIPAL_TIME = Counter "pegboard_principal_call_seconds_total" ["principal"] "Time that the calls of a principal have taken together.";
    VIEW_CALLS = Counter "pegboard_view_calls_total" ["view", "kind"] "Tool calls of a view that have ended, by kind of outcome.";
    VIEW_DURATION = Histogram "pegboard_view_call_duration_seconds" ["view"] "Time from a tool call of a view to its reply.";
    VIEW_IN_FLIGHT = Gauge "pegboard_view_calls_in_flight" ["view"] "Tool calls of a view in flight, including queued ones.";
    UNROUTED = Counter "pegboard_unrouted_calls_total" ["kind"] "Calls that ended before their tool was found, such as those of unknown tools.";
    BUILT_IN = Counter "pegboard_builtin_calls_total" ["kind"] "Calls of tools that a view answers itself, such as `find_tools`.";
    STARTS = Histogram "pegboard_server_start_seconds" ["server"] "Time that starts took, from the attempt to the first listing of tools.";
    FAILED_STARTS = Counter "pegboard_server_failed_starts_total" ["server"] "Starts that failed.";
    RESTARTS = Counter "pegboard_server_restarts_total" ["server"] "Restarts after the session of the server ended.";
    FAILED_PROBES = Counter "pegboard_server_failed_probes_total" ["server"] "Health probes that timed out.";
    PERMITS = Gauge "pegboard_calls_permits_in_use" ["server"] "Tool calls that the server has, without queued ones.";
    PERMITS_LIMIT = Gauge "pegboard_calls_permits_limit" ["server"] "The most tool calls that the server may have at once, with all of its instances.";
    QUEUED_LIMIT = Gauge "pegboard_calls_queued_limit" ["server"] "The most tool calls that may wait in the queue of the server.";
    BREAKERS = Gauge "pegboard_server_breaker" ["server", "state"] "Circuit breakers of the server in each state: `closed` (calls pass), `half_open` or `open`. Each instance has one.";
    PROCESSES = Gauge "pegboard_processes" [] "Processes of servers.";
    PROCESSES_LIMIT = Gauge "pegboard_processes_limit" [] "The most processes of servers (`max_processes`).";
    VIEWS = Gauge "pegboard_views_open" [] "Views that are open.";
    EVENTS_LOST = Counter "pegboard_events_lost_total" [] "Events that slow subscribers have missed.";
    BUFFERED = Gauge "pegboard_buffered_bytes" [] "Bytes of long messages that are buffered.";
    BUFFERED_LIMIT = Gauge "pegboard_buffered_limit_bytes" [] "The most bytes of long messages that may be buffered (`max_buffered`).";
    AUDIT_REQUIRED = Gauge "pegboard_audit_required" [] "Whether calls are refused while the audit log cannot be written.";
    AUDIT_RECORDS = Counter "pegboard_audit_records_total" [] "Records that were written to the audit log.";
    AUDIT_LOST = Counter "pegboard_audit_lost_total" [] "Records that could not be written to the audit log.";
    // From `BoardStatus`.
    SERVER_READY = Gauge "pegboard_server_ready" ["server"] "Whether the server is ready for calls.";
    SERVER_STATES = Gauge "pegboard_servers" ["state"] "Servers in each state.";
    SERVER_TROUBLED = Gauge "pegboard_server_troubled" ["server"] "Whether an instance of the server has failed and has not been ready since.";
    QUEUED = Gauge "pegboard_calls_queued" ["server"] "Tool calls that wait in the queue of the server.";
    QUEUE_IN_USE = Gauge "pegboard_queue_in_use" ["queue"] "Tool calls in flight that a shared queue has admitted.";
    QUEUE_LIMIT = Gauge "pegboard_queue_limit" ["queue"] "The most tool calls in flight of a shared queue.";
    QUEUE_WAITING = Gauge "pegboard_queue_waiting" ["queue"] "Tool calls that wait in a shared queue.";
    QUEUE_REFUSED = Counter "pegboard_queue_refused_total" ["queue"] "Tool calls that a shared queue has refused, because it was full or their time was up.";
    WARNINGS = Gauge "pegboard_warnings" ["category"] "Conditions that an operator should know about: `mcp_health`, `definitions`, `audit` or `journal`.";
    AUDIT_OK = Gauge "pegboard_audit_ok" [] "Whether the newest records of the audit log were written; 1 without an audit log.";
    JOURNAL_OK = Gauge "pegboard_journal_ok" [] "Whether calls in flight are noted for the case of a crash; 1 without a journal.";
}
