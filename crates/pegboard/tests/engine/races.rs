//! Concurrent operations of one board: changes, views that open and close, waiting calls, shutdown.

mod approval;
mod changes;
mod events;
mod fixtures;
mod load;
mod views;
