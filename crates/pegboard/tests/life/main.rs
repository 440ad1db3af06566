//! One server's life: shared starts, restarts on a schedule, health, and changes while the board runs.

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
