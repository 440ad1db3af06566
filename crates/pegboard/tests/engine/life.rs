//! The lifecycle of one server: shared starts, scheduled restarts, health checks, and config changes on a running board.

mod capacity;
mod config_changes;
mod idle_stop;
mod misconfigured;
mod pools;
mod processes;
mod restarting;
mod server_settings;
mod sharing;
mod trust;
mod views;
