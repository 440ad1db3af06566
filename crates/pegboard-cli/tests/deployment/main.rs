//! The command as a service: under systemd, behind a load balancer, with health checks, and as the files in `packaging` run it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../command_line/gateway.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod gateway;
#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod home;

mod guides;
mod health;
mod packaging;
mod replicas;
mod service;
