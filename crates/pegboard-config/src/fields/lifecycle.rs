//! The tables of a server's lifecycle: restarts, the circuit breaker, pools, resource limits and the sandbox.

use crate::{
    field::{DefaultValue, Kind, Word},
    from_setting::{Ceiling, Waits},
    key::{WAIT, count, duration, either, flag, optional_choice, optional_count, plain, section, small, texts},
    lifecycle::{BreakerRule, RESTART_WAITS, Restart},
    sandbox::{SandboxLevel, SandboxNetwork},
    transport::Rlimits,
};

section! {
    rlimits = "rlimits" {
        OPEN_FILES: Ceiling = either("open_files", &[Kind::Count { min: 8, max: 1 << 20 }, UNLIMITED], Ceiling(Rlimits::DEFAULT.open_files), DefaultValue::Count(1024), "The most files that each of its processes may have open at once; `none` for no limit.")
            .aka(&["nofile"]);
        MEMORY: Ceiling = either("memory", &[UNLIMITED, Kind::Size { min: 16 << 20, max: 1 << 40 }], Ceiling(Rlimits::DEFAULT.memory), DefaultValue::Size(2 << 30), "The most memory that each of its processes may use for data; `none` for no limit.")
            .aka(&["data"]);
        PROCESSES: Ceiling = either("processes", &[Kind::Count { min: 1, max: 1 << 20 }, UNLIMITED], Ceiling(Rlimits::DEFAULT.processes), DefaultValue::Text("none"), "The most processes and threads that its user may run at once, including those of other programs; `none` for no limit.")
            .aka(&["nproc"]);
        FILE_SIZE: Ceiling = either("file_size", &[UNLIMITED, Kind::Size { min: 0, max: 1 << 50 }], Ceiling(Rlimits::DEFAULT.file_size), DefaultValue::Size(1 << 30), "The largest file that it may write; `none` for no limit.")
            .aka(&["fsize"]);
    }
}

const UNLIMITED: Kind = Kind::Word(&[Word {
    name: "none",
    spellings: &["off", "unlimited"],
}]);

section! {
    sandbox = "sandbox" {
        LEVEL: Option<SandboxLevel> = optional_choice("level", "The level: off, basic (files, signals and traces) or strict (also namespaces, system calls and the home directory); basic if it is not set.");
        READ: Vec<String> = texts("read", "Files and directories that it may read, besides programs, libraries and its working directory.");
        WRITE: Vec<String> = texts("write", "Files and directories that it may read and write, besides a private directory for temporary files.");
        NETWORK: Option<SandboxNetwork> = either("network", &[Kind::Bool, Kind::List(&Kind::Count { min: 1, max: 65535 })], None, DefaultValue::None, "Whether it may use the network, or the TCP ports that it may connect to. Without it: `true` with `basic`, `false` with `strict`.");
        REQUIRE: bool = flag("require", true, "Whether the server is not started where a part of the level cannot be enforced; otherwise it is started with the parts that can.");
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
        MAX_ATTEMPTS: Option<u32> = optional_count("max_attempts", (1, 1_000_000), "The number of failed starts in a row after which only a health check (`health_restart`), a call or an operator starts it.")
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
