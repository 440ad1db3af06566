//! The `pegboard` command as its users see it: the real program, in a home folder of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod approval;
mod arguments;
mod audit;
mod broken;
mod call;
mod canary;
mod config;
mod help;
mod home;
mod interrupt;
mod mask;
mod pins;
#[cfg(target_os = "linux")]
mod pty;
#[cfg(target_os = "linux")]
mod questions;
mod resources;
mod safety;
mod starts;
mod status;
#[cfg(unix)]
mod stopped;
mod tools;
mod trust;
