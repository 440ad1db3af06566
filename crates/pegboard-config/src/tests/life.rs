//! The settings of a server's life, from text to config.

use std::time::Duration;

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn with(settings: &str) -> ServerConfig {
    server(&format!("[servers.x]\ncommand = 'a'\n{settings}\n"))
}

#[test]
fn a_scope_is_a_word_or_a_pool() {
    for (written, expected) in [
        ("'shared'", Scope::Shared),
        ("'session'", Scope::Session),
        ("'pool(4)'", Scope::Pool(4)),
        ("' pool ( 64 ) '", Scope::Pool(64)),
        ("{ pool = 2 }", Scope::Pool(2)),
    ] {
        assert_eq!(with(&format!("scope = {written}")).policy.scope, expected, "{written}");
    }
    for written in ["pool", "pool(0)", "pool(65)", "pool(x)", "everyone"] {
        let told = problems(&format!("[servers.x]\ncommand = 'a'\nscope = '{written}'"));
        assert_eq!(
            told,
            ["pegboard.toml:3: servers.x.scope: must be shared, session, or pool(N) with N from 1 to 64"],
            "{written}"
        );
    }
}

#[test]
fn when_a_server_starts_and_rests() {
    let check = |settings: &str, start, idle_after| {
        let server = with(settings);
        assert_eq!((server.start, server.idle_after()), (start, idle_after), "{settings}");
    };
    check("", Start::Eager, None);
    check("start = 'lazy'", Start::Lazy, Some(secs(300)));
    check("start = 'lazy'\nrequired = true", Start::Lazy, None);
    check("start = 'lazy'\nscope = 'session'", Start::Lazy, None);
    check("start = 'lazy'\nidle_stop = 'off'", Start::Lazy, None);
    check("idle_stop = '20m'", Start::Eager, Some(secs(1200)));
    check("idle_timeout_sec = 7", Start::Eager, Some(secs(7)));
    check("start = 'explicit'", Start::Explicit, None);
}

#[test]
fn restarts_and_health_are_read() {
    assert_eq!(with("").policy.restart, Restart::default());
    assert!(!with("restart = false").policy.restart.enabled);
    let restart = with("restart = { backoff = ['0s', '1s', '30s'], max_attempts = 5, wait = '0s' }")
        .policy
        .restart;
    let expected = Restart {
        enabled: true,
        backoff: [0, 1, 30].map(secs).into(),
        max_attempts: Some(5),
        wait: Duration::ZERO,
        start_wait: Duration::ZERO,
    };
    assert_eq!(restart, expected);
    let waits = |settings: &str| with(settings).policy.restart.start_wait;
    assert_eq!(waits("start_wait = '1m'"), secs(60));
    assert_eq!(waits("start_wait = '1m'\nrestart = { wait = '0s' }"), secs(60));
    for (backoff, problem) in [
        ("[]", "needs at least one wait"),
        ("['2s', '1s']", "must only grow"),
        (
            "['0s']",
            "must not end with zero: a broken server would be started without a pause",
        ),
    ] {
        let told = problems(&format!(
            "[servers.x]\ncommand = 'a'\nrestart = {{ backoff = {backoff} }}"
        ));
        assert_eq!(told, [format!("pegboard.toml:3: servers.x.restart.backoff: {problem}")]);
    }
    assert_eq!(with("").policy.health, Health::default());
    let health = with("health_probe = 'list'\nhealth_interval = '15s'\nhealth_timeout = '3s'")
        .policy
        .health;
    let expected = Health {
        probe: Probe::ListTools,
        interval: Some(secs(15)),
        timeout: secs(3),
        restart: false,
    };
    assert_eq!(health, expected);
    assert!(with("health_restart = true").policy.health.restart);
    assert_eq!(with("health_interval = 'off'").policy.health.interval, None);
    assert_eq!(with("health_probe = 'none'").policy.health.probe, Probe::Never);
    assert_eq!(with("health_probe = 'ping'").policy.health.probe, Probe::Auto);
}

#[test]
fn retries_trust_and_queues_are_read() {
    let retries = |settings: &str| with(settings).policy.retry;
    assert_eq!(retries(""), Retry::default());
    assert_eq!(retries("retry = 0").attempts, 0);
    assert_eq!(retries("retry = 'safe'").mode, Some(RetryClass::Safe));
    let expected = Retry {
        mode: None,
        attempts: 3,
        backoff: [1, 2].map(secs).into(),
        jitter: 50,
        even_if_run: true,
    };
    assert_eq!(
        retries("retry = { attempts = 3, backoff = ['1s', '2s'], jitter = 50, unsafe = true }"),
        expected
    );
    let keyed = Some(RetryClass::Key("id".into()));
    assert_eq!(retries("retry = { key_argument = 'id' }").mode, keyed);
    for (written, expected) in [
        ("true", true),
        ("false", false),
        ("'trusted'", true),
        ("'untrusted'", false),
    ] {
        assert_eq!(with(&format!("trust = {written}")).policy.trust, expected, "{written}");
    }
    let policy = with("queue = 'all'\ntools = { 'render_*' = { queue = 'heavy' }, read = { retry = 'safe' } }").policy;
    assert_eq!(policy.queue.as_deref(), Some("all"));
    assert_eq!(policy.tool_queues, [("render_*".to_owned(), "heavy".to_owned())].into());
}

#[test]
fn a_breaker_is_off_as_it_is_or_as_it_is_written() {
    let breaker = |settings: &str| with(settings).policy.breaker;
    assert_eq!(breaker(""), None, "as the program says");
    assert_eq!(breaker("breaker = 'off'"), Some(BreakerPolicy::Off));
    assert_eq!(breaker("breaker = false"), Some(BreakerPolicy::Off));
    assert_eq!(breaker("breaker = { enabled = false }"), Some(BreakerPolicy::Off));
    assert_eq!(breaker("breaker = true"), Some(BreakerPolicy::default()));
    let minion = "breaker = { failures = 5, percent = 50, of = 10, open = '30s', probes = 3, successes = 2 }";
    let rule = BreakerRule {
        failures: 5,
        percent: 50,
        of: 10,
        open: secs(30),
        probes: 3,
        successes: 2,
    };
    assert_eq!(breaker(minion), Some(BreakerPolicy::On(rule)));
}

#[test]
fn how_much_a_board_takes_on_is_said_at_the_top() {
    assert_eq!(toml("").config.limits, BoardLimits::default());
    let limits = toml("max_servers = 2\nmax_processes = 3\nmax_starts = 4\nmax_buffered = '5MiB'")
        .config
        .limits;
    assert_eq!((limits.max_servers, limits.max_processes, limits.max_starts), (2, 3, 4));
    assert_eq!(limits.max_buffered, 5 << 20);
    assert_eq!(
        problems("max_servers = 0"),
        ["pegboard.toml:1: max_servers: must be between 1 and 1000"]
    );
}
