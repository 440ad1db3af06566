//! The command on a whole machine: as a service, under load, among the programs of others, and from its packages.

// The installed Node is built for Linux, and processes are counted in /proc.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod claude_code;
mod day;
mod deployment;
#[path = "../command_line/gateway.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod gateway;
mod gateway_clients;
mod gateway_soak;
#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "the tests of the command line use the rest")]
mod home;
mod newcomer;
mod packages;
