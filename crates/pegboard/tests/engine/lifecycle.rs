//! Every command that changes a running board, for every scope and under every preset, each time with two open views and a call in flight.

mod applying;
mod commands;
mod ending;
mod stage;
