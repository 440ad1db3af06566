//! Everyday use of the `pegboard` command: calling tools, showing results, completion, status.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod arguments;
mod completion;
#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "shared with the suite of the command line")]
mod home;
#[cfg(target_os = "linux")]
#[path = "../command_line/pty.rs"]
#[expect(dead_code, reason = "shared with the suite of the command line")]
mod pty;
mod results;
#[cfg(target_os = "linux")]
mod shells;
#[cfg(unix)]
mod status;
mod tools;
