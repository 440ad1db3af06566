//! The metrics of the gateway, of the config and of the process, with their types, labels and meanings. Those of the board are declared in the
//! library. `docs/reference/metrics.md` has the same tables.

use pegboard::metrics::{Family, FamilyType};

/// Declares the metrics, and the list of all of them.
macro_rules! families {
    ($( $id:ident = $is:ident $name:literal [$($label:literal),*] $help:literal; )+) => {
        $( pub(super) const $id: Family = Family { name: $name, is: FamilyType::$is, labels: &[$($label),*], help: $help }; )+

        /// All of them.
        #[cfg(test)]
        pub(super) const ALL: &[&Family] = &[$( &$id ),+];
    };
}

families! {
    READY = Gauge "pegboard_ready" [] "Whether every required server is ready and the daemon does not stop.";
    REQUESTS = Counter "pegboard_http_requests_total" ["path", "status"] "HTTP responses, by path and class of status.";
    REFUSED = Counter "pegboard_http_refused_total" ["reason"] "HTTP requests that were refused before they were handled.";
    HTTP_IN_FLIGHT = Gauge "pegboard_http_requests_in_flight" [] "HTTP requests that are being handled. Streams on which a client only listens do not count.";
    HTTP_IN_FLIGHT_LIMIT = Gauge "pegboard_http_requests_in_flight_limit" [] "The most HTTP requests that are handled at once (`max_in_flight`).";
    CONNECTIONS = Gauge "pegboard_http_connections_open" [] "Connections that are open.";
    CONNECTIONS_LIMIT = Gauge "pegboard_http_connections_limit" [] "The most open connections (`max_connections`).";
    ACCEPTED = Counter "pegboard_http_connections_total" [] "Connections that were accepted.";
    UNDELIVERED = Counter "pegboard_http_undelivered_total" [] "Connections that were closed because their clients did not read what was sent.";
    ACCESS_LOG_DROPPED = Counter "pegboard_access_log_dropped_total" [] "Lines of the access log that were not written, because too many waited or the file could not be written.";
    SESSIONS = Gauge "pegboard_http_sessions_open" [] "Sessions of legacy clients that are open.";
    SESSIONS_LIMIT = Gauge "pegboard_http_sessions_limit" [] "The most sessions of legacy clients (`max_sessions`).";
    REPLICAS = Gauge "pegboard_replicas" [] "Replicas of the gateway that take requests of each other, with this one. Without `serve.store` there is no such series, nor the next ones.";
    REPLICA_FORWARDED = Counter "pegboard_replica_requests_forwarded_total" [] "Requests that were sent on to the replica that they belong to.";
    REPLICA_RECEIVED = Counter "pegboard_replica_requests_received_total" [] "Requests that other replicas have sent here.";
    REPLICA_LOST = Counter "pegboard_replica_requests_lost_total" [] "Requests whose replica ended before it answered, so that they may have run.";
    SESSIONS_ADOPTED = Counter "pegboard_replica_sessions_adopted_total" [] "Sessions that were taken over from replicas that had ended.";
    STORE_ANSWERS = Gauge "pegboard_store_up" [] "Whether the store of the replicas answered when it was asked last.";
    STORE_FAILURES = Counter "pegboard_store_failures_total" [] "How often the store of the replicas did not do what it was asked.";
    SERVER_OPERATIONS = Histogram "mcp_server_operation_duration_seconds" ["mcp_method_name", "error_type", "network_transport", "mcp_protocol_version"] "Time from a request of a client to its response.";
    CLIENT_OPERATIONS = Histogram "mcp_client_operation_duration_seconds" ["pegboard_server", "mcp_method_name", "error_type", "network_transport", "mcp_protocol_version"] "Time from a request to a server to its response; each attempt counts.";
    EXPORTED = Counter "pegboard_telemetry_exported_total" ["signal"] "Spans, log records and points of metrics that the collector has taken.";
    DROPPED = Counter "pegboard_telemetry_dropped_total" ["signal"] "Those that were not sent, or that the collector has refused.";
    RELOADS = Counter "pegboard_config_reloads_total" ["outcome"] "Reloads of the config: applied, or failed and changed nothing.";
    RELOAD_OK = Gauge "pegboard_config_last_reload_successful" [] "Whether the newest reload was applied.";
    APPLIED_AT = Gauge "pegboard_config_applied_timestamp_seconds" [] "When the config was last applied.";
    CONFIG_IN_EFFECT = Gauge "pegboard_config_in_effect" [] "Whether everything that the applied config says is in effect.";
    BUILD = Gauge "pegboard_build_info" ["version"] "The version of the program; always 1.";
    STARTED_AT = Gauge "process_start_time_seconds" [] "When the daemon was started.";
    MEMORY = Gauge "process_resident_memory_bytes" [] "Resident memory of the daemon, without its servers.";
    FILES = Gauge "process_open_fds" [] "Open file descriptors of the daemon.";
    FILES_LIMIT = Gauge "process_max_fds" [] "The most open file descriptors of the daemon.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pegboard::metrics::BOARD_FAMILIES;

    use super::*;

    /// The metrics of the page, in the order of the documentation.
    fn all() -> Vec<&'static Family> {
        BOARD_FAMILIES.iter().chain(ALL).copied().collect()
    }

    #[test]
    fn names_are_unique_and_follow_the_conventions_of_prometheus() {
        let names: BTreeSet<&str> = all().iter().map(|family| family.name).collect();
        assert_eq!(names.len(), all().len());
        for family in all() {
            assert_eq!(
                family.name.ends_with("_total"),
                family.is == FamilyType::Counter,
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
        let expected: Vec<String> = all()
            .iter()
            .map(|family| {
                let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
                let (name, is, help) = (family.name, family.is.as_str(), family.help);
                format!("| `{name}` | {is} | {} | {help} |", labels.join(", "))
            })
            .collect();
        assert_eq!(rows, expected, "the tables should be:\n{}", expected.join("\n"));
    }
}
