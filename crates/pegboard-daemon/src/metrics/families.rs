//! Every metric with its type, labels and meaning. `docs/reference/metrics.md` has the same table.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Histogram,
}

impl Type {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) is: Type,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// Declares the metrics, and the list of all of them.
macro_rules! families {
    ($( $id:ident = $is:ident $name:literal [$($label:literal),*] $help:literal; )+) => {
        $( pub(super) const $id: Family = Family { name: $name, is: Type::$is, labels: &[$($label),*], help: $help }; )+

        /// All metrics.
        #[cfg(test)]
        pub(super) const ALL: &[&Family] = &[$( &$id ),+];
    };
}

families! {
    CALLS = Counter "pegboard_calls_total" ["server", "kind"] "Tool calls that have ended, by kind of outcome.";
    CALL_DURATION = Histogram "pegboard_call_duration_seconds" ["server"] "Time from a tool call to its reply.";
    QUEUE_WAIT = Histogram "pegboard_call_queue_seconds" ["server"] "Time that tool calls were queued. Calls that were not queued are left out.";
    IN_FLIGHT = Gauge "pegboard_calls_in_flight" ["server"] "Tool calls in flight, including queued ones.";
    QUEUED = Gauge "pegboard_calls_queued" ["server"] "Tool calls that wait in the queue of the server.";
    ATTEMPTS = Counter "pegboard_call_attempts_total" ["server"] "Times that a call was sent to the server.";
    RETRIES = Counter "pegboard_call_retries_total" ["server"] "Attempts that were retries.";
    RECEIVED = Counter "pegboard_received_bytes_total" ["server"] "Payload bytes of responses, as received.";
    MASKED = Counter "pegboard_masked_total" ["server"] "Secrets that were masked in responses.";
    TRUNCATED = Counter "pegboard_truncated_total" ["server"] "Results that were too long and were truncated.";
    CACHED = Counter "pegboard_cached_total" ["server"] "Replies that came from the cache.";
    UNROUTED = Counter "pegboard_unrouted_calls_total" ["kind"] "Calls that ended before their tool was found, such as those of unknown tools.";
    BUILT_IN = Counter "pegboard_builtin_calls_total" ["kind"] "Calls of tools that a view answers itself, such as `find_tools`.";
    SERVER_READY = Gauge "pegboard_server_ready" ["server"] "Whether the server is ready for calls.";
    SERVER_STATES = Gauge "pegboard_servers" ["state"] "Servers in each state.";
    STARTS = Histogram "pegboard_server_start_seconds" ["server"] "Time that starts took, from the attempt to the first listing of tools.";
    FAILED_STARTS = Counter "pegboard_server_failed_starts_total" ["server"] "Starts that failed.";
    RESTARTS = Counter "pegboard_server_restarts_total" ["server"] "Restarts after the session of the server ended.";
    FAILED_PROBES = Counter "pegboard_server_failed_probes_total" ["server"] "Health probes that timed out.";
    SERVER_TROUBLED = Gauge "pegboard_server_troubled" ["server"] "Whether an instance of the server has failed and has not been ready since.";
    READY = Gauge "pegboard_ready" [] "Whether every required server is ready and the daemon does not stop.";
    VIEWS = Gauge "pegboard_views_open" [] "Views that are open.";
    EVENTS_LOST = Counter "pegboard_events_lost_total" [] "Events that slow subscribers have missed.";
    BUFFERED = Gauge "pegboard_buffered_bytes" [] "Bytes of long messages that are buffered.";
    REQUESTS = Counter "pegboard_http_requests_total" ["path", "status"] "HTTP responses, by path and class of status.";
    REFUSED = Counter "pegboard_http_refused_total" ["reason"] "HTTP requests that were refused before they were handled.";
    HTTP_IN_FLIGHT = Gauge "pegboard_http_requests_in_flight" [] "HTTP requests that are being handled. Streams on which a client only listens do not count.";
    CONNECTIONS = Gauge "pegboard_http_connections_open" [] "Connections that are open.";
    ACCEPTED = Counter "pegboard_http_connections_total" [] "Connections that were accepted.";
    UNDELIVERED = Counter "pegboard_http_undelivered_total" [] "Connections that were closed because their clients did not read what was sent.";
    SESSIONS = Gauge "pegboard_http_sessions_open" [] "Sessions of legacy clients that are open.";
    RELOADS = Counter "pegboard_config_reloads_total" ["outcome"] "Reloads of the config: applied, or failed and changed nothing.";
    RELOAD_OK = Gauge "pegboard_config_last_reload_successful" [] "Whether the newest reload was applied.";
    APPLIED_AT = Gauge "pegboard_config_applied_timestamp_seconds" [] "When the config was last applied.";
    CONFIG_IN_EFFECT = Gauge "pegboard_config_in_effect" [] "Whether everything that the applied config says is in effect.";
    AUDIT_OK = Gauge "pegboard_audit_ok" [] "Whether the newest records of the audit log were written; 1 without an audit log.";
    JOURNAL_OK = Gauge "pegboard_journal_ok" [] "Whether calls in flight are noted for the case of a crash; 1 without a journal.";
    BUILD = Gauge "pegboard_build_info" ["version"] "The version of the program; always 1.";
    STARTED_AT = Gauge "process_start_time_seconds" [] "When the daemon was started.";
    MEMORY = Gauge "process_resident_memory_bytes" [] "Resident memory of the daemon, without its servers.";
    FILES = Gauge "process_open_fds" [] "Open file descriptors of the daemon.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_follow_the_conventions_of_prometheus() {
        let names: BTreeSet<&str> = ALL.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), ALL.len());
        for family in ALL {
            assert_eq!(
                family.name.ends_with("_total"),
                family.is == Type::Counter,
                "{family:?}"
            );
            assert!(family.help.ends_with('.') || family.help.ends_with('1'), "{family:?}");
        }
    }

    #[test]
    fn the_documentation_has_every_metric() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let document = std::fs::read_to_string(path).unwrap();
        let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = ALL
            .iter()
            .map(|family| {
                let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
                let (name, is, help) = (family.name, family.is.as_str(), family.help);
                format!("| `{name}` | {is} | {} | {help} |", labels.join(", "))
            })
            .collect();
        assert_eq!(rows, expected, "the table should be:\n{}", expected.join("\n"));
    }
}
