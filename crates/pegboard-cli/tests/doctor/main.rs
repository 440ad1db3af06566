//! `pegboard doctor`: one broken setup per finding. Each yields its finding, and is well once the fix is applied.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../command_line/gateway.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod gateway;
#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod home;

mod config_files;
mod diagnosis;
mod fixing;
mod guide;
mod machine;
mod network;
mod processes;
mod tools;
