//! `pegboard import`, `install`, `uninstall` and `init`, with the config files of every host in their real shapes.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]
#![cfg(unix)]

mod golden;
#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "another suite uses the rest")]
mod home;
mod import;
mod init;
mod install;
mod left_out;
mod ownership;
#[cfg(target_os = "linux")]
#[path = "../command_line/pty.rs"]
#[expect(dead_code, reason = "another suite uses the rest")]
mod pty;
mod restoring;
mod same_server;
#[cfg(target_os = "linux")]
mod terminal;
