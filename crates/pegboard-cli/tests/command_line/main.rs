//! The `pegboard` command as its users see it: the real program, in a home folder of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

#[cfg(unix)]
#[cfg(unix)]
mod access_log;
mod agents;
mod approval;
mod argument_order;
mod arguments;
mod audit;
mod broken;
#[cfg(target_os = "linux")]
mod browser;
mod call;
mod canary;
mod config;
#[cfg(unix)]
mod daemon;
#[cfg(target_os = "linux")]
mod daemon_changeover;
#[cfg(unix)]
mod daemon_default;
#[cfg(unix)]
mod daemon_ends;
#[cfg(unix)]
mod daemon_failures;
#[cfg(unix)]
mod daemon_hello;
#[cfg(unix)]
mod daemon_kills;
#[cfg(unix)]
mod daemon_restarts;
#[cfg(target_os = "linux")]
mod daemon_terminal;
mod dashboard;
mod dashboard_browser;
mod demo_server;
mod docs;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod doors;
#[cfg(unix)]
mod earlier_runs;
mod ends;
mod everyday;
mod find;
#[cfg(target_os = "linux")]
mod first_line;
mod first_screen;
#[cfg(unix)]
mod gateway;
mod generate;
mod help;
mod home;
#[cfg(unix)]
mod host_files;
#[cfg(unix)]
mod http_api;
#[cfg(unix)]
mod http_changes;
mod interrupt;
mod kept_sessions;
#[cfg(unix)]
mod logs;
mod mask;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod mcp_fates;
mod messages;
#[cfg(unix)]
mod metrics;
#[cfg(target_os = "linux")]
mod missing_keys;
#[cfg(target_os = "linux")]
mod monitoring;
#[cfg(target_os = "linux")]
mod openapi;
mod pins;
#[cfg(unix)]
mod policy_settings;
#[cfg(unix)]
mod probes;
#[cfg(target_os = "linux")]
mod pty;
#[cfg(target_os = "linux")]
mod questions;
#[cfg(unix)]
mod recording;
#[cfg(unix)]
mod reload_load;
mod reloads;
mod resources;
#[cfg(unix)]
mod result_settings;
mod safety;
#[cfg(target_os = "linux")]
mod screens;
mod secrets;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod serve_log;
#[cfg(unix)]
mod serve_oauth;
#[cfg(unix)]
mod serve_scopes;
#[cfg(unix)]
mod serve_tls;
mod servers;
#[cfg(unix)]
mod sign_in;
#[cfg(target_os = "linux")]
mod sign_in_advice;
#[cfg(target_os = "linux")]
mod sign_in_browser;
#[cfg(target_os = "linux")]
mod sign_in_daemon;
#[cfg(unix)]
mod sign_in_reports;
mod starts;
mod status;
#[cfg(unix)]
mod stopped;
#[cfg(unix)]
mod telemetry;
mod token;
#[cfg(unix)]
mod told_failures;
mod tools;
#[cfg(target_os = "linux")]
mod torture;
mod trust;
