//! The tables of a server's lifecycle: restarts, the circuit breaker, pools and resource limits.

use crate::config::{
    field::{DefaultValue, Kind},
    from_setting::Waits,
    key::{WAIT, count, duration, either, flag, optional_count, optional_size, plain, section, small},
    lifecycle::{BreakerRule, RESTART_WAITS, Restart},
};

section! {
    rlimits = "rlimits" {
        OPEN_FILES: Option<u64> = optional_count("open_files", (8, 1 << 20), "The most files that each of its processes may have open at once.")
            .aka(&["nofile"]);
        MEMORY: Option<u64> = optional_size("memory", (16 << 20, 1 << 40), "The most memory that each of its processes may use for data.")
            .aka(&["data"]);
        PROCESSES: Option<u64> = optional_count("processes", (1, 1 << 20), "The most processes and threads that its user may run at once, including those of other programs.")
            .aka(&["nproc"]);
        FILE_SIZE: Option<u64> = optional_size("file_size", (0, 1 << 50), "The largest file that it may write.")
            .aka(&["fsize"]);
    }
}

section! {
    restart = "restart" {
        ENABLED: bool = flag("enabled", true, "Whether the server is restarted automatically; otherwise the next call restarts it.").aka(&["enable_auto_reconnect"]);
        BACKOFF: Waits = either(
            "backoff",
            &[Kind::List(&WAIT), WAIT],
            Waits(Vec::new()),
            DefaultValue::Durations(&RESTART_WAITS),
            "The waits before each attempt; the last one repeats. A single wait is doubled up to 30 seconds.",
        )
        .aka(&["reconnect_backoff"]);
        MAX_ATTEMPTS: Option<u32> = optional_count("max_attempts", (1, 1_000_000), "The number of failed starts in a row after which only a call or an operator starts it.")
            .aka(&["max_retries", "attempts", "max_reconnect_retries"]);
        CALL_WAIT: std::time::Duration = duration("wait", WAIT, Restart::WAIT, "How long a call waits for a restart; with zero it fails at once.")
            .aka(&["restart_wait"]);
    }
}

section! {
    breaker = "breaker" {
        ENABLED: bool = flag("enabled", true, "Whether the circuit breaker is used.");
        FAILURES: u32 = small("failures", (1, 1000), BreakerRule::DEFAULT.failures, "The number of failures in a row that opens the breaker.")
            .aka(&["failure_threshold", "max_failures"]);
        PERCENT: u32 = small("percent", (0, 100), BreakerRule::DEFAULT.percent, "The percentage of recent calls above which failures open the breaker as well; 0 for never.")
            .aka(&["failure_rate", "error_percent"]);
        OF: usize = count("of", (1, 1000), BreakerRule::DEFAULT.of, "How many recent calls `percent` is computed over.")
            .aka(&["min_requests", "window"]);
        OPEN: std::time::Duration = duration("open", Kind::Duration { min: 1, max: 3600 * 1000 }, BreakerRule::DEFAULT.open, "How long the breaker stays open.")
            .aka(&["open_time", "open_timeout", "timeout"]);
        PROBES: u32 = small("probes", (1, 1000), BreakerRule::DEFAULT.probes, "How many calls it then lets through at once to test the server.")
            .aka(&["half_open", "half_open_max", "half_open_probes"]);
        SUCCESSES: u32 = small("successes", (1, 1000), BreakerRule::DEFAULT.successes, "How many of these calls must succeed before the breaker closes.")
            .aka(&["success_threshold"]);
    }
}

section! {
    scope = "scope"
    unkeyed {
        plain("pool", Kind::Count { min: 1, max: 64 }, "The most connections in the pool.");
    }
}
