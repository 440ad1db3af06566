//! The lifecycle of one server: shared starts, scheduled restarts, health checks, and config changes on a running board.

#[path = "../support/mod.rs"]
mod support;

mod changing;
mod misconfigured;
mod pools;
mod processes;
mod restarting;
mod resting;
mod room;
mod rules;
mod sharing;
mod views;
